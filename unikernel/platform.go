package unikernel

import (
	"context"
	"strings"

	"loam/unikernel/image"
)

// Platform is what a program runs on.
type Platform int

// Platforms.
const (
	Process Platform = iota // a process of Linux
	Machine                 // a virtual machine, in ring 0
)

// String is the name that users give it.
func (p Platform) String() string {
	if p == Machine {
		return "vm"
	}
	return "process"
}

// Choice is the best platform that this machine has.
type Choice struct {
	Platform Platform
	Emulator Emulator // of platform Machine
	Why      string   // a sentence for people, without its full stop
}

// Choose takes a virtual machine where there is a QEMU to make it, and a process
// where there is none. Only ctx can make it fail.
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

// ChooseMachine is for who wants a virtual machine and nothing else.
func ChooseMachine(ctx context.Context) (Choice, error) {
	e, err := FindEmulator(ctx)
	if err == nil && e.Version == "" {
		err = errorf("install QEMU 7.2 or later (Debian: apt-get install qemu-system-x86), or use --platform process", "%s", e.Why)
	}
	return Choice{Platform: Machine, Emulator: e}, err
}

// flags are those of the go command with what the linker must be told for the platform.
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
