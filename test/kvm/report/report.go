// Package report is what the program under KVM, the Linux around it and the test agree on.
package report

import "time"

// State is what the program says of itself.
type State struct {
	Wall  int64         // the time of the day, in nanoseconds since 1970
	Since time.Duration // since it began, by the monotonic clock
	CPUs  int
}

// Status is how the program ends when it is told to.
const Status = 7

// Paths in the file system of Linux.
const (
	First   = "/init"
	Program = "/program.elf"
	Modules = "/modules" // in the order in which they are loaded, by name
)

// What the first process says of each machine, in a line that begins so, and at the end.
const (
	OK     = "ok: "
	Failed = "failed: "
	End    = "end of the machines"
)

// Machines are those that the program runs on.
var Machines = []Machine{{"q35", 1}, {"q35", 2}, {"microvm", 1}, {"microvm", 2}}

// Machine is one.
type Machine struct {
	Model string
	CPUs  int
}
