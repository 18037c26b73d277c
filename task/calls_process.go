package task

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/posix"
	"loam/posix/call"
	"loam/posix/file"
	"loam/task/clone"
	"loam/task/family"
	"loam/task/rseq"
	"loam/task/trace"
)

// processCalls are the calls that create, replace and end processes and threads.
var processCalls = map[int]serveFunc{
	linux.SYS_CLONE:  func(t *Task, a call.Args) (uint64, linux.Errno) { return t.clone(clone.Parse(a)) },
	linux.SYS_CLONE3: func(t *Task, a call.Args) (uint64, linux.Errno) { return t.clone(clone.Parse3(t.caller.Memory, a)) },
	linux.SYS_FORK:   func(t *Task, _ call.Args) (uint64, linux.Errno) { return t.clone(clone.Fork(), 0) },
	linux.SYS_VFORK:  func(t *Task, _ call.Args) (uint64, linux.Errno) { return t.clone(clone.VFork(), 0) },
	linux.SYS_EXECVE: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.execve(linux.AT_FDCWD, a.A1, a.A2, a.A3, 0)
	},
	linux.SYS_EXECVEAT: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.execve(number(a.A1), a.A2, a.A3, a.A4, number(a.A5))
	},
	linux.SYS_EXIT: func(t *Task, a call.Args) (uint64, linux.Errno) {
		t.leaving, t.exited, t.exitCode = true, true, int32(a.A1&0xff)<<8
		s := t.process.system
		s.mu.Lock()
		defer s.mu.Unlock()
		if !t.process.ending { // the status of the last thread is the status of the process
			t.process.status = int32(a.A1&0xff) << 8
		}
		return 0, noResult
	},
	linux.SYS_EXIT_GROUP: func(t *Task, a call.Args) (uint64, linux.Errno) {
		s := t.process.system
		s.mu.Lock()
		defer s.mu.Unlock()
		t.process.end(int32(a.A1&0xff) << 8)
		t.leaving = true
		return 0, noResult
	},
}

// clone creates a thread or a process, unless decoding of the request has failed. Errors: EINVAL, EPERM, EAGAIN, ENOMEM, EMFILE.
func (t *Task) clone(c clone.Request, errno linux.Errno) (uint64, linux.Errno) {
	if errno == 0 {
		errno = c.Check()
	}
	switch {
	case errno != 0:
		return 0, errno
	case c.Thread():
		return t.newThread(c)
	}
	return t.fork(c)
}

// copied returns a new thread in an address space. Its registers are those that a child of clone(2) has at
// its start: a copy of this task's registers.
func (t *Task) copied(space Space, c clone.Request) (Thread, linux.Errno) {
	child, err := space.NewThread()
	if err != nil {
		return nil, linux.ENOMEM
	}
	f := child.Registers()
	*f = *t.registers
	f.AX = 0
	if c.Stack != 0 {
		f.SP = c.Stack
	}
	fs, gs := t.thread.Bases()
	if c.Flags&linux.CLONE_SETTLS != 0 {
		fs = c.TLS
	}
	if child.SetBases(fs, gs) != nil {
		child.Close()
		return nil, linux.EPERM
	}
	b := make([]byte, t.thread.VectorSize())
	t.thread.Vectors(b)
	child.SetVectors(b)
	child.Restore()
	return child, 0
}

func (t *Task) newThread(c clone.Request) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	thread, errno := t.copied(t.memory().Space, c)
	if errno != 0 {
		return 0, errno
	}
	s.mu.Lock()
	if errno := t.mayClone(); errno != 0 {
		s.mu.Unlock()
		thread.Close()
		return 0, errno
	}
	id, err := s.tree.Thread()
	if err != nil || p.ending || t.dismissed.Load() { // the threads are ending: a new thread would not be asked to end
		if err == nil {
			s.tree.Forget(id)
		}
		s.mu.Unlock()
		thread.Close()
		return 0, linux.EAGAIN
	}
	child := p.newTask(id, thread, p.signals.Clone(t.signals.Mask()), p.posix, t.creds())
	child.setComm(t.comm())
	child.traits = t.traits.Inherited()
	s.forks++
	child.inherit(t)
	event := trace.Inherit(traceTask{t}, traceTask{child}, c.Flags, c.Signal)
	s.mu.Unlock()
	t.announce(child, c, memory{t})
	go child.loop()
	if event != 0 {
		trace.Event(traceTask{t}, event, uint64(id))
	}
	return uint64(id), 0
}

// announce writes the ID of a new thread to the addresses that the flags of clone(2) select.
func (t *Task) announce(child *Task, c clone.Request, of memory) {
	if c.Flags&linux.CLONE_PARENT_SETTID != 0 {
		memory{t}.setWord(c.ParentID, uint32(child.id))
	}
	if c.Flags&linux.CLONE_CHILD_SETTID != 0 {
		of.setWord(c.ChildID, uint32(child.id))
	}
	if c.Flags&linux.CLONE_CHILD_CLEARTID != 0 {
		child.clearID = c.ChildID
	}
}

// fork creates a process. With CLONE_VFORK it waits until the child has memory of its own (execve), or has ended.
func (t *Task) fork(c clone.Request) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	if c.Mounts() && !t.creds().Has(linux.CAP_SYS_ADMIN) {
		return 0, linux.EPERM
	}
	s.mu.Lock()
	errno := t.mayClone() // also before the copy of the memory: a fork bomb at its limit would copy it in vain
	s.mu.Unlock()
	if errno != 0 {
		return 0, errno
	}
	space, errno := t.forkMemory(c)
	if errno != 0 {
		return 0, errno
	}
	thread, errno := t.copied(space.Space, c)
	if errno != 0 {
		space.leave()
		return 0, errno
	}
	s.mu.Lock()
	var node *family.Process
	if t.mayClone() == 0 {
		node, _ = s.tree.Fork(p.node, c.Flags&linux.CLONE_PARENT != 0) // nil on error
	}
	s.mu.Unlock()
	if node == nil {
		thread.Close()
		space.leave()
		return 0, linux.EAGAIN
	}
	child := newProcess(s, node)
	if c.Flags&linux.CLONE_PIDFD != 0 {
		if errno = t.installProcess(child, c.PIDFD); errno != 0 {
			s.undo(node)
			thread.Close()
			space.leave()
			return 0, errno
		}
	}
	child.posix = forkFiles(p.posix, node.PID, c)
	child.posix.SetOwner(child.ref, child.sendTimer, child.cpuTime)
	child.space.Store(space)
	child.inherit(p)
	var gone chan struct{}
	if c.Flags&linux.CLONE_VFORK != 0 {
		gone = make(chan struct{})
		child.expects = gone
	}
	s.mu.Lock()
	process, signals := t.signals.Fork()
	child.signals = process
	ct := child.newTask(node.PID, thread, signals, child.posix, t.creds())
	ct.setComm(t.comm())
	ct.altStack, ct.traits = t.altStack, t.traits.Inherited()
	if ct.rseq = t.rseq; c.Flags&linux.CLONE_VM != 0 {
		ct.rseq = rseq.Registration{}
	}
	thread.Watch(ct.rseq.Active())
	child.retime()
	if c.Flags&linux.CLONE_VM != 0 && c.Flags&linux.CLONE_VFORK == 0 {
		ct.altStack = noAltStack
	}
	s.processes[node.PID] = child
	s.forks++
	child.forker = t.id
	ct.inherit(t)
	event := trace.Inherit(traceTask{t}, traceTask{ct}, c.Flags, c.Signal)
	if c.Flags&linux.CLONE_PARENT == 0 {
		node.ExitSignal, node.Creator = int32(c.Signal), t.id
	}
	if c.Flags&linux.CLONE_CLEAR_SIGHAND != 0 {
		signals.Exec()
	}
	if p.ending { // the process ends, and the signal that ended it has not reached the child: without this check, kill(-1) would not end a fork bomb
		child.end(linux.SIGKILL)
	}
	s.mu.Unlock()
	t.announce(ct, c, memory{ct})
	go ct.loop()
	if event != 0 {
		trace.Event(traceTask{t}, event, uint64(node.PID))
	}
	if gone != nil {
		t.awaitDespiteSignals(gone) // execve or the end of the child
		trace.Event(traceTask{t}, linux.PTRACE_EVENT_VFORK_DONE, uint64(node.PID))
	}
	return uint64(node.PID), 0
}

// awaitDespiteSignals waits until ready is closed. Only the end of this thread interrupts the wait. Errors: EINTR.
func (t *Task) awaitDespiteSignals(ready <-chan struct{}) linux.Errno {
	for {
		if errno := t.await(ready, forever); errno == 0 || t.ends() {
			return errno
		}
	}
}

// ends reports whether the thread or its process is ending.
func (t *Task) ends() bool {
	t.process.system.mu.Lock()
	defer t.process.system.mu.Unlock()
	return t.process.ending || t.dismissed.Load()
}

// inherit copies the properties of a process to its child that fork(2) preserves and that have no other owner.
func (p *Process) inherit(parent *Process) {
	p.exe, p.limits = parent.exe, parent.limits
	p.dumpable.Store(parent.dumpable.Load())
	p.smallPages.Store(parent.smallPages.Load())
	p.loginUser.Store(parent.loginUser.Load())
	p.persona.Store(parent.persona.Load())
	p.killPreference.Store(parent.killPreference.Load())
}

// forkMemory returns the memory of a child: the parent's own memory, or a copy of it. If no page is free, it frees some.
func (t *Task) forkMemory(c clone.Request) (*addressSpace, linux.Errno) {
	own := t.memory()
	if c.Flags&linux.CLONE_VM != 0 {
		own.users.Add(1)
		return own, 0
	}
	tables, err := t.process.system.config.Machine.NewSpace()
	if err != nil {
		return nil, linux.ENOMEM
	}
	m, err := own.Fork(tables)
	for ; err == mem.ErrNoPage && !t.ends(); m, err = own.Fork(tables) {
		t.process.system.guard.Exhausted(t.process.kill)
	}
	if err != nil {
		tables.Close()
		return nil, file.ToErrno(err)
	}
	a := &addressSpace{Space: tables, Map: m}
	a.users.Store(1)
	a.barriers.Store(own.barriers.Load())
	return a, 0
}

// forkFiles returns the descriptors and the place in the file tree of a new process.
func forkFiles(p *posix.Process, pid family.PID, c clone.Request) *posix.Process {
	share := posix.Share(0)
	if c.Flags&linux.CLONE_FILES != 0 {
		share |= posix.ShareDescriptors
	}
	if c.Flags&linux.CLONE_FS != 0 {
		share |= posix.SharePlace
	}
	child := p.Fork(int32(pid), share)
	if c.Mounts() {
		child.CopyMounts()
	}
	return child
}

// clearTID clears the word of set_tid_address(2) and wakes a waiter. The caller has released the robust futexes before: a
// thread that pthread_join(3) has woken may lock them.
func (t *Task) clearTID() {
	if t.clearID == 0 {
		return
	}
	if (memory{t}).setWord(t.clearID, 0) == 0 {
		t.process.system.futexes.WakeAt(t.memory().Map, t.clearID)
	}
}
