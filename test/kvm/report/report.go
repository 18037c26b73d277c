// Package report contains the names, paths and types that three programs share: the program that runs on Loam under
// KVM, the first process of the Linux around it, and the test.
package report

import (
	"os"
	"time"
)

// State is the program's report about itself.
type State struct {
	Wall  int64         // wall clock time in ns since 1970
	Since time.Duration // time since the program started, by its monotonic clock
	CPUs  int
}

// Status is the exit status of the program when it is asked to exit.
const Status = 7

// Paths in the file system of the Linux guest.
const (
	First   = "/init"
	Program = "/program.elf"
	Modules = "/modules" // kernel modules, loaded in the order of their names
)

// Prefixes of the lines in which the first process reports the result of each machine.
const (
	OK     = "ok: "
	Failed = "failed: "
)

// All is an environment variable. If it is set, machines with two CPUs are tested too. The test passes
// it on to the first process.
const All = "LOAM_KVM_ALL"

// Machines returns the machines that the program runs on. Two CPUs are not tested by default: the
// emulated virtualisation sometimes fails with them, including Linux itself (decision 42).
func Machines() []Machine {
	machines := []Machine{{"q35", 1}, {"microvm", 1}}
	if os.Getenv(All) != "" {
		machines = append(machines, Machine{"q35", 2}, Machine{"microvm", 2})
	}
	return machines
}

// Machine is one virtual machine: its QEMU model and its number of CPUs.
type Machine struct {
	Model string
	CPUs  int
}
