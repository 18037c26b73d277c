package unikernel

import (
	"context"
	"strings"

	"loam/unikernel/image"
)

// Platform is the environment that a program runs in.
type Platform int

// Values of Platform.
const (
	Process Platform = iota // the program runs as a Linux process
	Machine                 // the program runs in ring 0 of a virtual machine
)

// String returns the name that users write (--platform).
func (p Platform) String() string {
	if p == Machine {
		return "vm"
	}
	return "process"
}

// Choice is the platform chosen for a program, with the reason.
type Choice struct {
	Platform Platform
	Emulator Emulator // QEMU's properties, for platform Machine
	Why      string   // the reason, a sentence for users without its full stop
}

// Choose chooses a virtual machine if a usable QEMU is installed, and a process otherwise. It fails only if ctx ends.
func Choose(ctx context.Context) (Choice, error) {
	e, err := FindEmulator(ctx)
	switch {
	case err != nil:
		return Choice{}, err
	case e.Version == "":
		return Choice{Platform: Process, Why: "as a process: " + e.Why}, nil
	case e.Accelerator == KVM:
		return Choice{Machine, e, "in a virtual machine, by KVM"}, nil
	}
	return Choice{Machine, e, "in a virtual machine that QEMU emulates: " + e.Why}, nil
}

// ChooseMachine chooses a virtual machine, and fails if no usable QEMU is installed.
func ChooseMachine(ctx context.Context) (Choice, error) {
	e, err := FindEmulator(ctx)
	if err == nil && e.Version == "" {
		err = errorf("install QEMU 7.2 or later (Debian: apt-get install qemu-system-x86), or use --platform process", "%s", e.Why)
	}
	return Choice{Platform: Machine, Emulator: e}, err
}

// flags returns the given flags with the linker flags that the platform needs.
func (p Platform) flags(given []string) []string {
	if p != Machine {
		return given
	}
	var flags []string
	link := image.LinkFlags()
	for _, f := range given {
		if more, ok := strings.CutPrefix(f, "-ldflags="); ok {
			link = more + " " + link
		} else {
			flags = append(flags, f)
		}
	}
	return append(flags, "-ldflags="+link)
}
