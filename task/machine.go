package task

import "loam/task/machine"

// These names belong to the interface to ring 3, which is in package machine.
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
	Moved       = machine.Moved
)
