package ring3

import (
	"loam/abi/linux"
	"loam/kernel"
	"loam/kernel/space"
	"loam/kernel/user"
	"loam/mem"
	"loam/task"
)

// machine implements task.Machine with the processors of the machine.
type machine struct{ memory *memory }

// Memory implements task.Machine.
func (m machine) Memory() mem.Memory { return m.memory }

// Pages implements task.Machine.
func (m machine) Pages() (n int64) {
	for _, r := range kernel.UsableMemory() {
		n += int64(r.End-r.Start) / mem.PageSize
	}
	return n
}

// NewSpace implements task.Machine.
func (m machine) NewSpace() (task.Space, error) {
	s, err := user.NewSpace()
	switch err {
	case nil:
		return &tables{Space: s, zero: m.memory.zero}, nil
	case user.ErrMemory:
		return nil, linux.ENOMEM
	}
	return nil, err
}

// tables implements task.Space.
type tables struct {
	*user.Space
	zero    mem.Page
	changes []user.Change // reused buffer of Apply; guarded by the lock of the mem.Map
}

// actions converts actions of package mem to those of package user.
var actions = [...]user.Action{mem.Unmap: user.Unmap, mem.Restrict: user.Restrict, mem.Install: user.Install, mem.Offer: user.Offer}

// Apply implements mem.Tables. The page of zeros gets no page table from the kernel's reserve: a process can map it
// everywhere, without any memory of its own.
func (t *tables) Apply(effects []mem.Effect) bool {
	t.changes = t.changes[:0]
	for _, e := range effects {
		c := user.Change{Action: actions[e.Action], Rights: rights(e.Prot), Start: e.Start, End: min(e.End, user.Limit)}
		if e.Action == mem.Install || e.Action == mem.Offer {
			c.Physical, c.Reserve = addressOf(e.Page), e.Page != t.zero
		}
		if c.Start < c.End {
			t.changes = append(t.changes, c)
		}
	}
	return t.Space.Apply(t.changes) == nil
}

// rights converts permissions of a mapping to page table rights. Prot 0 would make a page unreadable; package mem never
// installs such a page.
func rights(p mem.Prot) (r space.Rights) {
	if p != 0 {
		r = space.Read
	}
	if p&mem.Write != 0 {
		r |= space.Write
	}
	if p&mem.Exec != 0 {
		r |= space.Execute
	}
	return r
}

// NewThread implements task.Space.
func (t *tables) NewThread() (task.Thread, error) {
	c, err := user.NewContext(t.Space)
	if err != nil {
		return nil, linux.ENOMEM
	}
	return thread{c}, nil
}

// thread implements task.Thread.
type thread struct{ *user.Context }

// reasons converts reasons of package user to those of package task.
var reasons = [...]task.Reason{
	user.Call: task.Call, user.Fault: task.Fault, user.Exception: task.Exception, user.Interrupted: task.Interrupted,
	user.Moved: task.Moved,
}

// Run implements task.Thread.
func (t thread) Run() task.Reason {
	vector := t.Enter()
	if user.IsCall(vector) {
		return task.Call
	}
	return reasons[t.Reason(vector)]
}

// Spent implements task.Thread.
func (t thread) Spent() (user, system int64) {
	inside, outside := t.Context.Spent()
	return nanoseconds(inside), nanoseconds(outside)
}
