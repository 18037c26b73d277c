// Package unikernel builds unmodified Go programs for Loam and runs them.
//
// A Plan describes how one program is built: with the stock go command, whose -overlay flag substitutes
// edited files of the standard library (package overlay) and adds Loam's own packages to it. The user's
// module is not changed, and does not depend on Loam.
//
// Platform Process runs the program as a Linux process whose sockets are Loam's. The loam command holds the
// outside of its network (a gateway, a TAP device), and passes it to the process as inherited descriptors.
// Package guest defines how they are described; package rt receives them.
//
// Platform Machine runs the same program as the kernel of a virtual machine, in ring 0 (machine.go). The
// program is linked with package kernel, and package image turns it into a file that QEMU boots.
//
// Reading order: run.go, plan.go, target.go, toolchain.go, std.go, build.go; then network.go, launch.go and
// machine.go; gotest.go for tests.
package unikernel

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"loam/unikernel/linked"
	"loam/unikernel/results"
)

// Options describes how a program is run.
type Options struct {
	Target  Target
	Args    []string // arguments of the program
	Env     []string // "KEY=VALUE", added to the environment or overriding it
	Network Network
	Volumes []Volume      // files of the host that are copied into the guest's file tree
	Shared  []Shared      // folders of the host that the program can read and change
	Machine MachineConfig // settings of the virtual machine, for platform Machine

	// Root contains the root folder of a Linux program. It is a folder, a tar archive, an image of a container (package
	// rootfs), or an image of an ext4 file system, which becomes the root itself. Target.Args then has the program's path
	// in it; it may be empty if an image names the program. Empty: the program is a file of the host.
	Root string
	// Entrypoint replaces the Entrypoint of an image of a container. Empty: the arguments are the program. nil: the image
	// decides.
	Entrypoint *string
	// RootReadOnly and RootSnapshot apply to a root that is an image, as in Disk.
	RootReadOnly, RootSnapshot bool
	// RootShared means that the folder Root of the host is the root itself, as in Shared, and not a copy of it.
	// RootNoCache is Shared.NoCache for it.
	RootShared, RootNoCache bool
	// Disks are disk images, in the order of their numbers.
	Disks []Disk
	// Folder is the program's working folder; empty: the current one, or / with Root.
	Folder string
	// User is the user of a Linux program, USER[:GROUP] by names of its root folder or by numbers; empty: root.
	User string

	// KeepRoot keeps the program, or QEMU, running as root if the caller is root. Otherwise it runs as the
	// user sandbox.Nobody. It has no effect if the caller is not root.
	KeepRoot bool

	// Slow is called, if not nil, when finding and building the program takes longer than slowBuild.
	Slow func()

	// Terminal says whether a Linux program gets a terminal of its own.
	Terminal TerminalUse

	// Started is called once, if not nil, when the program's process has started, or when the kernel of its virtual
	// machine runs. Run waits for its return.
	Started func()

	linux   bool // the target is a Linux program (an ELF file)
	results results.List

	root    *os.File // archive of the root folder; nil: none, or it is on a disk or shared with the host
	baseEnv []string // environment to which Env is added; nil: this process's
}

// slowBuild is the delay before Options.Slow is called. A build with nothing to do takes a tenth of it.
const slowBuild = 3 * time.Second

// Run builds a program and runs it to its end. It returns the program's exit status, or 128 plus the number
// of the signal that ended it. The error is an *Error if the user can act on it. ctx bounds only the time
// until the program starts. After that, signals are forwarded to the program, which decides when to end.
func Run(ctx context.Context, o Options) (status int, err error) {
	if err := o.takeLinuxProgram(); err != nil {
		return 0, err
	}
	defer o.closeRoot()
	o.withRootImage()
	o.withRootFolder()
	if _, err := o.wantsTerminal(); err != nil {
		return 0, err
	}
	return onNetwork(&o, func() (string, []Volume, error) {
		if o.Slow != nil {
			defer time.AfterFunc(slowBuild, o.Slow).Stop()
		}
		p, err := NewPlan(ctx, o.Target)
		if err != nil {
			return "", nil, err
		}
		if err := p.Build(ctx); err != nil {
			return "", nil, err
		}
		return p.Program, p.Volumes(), context.Cause(ctx)
	})
}

// RunProgram runs a program that has already been built for Loam, such as a test binary of Test. The
// calling process is killed when its parent ends, and so is the program. The program gets a copy of the
// current folder.
func RunProgram(program string, o Options) (status int, err error) {
	if err := dieWithParent(); err != nil {
		return 0, err
	}
	folder, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	plain, err := plainTest(context.Background(), program, folder)
	if err != nil {
		return 0, err
	}
	if plain != "" {
		defer os.RemoveAll(filepath.Dir(plain))
	}
	o.Volumes = append(testVolumes(program, plain, folder, o.Target.Platform), o.Volumes...)
	o.results = results.Find(o.Args, folder)
	checked := make(chan error, 1) // sent once by the goroutine below; not received if the network fails
	go func() { checked <- checkTest(program) }()
	return onNetwork(&o, func() (string, []Volume, error) {
		return program, nil, <-checked
	})
}

// checkTest checks a program that go test has linked.
func checkTest(program string) error {
	err := checkLinked(program, filepath.Base(program))
	var c *linked.Complaint
	if errors.As(err, &c) {
		return errorf("leave out what defines it", "%s is not started: %v", filepath.Base(program), c)
	}
	return err
}

// started calls Options.Started.
func (o *Options) started() {
	if o.Started != nil {
		o.Started()
	}
}

// queues returns the number of device queues that the guest uses. A process uses one and leaves scheduling
// to the host's kernel; a virtual machine uses one per CPU with a virtio
// network card, and one with other cards.
func (o *Options) queues() int {
	if o.Target.Platform == Machine && cmp.Or(o.Machine.Card, CardVirtio) == CardVirtio {
		return o.Machine.CPUs
	}
	return 1
}

// onNetwork runs the program that the function build returns, with further volumes. It opens the network before it
// builds, so that errors in the network's configuration are reported at once.
func onNetwork(o *Options, build func() (program string, more []Volume, err error)) (status int, err error) {
	hostname, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	if o.Target.Platform == Machine {
		if err := o.Machine.check(); err != nil {
			return 0, err
		}
	} else if o.Machine.Card != "" {
		return 0, errorf("leave it out, or use --platform vm", "--nic: a process has no network card of model %s", o.Machine.Card)
	}
	images, err := openDisks(o)
	if err != nil {
		return 0, err
	}
	n, err := openNetwork(&o.Network, hostname, o.Target.Platform, o.queues())
	if err != nil {
		closeImages(images)
		return 0, err
	}
	n.disks = images
	defer n.close()
	if err := n.addFiles(o); err != nil {
		return 0, err
	}
	program, more, err := build()
	if err == nil {
		err = n.addVolumes(more, o.Target.Platform)
	}
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
