package trace

import (
	"iter"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/family"
	"loam/task/machine"
	"loam/task/signal"
)

// System is the set of all processes. Its lock guards Tracees, Links and signals, and must be held by callers of methods of
// Process, unless their comment says otherwise.
type System interface {
	Lock()
	Unlock()
	// Thread returns the thread with an ID, and Process the process with an ID. They return nil if there is none.
	Thread(id family.PID) Thread
	Process(id family.PID) Process
	Tree() *family.Tree
	// Forget removes the record of a process that is not waited for any more.
	Forget(id family.PID)
}

// Process is a process with threads that are traced or that trace others.
type Process interface {
	Node() *family.Process
	Links() *ProcessLinks
	Threads() iter.Seq[Thread]
	// Ending reports whether the process is ending, with the wait status Status.
	Ending() bool
	Status() int32
	// Stopped reports whether the process is stopped, and StopSignal returns the signal that stopped it last.
	Stopped() bool
	StopSignal() signal.Number
	// Send sends a signal to one thread, or if to is nil, to the process.
	Send(to Thread, i signal.Info)
	// ChildNews sends SIGCHLD because a child has ended, stopped or continued, and WakeWaiters wakes threads that wait for
	// children.
	ChildNews(child Process, code, status int32)
	WakeWaiters()
	// HidesStops reports whether the process wants no SIGCHLD when a child stops (SA_NOCLDSTOP).
	HidesStops() bool
	// Forker returns the ID of the thread that has created the process; 0: none.
	Forker() family.PID
	// Borrow returns the memory of the process, and a function that ends its use. It returns nil after the end of the
	// process. The lock of System need not be held.
	Borrow() (m *mem.Map, leave func())
}

// Thread is a thread that is traced, or that traces others.
type Thread interface {
	ID() family.PID
	Process() Process
	System() System
	Links() *Links
	Machine() machine.Thread
	Signals() *signal.Thread
	Again() *Again
	Identity() *credential.Set
	// Memory returns the memory of the process, for system calls of the thread.
	Memory() call.Memory
	// MayTrace reports whether the thread may trace a process.
	MayTrace(p Process) bool

	// Attend makes the thread check its signals before it next returns to ring 3. Alert also interrupts it, so that it does
	// so at once.
	Attend()
	Alert()
	// Hook sets whether system calls of the thread check for a tracer, and Hooked returns the setting.
	Hook(on bool)
	Hooked() bool
	// Await waits until ready is closed. Errors: EINTR.
	Await(ready <-chan struct{}) linux.Errno
	// Dismissed reports whether the thread must end because another thread of its process calls execve. Leaving reports
	// whether it is ending.
	Dismissed() bool
	Leaving() bool
}

// Links holds the relations of a thread with its tracer, and with the threads that it traces.
type Links struct {
	Traced  *Tracee // nil: the thread is not traced
	Tracees []*Tracee
	inStop  bool // the thread has begun the stop of its process, or waits in GroupStop
}

// ProcessLinks holds the relation of a process with a tracer.
type ProcessLinks struct {
	First *Tracee // the Tracee of the first thread, after that thread has ended
}

// locked calls f while it holds the lock of System.
func locked(t Thread, f func() (uint64, linux.Errno)) (uint64, linux.Errno) {
	t.System().Lock()
	defer t.System().Unlock()
	return f()
}

// number returns the int in the lower half of a register.
func number(a uint64) int { return int(int32(a)) }

// Values of si_code with SIGTRAP (sigaction(2)).
const (
	trapBreakpoint = 1 // TRAP_BRKPT: a single step over a system call
	trapStep       = 2
	trapWatch      = 4 // TRAP_HWBKPT: a debug register
)
