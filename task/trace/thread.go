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

// System is all processes. Its lock guards Tracees, Links, signals, and the methods of Process without another comment.
type System interface {
	Lock()
	Unlock()
	// Thread returns the thread with an ID, and Process the process with one; nil: there is none.
	Thread(id family.PID) Thread
	Process(id family.PID) Process
	Tree() *family.Tree
	// Forget removes the record of a process that is not waited for any more.
	Forget(id family.PID)
}

// Process is a process with threads that are traced or trace.
type Process interface {
	Node() *family.Process
	Links() *ProcessLinks
	Threads() iter.Seq[Thread]
	// Ending reports whether all threads end, with Status.
	Ending() bool
	Status() int32
	// Stopped reports whether the process is stopped, and StopSignal by which signal it was last.
	Stopped() bool
	StopSignal() signal.Number
	// Send sends a signal to one thread, or if to is nil, to the process.
	Send(to Thread, i signal.Info)
	// ChildNews notifies the process that a child has ended, stopped or continued, and WakeWaiters its waits.
	ChildNews(child Process, code, status int32)
	WakeWaiters()
	// HidesStops reports whether the process wants no signal for stops of its children (SA_NOCLDSTOP).
	HidesStops() bool
	// Forker returns the thread that has created the process; 0: none.
	Forker() family.PID
	// Borrow returns the memory, and a function that ends its use; nil after the end. The lock need not be held.
	Borrow() (m *mem.Map, leave func())
}

// Thread is a thread that is traced, or traces.
type Thread interface {
	ID() family.PID
	Process() Process
	System() System
	Links() *Links
	Machine() machine.Thread
	Signals() *signal.Thread
	Again() *Again
	Identity() *credential.Set
	// Memory is the memory of the process, for calls of the thread.
	Memory() call.Memory
	// MayTrace reports whether the thread may trace a process.
	MayTrace(p Process) bool

	// Attend makes the thread look at its signals before it runs, and Alert at once.
	Attend()
	Alert()
	// Hook sets whether calls of the thread have hooks, and Hooked reports it.
	Hook(on bool)
	Hooked() bool
	// Await waits until ready is closed. Errors: EINTR.
	Await(ready <-chan struct{}) linux.Errno
	// Dismissed reports whether the thread has to end, since another calls execve, and Leaving whether it ends.
	Dismissed() bool
	Leaving() bool
}

// Links are the relations of a thread with its tracer, and with the threads that it traces.
type Links struct {
	Traced  *Tracee // nil: none
	Tracees []*Tracee
}

// ProcessLinks is the relation of a process with a tracer.
type ProcessLinks struct {
	First *Tracee // of its first thread, after the end of that thread
}

// locked calls f with the lock.
func locked(t Thread, f func() (uint64, linux.Errno)) (uint64, linux.Errno) {
	t.System().Lock()
	defer t.System().Unlock()
	return f()
}

// number returns an int from a register.
func number(a uint64) int { return int(int32(a)) }

// Values of si_code with SIGTRAP (sigaction(2)).
const (
	trapBreakpoint = 1 // a step over a call
	trapStep       = 2
	trapWatch      = 4 // a debug register
)
