package task

import "loam/task/machine"

// The interface to ring 3: see package machine.
type (
	Reason  = machine.Reason
	Machine = machine.Machine
	Space   = machine.Space
	Thread  = machine.Thread
)

// Reasons why a thread left ring 3.
const (
	Call        = machine.Call
	Fault       = machine.Fault
	Exception   = machine.Exception
	Interrupted = machine.Interrupted
)
