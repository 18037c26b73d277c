package task

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"loam/abi/linux"
	"loam/exec"
	"loam/fs"
	"loam/mem"
	"loam/posix"
	"loam/task/family"
	"loam/task/procfs"
	"loam/task/schedule"
)

// This file supplies package procfs with the processes that /proc shows: it implements procfs.Source.

// shown shows the system to package procfs, as a procfs.Source.
type shown struct{ s *System }

// Processes implements procfs.Source.
func (w shown) Processes() []int {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []int{int(s.root.PID)}
	if s.processes[s.root.PID] != nil { // process 1 is a Host: a program in ring 0
		all = nil
	}
	for pid := range s.processes {
		if pid != s.root.PID {
			all = append(all, int(pid))
		}
	}
	for pid := range s.zombies {
		all = append(all, int(pid))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Process implements procfs.Source.
func (w shown) Process(id int) procfs.Process {
	s, pid := w.s, family.PID(int32(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	if pid == s.root.PID {
		return shownRoot{s: s, mounts: s.mounts}
	}
	if t := s.tasks[pid]; t != nil {
		return t.process.show()
	}
	if p := s.processes[pid]; p != nil {
		return p.show()
	}
	if p := s.zombies[pid]; p != nil {
		return p.show()
	}
	return nil
}

// shownProcess shows a process to package procfs, as a procfs.Process.
type shownProcess struct {
	procfs.MemoryView
	p *Process
}

// show returns the process as a procfs.Process.
func (p *Process) show() shownProcess {
	return shownProcess{procfs.MemoryView{Borrow: p.lend, Places: func() exec.Places { return p.executable().places }}, p}
}

// Pinned implements procfs.Process. The view refers to the memory and not to the process, which may be large.
func (w shownProcess) Pinned() procfs.Memory {
	w.p.system.mu.Lock()
	defer w.p.system.mu.Unlock()
	a, places := w.p.space.Load(), w.p.exe.places
	if a == nil || a.users.Load() == 0 {
		return procfs.Bare{}
	}
	return procfs.MemoryView{Borrow: a.lend, Places: func() exec.Places { return places }}
}

// lend returns the memory of the process, and a function that ends its use. It returns nil after the end of the process.
func (p *Process) lend() (*mem.Map, func()) { return p.borrow().lent() }

// PID implements procfs.Process.
func (w shownProcess) PID() int { return int(w.p.node.PID) }

// Threads implements procfs.Process.
func (w shownProcess) Threads() []int {
	s := w.p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []int{int(w.p.node.PID)} // this ID belongs to the process, even after its first thread has ended
	for _, t := range w.p.tasks {
		all = append(all, int(t.id))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// task returns the thread with an ID; nil for a first thread that has ended. The caller holds System.mu.
func (w shownProcess) task(tid int) *Task {
	if t := w.p.system.tasks[family.PID(int32(tid))]; t != nil && t.process == w.p {
		return t
	}
	return nil
}

// Stat implements procfs.Process.
func (w shownProcess) Stat(tid int) (procfs.Stat, bool) {
	p, s := w.p, w.p.system
	s.mu.Lock()
	t := w.task(tid)
	if t == nil && (tid != w.PID() || s.zombies[p.node.PID] != p && s.processes[p.node.PID] != p) {
		s.mu.Unlock()
		return procfs.Stat{}, false
	}
	r := procfs.Stat{
		PID: w.PID(), TID: tid, Parent: int(p.node.Parent()), Group: int(p.node.Group), Session: int(p.node.Session),
		TerminalGroup: -1, State: 'Z', ExitSignal: linux.SIGCHLD, Threads: len(p.tasks), Limits: p.limits,
		Credentials: *p.creds(), KillPreference: int(p.killPreference.Load()), LoginUser: p.loginUser.Load(),
		ExitCode: int(p.status), SmallPages: p.smallPages.Load(), Persona: p.persona.Load(), Name: p.lastName, Affinity: schedule.AllCPUs(s.config.CPUs),
		Started: p.started,
	}
	w.signals(&r, t)
	w.use(&r, t)
	if t != nil {
		r.Credentials, r.Name, r.State = *t.creds(), t.comm(), t.state()
		r.Nice, r.Policy, r.Priority, r.Affinity = t.traits.Nice, t.traits.Policy, t.traits.Priority, t.traits.Affinity(s.config.CPUs)
		r.Started = t.started
		r.Filtered, r.Filters = t.filters.Load().Mode()
		if t.links.Traced != nil {
			r.Tracer = int(t.links.Traced.By().ID())
		}
	}
	s.mu.Unlock()
	if t != nil {
		device, foreground := p.files().TerminalOf(int32(r.Session))
		if device != (fs.Device{}) {
			r.Terminal, r.TerminalGroup = int(device.Number()), int(foreground)
		}
		where := p.files().Where()
		r.Umask, r.TableSize = where.Umask, p.files().TableSize()
	}
	return r, true
}

// signals fills in the fields about signals. The caller holds System.mu.
func (w shownProcess) signals(r *procfs.Stat, t *Task) {
	if w.p.signals == nil {
		return
	}
	ignored, caught := w.p.signals.Dispositions()
	r.Ignored, r.Caught, r.Queued = uint64(ignored), uint64(caught), uint64(w.p.signals.Queued())
	if t != nil {
		own, shared := t.signals.Waiting()
		r.Pending, r.SharedPending, r.Blocked = uint64(own), uint64(shared), uint64(t.signals.Mask())
	}
}

// use fills in the resources that thread t has used, or that the whole process has used if the entry is for the
// process's ID. The caller holds System.mu.
func (w shownProcess) use(r *procfs.Stat, t *Task) {
	u := w.p.used()
	if t != nil && t.id != w.p.node.PID {
		u = &t.usage
	}
	r.User, r.System = time.Duration(u.User.Load()), time.Duration(u.System.Load())
	r.Minor, r.Major = uint64(u.Minor.Load()), uint64(u.Major.Load())
	r.Voluntary, r.Involuntary = uint64(u.Voluntary.Load()), uint64(u.Involuntary.Load())
	r.ResidentPeak = uint64(w.p.used().Peak.Load()) << mem.PageShift
	c := &w.p.children
	r.ChildUser, r.ChildSystem = time.Duration(c.User.Load()), time.Duration(c.System.Load())
	r.ChildMinor, r.ChildMajor = uint64(c.Minor.Load()), uint64(c.Major.Load())
}

// state returns the state of the task as a letter of ps(1). The caller holds System.mu.
func (t *Task) state() byte {
	switch {
	case t.links.Traced != nil && t.links.Traced.IsStopped():
		return 't'
	case t.process.stopped && !t.roams():
		return 'T'
	case t.process.expects != nil && t.sleeps.Load(): // the parent of a vfork child waits for the child
		return 'S'
	case t.sleeps.Load():
		return 'S'
	}
	return 'R'
}

// borrow returns the memory of the process, or nil after its end. The caller calls leave on the memory when it no longer uses it.
func (p *Process) borrow() *addressSpace {
	for a := p.space.Load(); a != nil; a = p.space.Load() {
		switch {
		case a.borrow():
			return a
		case p.space.Load() == a:
			return nil
		}
	}
	return nil
}

// Owner implements procfs.Process.
func (w shownProcess) Owner() (uid, gid uint32, dumpable bool) {
	s := w.p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	c := w.p.creds()
	return c.EUID, c.EGID, w.p.dumpable.Load()
}

// MayInspect implements procfs.Process.
func (w shownProcess) MayInspect(c fs.Caller) bool {
	s := w.p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tasks[family.PID(c.TID)]
	return t != nil && t.mayInspect(w.p, true)
}

// Descriptors implements procfs.Process.
func (w shownProcess) Descriptors() []int {
	if !w.lives() {
		return nil
	}
	return w.p.files().Descriptors()
}

// lives reports whether the process has not ended.
func (w shownProcess) lives() bool {
	s := w.p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[w.p.node.PID] == w.p
}

// Descriptor implements procfs.Process.
func (w shownProcess) Descriptor(fd int) (procfs.Descriptor, bool) {
	if !w.lives() {
		return procfs.Descriptor{}, false
	}
	d, ok := w.p.files().Describe(fd)
	return procfs.Descriptor{Name: d.Name, Place: d.Place, Flags: d.Flags, Offset: d.Offset, Inode: d.Inode, Mount: 1, Extra: d.Extra}, ok
}

// AccessOf implements procfs.Process.
func (w shownProcess) AccessOf(fd int) (flags int, open bool) {
	if !w.lives() {
		return 0, false
	}
	return w.p.files().AccessOf(fd)
}

// Link implements procfs.Process.
func (w shownProcess) Link(l procfs.Link) (place fs.Place, path string, ok bool) {
	if !w.lives() {
		return place, "", false
	}
	switch where := w.p.files().Where(); l {
	case procfs.WorkingDirectory:
		return where.Dir, where.DirPath, true
	case procfs.Root:
		return where.Root, where.RootPath, true
	}
	e := w.p.executable()
	return e.place, e.path, true
}

// Mounted implements procfs.Process.
func (w shownProcess) Mounted() []fs.Mounted {
	if !w.lives() {
		return nil
	}
	return w.p.files().Mounted()
}

// Tree implements procfs.Process.
func (w shownProcess) Tree() *fs.Tree {
	if !w.lives() {
		return nil
	}
	return w.p.files().View().Tree
}

// Counts implements procfs.Process.
func (w shownProcess) Counts() procfs.Counts {
	s := w.p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	u := w.p.used()
	return procfs.Counts{
		BytesRead: uint64(u.BytesRead.Load()), BytesWritten: uint64(u.BytesWritten.Load()),
		Reads: uint64(u.Reads.Load()), Writes: uint64(u.Writes.Load()),
	}
}

// Set implements procfs.Process.
func (w shownProcess) Set(c fs.Caller, tid int, a procfs.Attribute, text string) error {
	p, s := w.p, w.p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	caller := s.tasks[family.PID(c.TID)]
	if caller == nil {
		return linux.EPERM
	}
	switch a {
	case procfs.Name:
		t := w.task(tid)
		if t == nil || caller.process != p {
			return linux.EINVAL
		}
		t.setComm(text[:min(len(text), nameSize-1)])
	case procfs.KillPreference:
		const least, most = -1000, 1000
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < least || n > most:
			return linux.EINVAL
		case int32(n) < p.killPreference.Load() && !caller.creds().Has(linux.CAP_SYS_RESOURCE):
			return linux.EACCES
		}
		p.killPreference.Store(int32(n))
	case procfs.LoginUser:
		n, err := strconv.ParseUint(text, 10, 32)
		switch {
		case err != nil:
			return linux.EINVAL
		case caller.process != p || p.loginUser.Load() != noLogin && !caller.creds().Has(linux.CAP_AUDIT_CONTROL):
			return linux.EPERM
		}
		p.loginUser.Store(uint32(n))
	}
	return nil
}

// noLogin is the content of /proc/PID/loginuid of a process that no login has started.
const noLogin = ^uint32(0)

// files returns the descriptors, the working folder and the root folder of the process.
func (p *Process) files() *posix.Process {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	return p.posix
}

// executable returns the program that the process runs.
func (p *Process) executable() executed {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	return p.exe
}

// running returns the number of tasks that run or are runnable, and the number of all tasks. The caller holds System.mu.
func (s *System) running() (n, all int) {
	for t := range maps.Values(s.tasks) {
		if t.state() == 'R' {
			n++
		}
	}
	return n, len(s.tasks)
}
