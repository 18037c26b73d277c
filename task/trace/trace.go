// Package trace implements debuggers (ptrace(2)): stops of traced threads, requests of their tracers, and the state of a thread as a
// tracer sees and changes it.
//
// It knows processes and threads by interfaces only (thread.go). stops.go has the stops, ptrace.go and request.go the requests,
// registers.go and debug.go the registers, and wait.go the news of tracees for wait(2).
package trace

import (
	"loam/task/machine"
	"loam/task/signal"
)

// State is the settings of the tracer of a thread, and the reason of the present stop.
type State struct {
	Options uint64
	Message uint64       // PTRACE_GETEVENTMSG
	Info    *signal.Info // PTRACE_GETSIGINFO; nil in a group stop

	Entering bool // the stop is at the beginning of a call
	Leaving  bool // the stop is at the end of a call
	Filtered bool // the stop is by SECCOMP_RET_TRACE
	InCall   bool
	Number   uint64 // number of the system call; valid only if InCall is set
	Debug    DebugRegisters
}

// Again is a call that ended with EINTR, and may be made again.
type Again struct {
	Pending bool
	Number  uint64
	Kind    signal.Interrupted
}

// Stopped is a stopped thread. Its owner keeps it stopped during a method.
type Stopped struct {
	*State
	Thread  machine.Thread
	Again   *Again
	Signals *signal.Thread
	// Attend makes the thread look at its signals when it runs.
	Attend func()
}
