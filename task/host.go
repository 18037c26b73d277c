package task

import (
	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/posix"
	"loam/posix/call"
	"loam/task/signal"
)

// A Host is a Go program in ring 0 as process 1 of the system: the parent of the processes that it spawns. It has
// neither memory nor threads here. Its calls about other processes come by Host.Call; each is served by a Task that
// exists for the time of the call.

// HostConfig describes the program in ring 0.
type HostConfig struct {
	// Process has the descriptors and the place in the file tree, of which children get copies.
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
	s.processes[s.root.PID] = p
	return h
}

// hosted reports whether process 1 is a Host.
func (s *System) hosted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[s.root.PID] != nil
}

// take delivers a signal to the program. SIGKILL and SIGSTOP have no effect on process 1 (kill(2)).
func (h *Host) take(n signal.Number) {
	if n != signal.Kill && n != signal.Stop {
		h.config.Signal(int(n))
	}
}

// Call serves a system call of the program that concerns processes. Errors: ENOSYS for a call that package task does
// not have.
func (h *Host) Call(c call.Caller, number int, a call.Args) (uint64, linux.Errno) {
	serve := served[number]
	if serve == nil {
		return 0, linux.ENOSYS
	}
	t := &Task{process: h.process, id: h.process.node.PID, thread: noThread{}, signals: h.thread, caller: c}
	t.since = h.process.system.clock()
	return serve(t, a)
}

// noThread implements Thread for a task that does not run in ring 3: one of a Host, or one whose program is not loaded
// yet.
type noThread struct{}

func (noThread) Run() Reason                   { return Interrupted }
func (noThread) Registers() *amd64.Frame       { return &amd64.Frame{} }
func (noThread) Restore()                      {}
func (noThread) FaultAddress() uint64          { return 0 }
func (noThread) Kick()                         {}
func (noThread) Settle()                       {}
func (noThread) Bases() (fs, gs uint64)        { return 0, 0 }
func (noThread) SetBases(uint64, uint64) error { return linux.EPERM }
func (noThread) VectorSize() int               { return 0 }
func (noThread) Vectors([]byte)                {}
func (noThread) SetVectors([]byte)             {}
func (noThread) VectorComponents() uint64      { return 0 }
func (noThread) SetDebug([4]uint64, uint64)    {}
func (noThread) DebugStatus() uint64           { return 0 }
func (noThread) Close()                        {}
