// Package report is what the program under KVM, the Linux around it and the test agree on.
package report

import (
	"os"
	"time"
)

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

// What the first process says of each machine, in a line that begins so.
const (
	OK     = "ok: "
	Failed = "failed: "
)

// All is the variable that, set to anything, has machines of two CPUs tried too: for the test,
// which hands it to the first process.
const All = "LOAM_KVM_ALL"

// Machines are those that the program runs on. Two CPUs are not tried by default: the
// emulated virtualisation fails with them now and then, Linux and all (decision 42).
func Machines() []Machine {
	machines := []Machine{{"q35", 1}, {"microvm", 1}}
	if os.Getenv(All) != "" {
		machines = append(machines, Machine{"q35", 2}, Machine{"microvm", 2})
	}
	return machines
}

// Machine is one.
type Machine struct {
	Model string
	CPUs  int
}
