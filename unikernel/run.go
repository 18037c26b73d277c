// Package unikernel builds unmodified Go programs for Loam and runs them.
//
// A Plan says how one program is built: with the stock go command, whose
// -overlay puts edited files in the place of a few files of the standard library
// (package overlay) and adds Loam's own packages to it. The user's module is not
// touched, and need not know of Loam.
//
// Platform process: the program is a process of Linux whose sockets are Loam's.
// What is outside of its network (a gateway, a TAP device) is held by the loam
// command and reaches it as inherited descriptors; package guest says how, and
// package rt is the receiving end.
//
// Platform machine: the same program is the kernel of a virtual machine, in ring 0
// (machine.go). It is linked with package kernel, and package image makes a file of
// it that QEMU boots.
//
// Reading order: run.go, plan.go, target.go, toolchain.go, std.go, build.go;
// then network.go, launch.go and machine.go; gotest.go for tests.
package unikernel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Options says how a program is run.
type Options struct {
	Target  Target
	Args    []string // of the program
	Env     []string // "KEY=VALUE", beside or instead of what is in the environment
	Network Network
	Volumes []Volume      // files of the host that the program has
	Machine MachineConfig // of platform Machine

	// Slow is called, if it is there, when finding and building the program takes long
	// enough for somebody who waits to wonder.
	Slow func()

	results results
}

// slowBuild is how long that is; where nothing has changed it takes a tenth.
const slowBuild = 3 * time.Second

// Run builds a program and runs it to its end. It returns the program's exit
// status, or 128 and the number of the signal that ended it. An *Error is what a
// user can do something about. ctx bounds the time until the program starts;
// after that signals go to the program, which decides when it is over.
func Run(ctx context.Context, o Options) (status int, err error) {
	return onNetwork(&o, func() (string, error) {
		if o.Slow != nil {
			defer time.AfterFunc(slowBuild, o.Slow).Stop()
		}
		p, err := NewPlan(ctx, o.Target)
		if err != nil {
			return "", err
		}
		if err := p.Build(ctx); err != nil {
			return "", err
		}
		return p.Program, context.Cause(ctx)
	})
}

// RunProgram is Run for a program that has been built for Loam, such as a test
// binary of Test. The process that calls it ends when its parent does, and so
// does the program, which has a copy of the folder that it begins in.
func RunProgram(program string, o Options) (status int, err error) {
	if err := dieWithParent(); err != nil {
		return 0, err
	}
	folder, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	o.Volumes = append(testVolumes(program, folder, o.Target.Platform), o.Volumes...)
	o.results = findResults(o.Args, folder)
	return onNetwork(&o, func() (string, error) {
		return program, withoutLibraries(program, filepath.Base(program))
	})
}

// queues is how many queues of a device the guest has a use for: a process leaves
// them to the kernel's scheduler, a virtual machine has one for each CPU.
func (o *Options) queues() int {
	if o.Target.Platform == Machine {
		return o.Machine.CPUs
	}
	return 1
}

// onNetwork runs the program that build returns. The network comes first: what
// is wrong with it is told at once.
func onNetwork(o *Options, build func() (program string, err error)) (status int, err error) {
	hostname, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	if o.Target.Platform == Machine {
		if err := o.Machine.check(); err != nil {
			return 0, err
		}
	} else if len(o.Machine.Disks) > 0 {
		return 0, errorf("use --platform vm", "a process has no disk")
	}
	n, err := openNetwork(&o.Network, hostname, o.Target.Platform, o.queues())
	if err != nil {
		return 0, err
	}
	defer n.close()
	if err := n.addFiles(o); err != nil {
		return 0, err
	}
	program, err := build()
	if err != nil {
		return 0, err
	}
	wait, err := n.takeResults(o.results, o.Target.Platform)
	if err != nil {
		return 0, err
	}
	if o.Target.Platform == Machine {
		status, err = launchMachine(program, o, n)
	} else {
		status, err = launch(program, o, n)
	}
	return status, errors.Join(err, wait())
}
