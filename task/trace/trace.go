// Package trace implements debugging (ptrace(2)): stops of traced threads, requests of their tracers, and the state of a
// thread that a tracer reads and changes.
//
// It refers to processes and threads only by the interfaces in thread.go. stops.go has the stops, ptrace.go and request.go
// the requests, registers.go and debug.go the registers, and wait.go the events of traced threads for wait(2).
package trace

import (
	"loam/task/machine"
	"loam/task/signal"
)

// State holds the settings of the tracer of a thread, and the reason of the current stop.
type State struct {
	Options uint64
	Message uint64       // result of PTRACE_GETEVENTMSG
	Info    *signal.Info // result of PTRACE_GETSIGINFO; nil in a group stop

	Entering bool // the stop is at the beginning of a call
	Leaving  bool // the stop is at the end of a call
	Filtered bool // the stop was caused by SECCOMP_RET_TRACE
	InCall   bool
	Number   uint64 // number of the system call; valid only if InCall is set
	Debug    DebugRegisters
}

// Again describes a system call that ended with EINTR and may be made again.
type Again struct {
	Pending bool
	Number  uint64
	Kind    signal.Interrupted
}

// Stopped gives access to the state of a stopped thread. The caller of a method ensures that the thread stays
// stopped.
type Stopped struct {
	*State
	Thread  machine.Thread
	Again   *Again
	Signals *signal.Thread
	// Attend makes the thread check its signals when it runs.
	Attend func()
}
