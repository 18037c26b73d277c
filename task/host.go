package task

import (
	"loam/abi/linux"
	"loam/posix"
	"loam/posix/call"
	"loam/posix/file"
	"loam/task/machine"
	"loam/task/schedule"
	"loam/task/signal"
	"loam/task/spawn"
)

// A Host is a Go program in ring 0 as process 1 of the system: the parent of the processes that it spawns. It has
// neither memory nor threads here. It passes its calls about other processes to Host.Call, which serves each by a
// Task that exists only during the call.

// HostConfig describes the program in ring 0.
type HostConfig struct {
	// Process has the descriptors, the working folder and the root folder of the program. Children get copies.
	Process *posix.Process
	// Signal delivers a signal to the program. It is called with System.mu held, and does not wait.
	Signal func(n int)
	// Executable is the path of the file that /proc/self/exe is in a child until its program is loaded.
	Executable string
	// Ignored returns the signals that the program ignores, which its children inherit.
	Ignored func() signal.Set
}

// Host is the program in ring 0 as a process.
type Host struct {
	config  HostConfig
	process *Process
	thread  *signal.Thread
}

// NewHost makes the program in ring 0 process 1 of the system. It is called once, before the first process starts.
// Children that end are zombies until the program waits for them. Processes that lose their parent become its children
// as well, and leave no zombies.
func (s *System) NewHost(c HostConfig) *Host {
	h := &Host{config: c}
	p := newProcess(s, s.root)
	p.host = h
	p.posix = c.Process
	p.lastCreds = c.Process.Identity()
	p.dumpable.Store(false)
	p.signals, h.thread = signal.NewProcess()
	h.process = p
	c.Process.SetGroups(groups{s})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root.NoZombies, s.root.Foster = false, true
	s.processes[s.root.PID], s.mounts = p, c.Process.View().Tree
	return h
}

// hosted reports whether process 1 is a Go program (a Host).
func (s *System) hosted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[s.root.PID] != nil
}

// take delivers a signal to the program in ring 0. SIGKILL and SIGSTOP have no effect on process 1 (kill(2)).
func (h *Host) take(n signal.Number) {
	if n != signal.Kill && n != signal.Stop {
		h.config.Signal(int(n))
	}
}

// Call serves a system call of the program that concerns processes. Errors: ENOSYS for a call that package task does not have.
func (h *Host) Call(c call.Caller, number int, a call.Args) (uint64, linux.Errno) {
	serve := served[number]
	if serve == nil {
		return 0, linux.ENOSYS
	}
	t := &Task{process: h.process, id: h.process.node.PID, signals: h.thread, caller: c}
	t.use(machine.None{})
	return serve(t, a)
}

// Spawn starts a process, and returns its ID and its pidfd, or -1 without ProcessFD. Errors: those of fork(2),
// execve(2), and the calls between them.
func (h *Host) Spawn(q spawn.Attributes) (pid, fd int, errno linux.Errno) {
	s := h.process.system
	s.mu.Lock()
	node, err := s.tree.Fork(s.root, false)
	s.mu.Unlock()
	if err != nil {
		return 0, -1, file.ToErrno(err)
	}
	p := newProcess(s, node)
	fd = -1
	if q.ProcessFD {
		if fd, errno = h.config.Process.InstallProcess(p.ref, 0); errno != 0 {
			h.discard(p, nil)
			return 0, -1, errno
		}
	}
	t := h.newborn(p)
	if errno := t.prepare(&q); errno != 0 {
		if fd >= 0 {
			h.config.Process.CloseProcess(fd, p.ref)
		}
		h.discard(p, t)
		return 0, -1, errno
	}
	go t.loop()
	return int(node.PID), fd, 0
}

// newborn returns the first task of a new child process. The child inherits from the program in ring 0, and
// has no program loaded yet.
func (h *Host) newborn(p *Process) *Task {
	s := p.system
	p.posix = h.config.Process.Fork(int32(p.node.PID), 0)
	p.posix.SetOwner(p.ref, p.sendTimer, p.cpuTime)
	v := p.posix.View()
	if place, err := v.Lookup(v.Root, h.config.Executable, true); err == nil {
		p.exe = executed{path: h.config.Executable, place: place}
	}
	var signals *signal.Thread
	p.signals, signals = signal.NewProcess()
	ignored := h.config.Ignored()
	for n := signal.Number(1); n <= signal.Last; n++ {
		if ignored.Has(n) {
			p.signals.SetAction(n, signal.Action{Handler: signal.Ignore})
		}
	}
	creds := *h.config.Process.Identity()
	s.mu.Lock()
	t := p.newTask(p.node.PID, machine.None{}, signals, p.posix, &creds)
	s.processes[p.node.PID] = p
	s.forks++
	s.mu.Unlock()
	t.setComm("loam")
	t.traits.Slack = schedule.DefaultSlack
	return t
}

// discard removes a process whose program was not started.
func (h *Host) discard(p *Process, t *Task) {
	if t != nil {
		p.posix.CloseAll()
		p.endSession()
		p.system.mu.Lock()
		t.closed = true
		p.remove(t, false)
		delete(p.system.processes, p.node.PID)
		p.system.mu.Unlock()
	}
	p.system.undo(p.node)
}

// prepare makes the calls that the child makes before it loads a program, and loads the program.
func (t *Task) prepare(q *spawn.Attributes) linux.Errno {
	c := &spawn.Caller{Call: t.call}
	t.caller.Memory = &c.Memory
	if errno := c.Prepare(q); errno != 0 {
		return errno
	}
	i, err := t.process.load(t.caller.Process, t.creds(), linux.AT_FDCWD, q.Path, q.Args, q.Env)
	if err != nil {
		return file.ToErrno(err)
	}
	t.begin(i)
	return 0
}

// begin makes an image the first program of the task's process.
func (t *Task) begin(i *image) {
	p, s := t.process, t.process.system
	files := p.posix.Exec()
	if i.secure || i.creds.MorePrivileged(t.creds()) {
		p.deathSignal.Store(0)
	}
	t.caller.Memory = memory{t}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.dumpable.Store(i.dumps)
	p.posix, p.exe = files, i.program
	p.node.Executed = true
	t.use(i.thread)
	t.setComm(i.name)
	t.callAs(files, &i.creds)
	p.space.Store(i.space)
	p.applyLimits()
}
