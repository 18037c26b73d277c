// Package sandbox starts a program of Linux that cannot be trusted, so that no instruction
// of its file runs unconfined, whatever the file contains.
//
// Between the caller and the program stands a stage: this executable, started again by
// Start under the name stageName. The stage is trusted code. It takes what the program must
// not have (files, a view of the host, privileges), and then forks the program's process.
// The last steps of that process before execveat(2) install the filter of system calls:
//
//	caller (Start)  ──clone, new namespaces──▶  stage  ──fork──▶  child  ──execveat──▶  program
//	     ▲  pidfd, layers, wait status             │  allows one execveat, hands over maps
//	     └────────── control socket ───────────────┘
//
// The layers, from the outermost:
//
//   - descriptors: the standard streams, the files of Command, the program's own file;
//   - a user: a caller that is root gives the program the user Nobody (Command.KeepRoot
//     keeps root), and no capabilities;
//   - namespaces (user, mount, PID, network, IPC) where the kernel grants them. The mount
//     namespace has an empty read-only root;
//   - Landlock (landlock(7)) where the kernel has it: no files, no TCP, no signals out;
//   - no_new_privs, no core dumps, and the filter (seccomp(2)), without which nothing starts.
//
// Process.Layers returns the layers in force.
//
// The filter cannot count, and execveat must be possible once. So execveat and openat2 are
// notifications (SECCOMP_RET_USER_NOTIF): the stage lets the first execveat continue,
// answers the first openat2 with /proc/self/maps of the program, and closes the listener.
// From then on both return ENOSYS.
//
// Rejected: a filter that the program installs itself. Code that is linked into the program
// runs before it: a symbol that the runtime's entry calls, or replaces. Rejected: a filter that
// allows execveat of one descriptor, since a path that is absolute makes the kernel ignore it.
// Rejected: ptrace(2) to install the filter at the stop after exec. It needs no notification, but
// one tracer excludes others, and strace and debuggers of the command would no longer work.
//
// Reading order: sandbox.go and process.go, the caller's side; stage.go, root.go, landlock_unsafe.go,
// then fork_unsafe.go and notify_unsafe.go, the stage's.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"loam/unikernel/seal"
)

// Nobody is the user and the group that a program of root's has.
const Nobody = 65534

// FirstFile is the descriptor of Command.Files[0] in the program.
const FirstFile = 3

// Command is a program to start.
type Command struct {
	Program string     // path of a linked file
	Args    []string   // with the program's name
	Env     []string   // KEY=VALUE
	Files   []*os.File // descriptors FirstFile and up. The descriptor after them is the program's own file, to read.

	// Stdin, Stdout and Stderr are the program's standard streams; nil: the caller's.
	Stdin, Stdout, Stderr *os.File

	// Nonblock lists descriptors of the program that are set non-blocking: it cannot do so itself.
	Nonblock []int
	// Calls are the system calls that are left, and Handed is the descriptor of the program
	// that connections are handed over by; -1: there is none.
	Calls  []seal.Call
	Places []seal.Place
	Handed int
	// Disk is the first descriptor of a disk image, and DiskSizes are the sizes of the images in bytes.
	Disk      int
	DiskSizes []int64

	Group    bool // the program has a process group of its own
	KeepRoot bool // a program of root's stays root

	probe bool // set up the layers, report them, and start nothing
}

// Layers are the layers that a program is confined by, beside closed descriptors, no_new_privs
// and the filter, which every program has.
type Layers struct {
	User, Mount, PID, Network, IPC bool   // namespaces; Mount includes the empty root
	Landlock                       int    // version of its ABI; 0: not in force
	Unprivileged                   bool   // the program's user is not root of the host
	Why                            string // why a namespace is missing; empty: none is
}

// ErrKernel is returned by Start on a kernel that cannot confine a program.
var ErrKernel = errors.New("the kernel cannot confine a program before it starts (SECCOMP_RET_USER_NOTIF, Linux 5.5)")

// namespaces are the clone(2) flags of all namespaces in which a program runs.
const namespaces = syscall.CLONE_NEWUSER | otherNamespaces

const otherNamespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC

// Start starts a program. The thread that calls Start must live until the program has ended:
// the kernel kills the stage, and with it the program, when that thread ends.
func Start(c Command) (*Process, error) {
	program, err := openProgram(c.Program, c.unprivileged())
	if err != nil {
		return nil, err
	}
	defer program.Close()
	var attempts []attempt
	if os.Geteuid() == 0 {
		attempts = []attempt{{namespaces, ""}, {otherNamespaces, ""}, {0, ""}}
		if c.KeepRoot {
			attempts = attempts[1:]
		}
	} else {
		attempts = []attempt{{namespaces, ""}, {0, ""}}
	}
	why := ""
	for i, a := range attempts {
		a.why = why
		p, err := c.start(program, a)
		if err == nil || i == len(attempts)-1 || !refused(err) {
			return p, err
		}
		why = err.Error()
	}
	panic("sandbox: there is always a last attempt")
}

// Probe reports the layers that a program would have on this machine. Errors: ErrKernel.
func Probe() (Layers, error) {
	p, err := Start(Command{
		Program: executable(), Handed: -1, probe: true,
		Calls: []seal.Call{{Number: unix.SYS_EXIT_GROUP, Name: "exit_group"}},
	})
	if err != nil {
		return Layers{}, err
	}
	_, err = p.Wait()
	return p.Layers(), err
}

// attempt is a set of namespaces to try, and the reason why a larger one was refused.
type attempt struct {
	flags uintptr
	why   string
}

// refused reports whether a process could not be created because a namespace is unavailable (clone(2)).
func refused(err error) bool {
	for _, e := range []error{syscall.EPERM, syscall.EINVAL, syscall.ENOSPC, syscall.EUSERS, syscall.EACCES, syscall.ENOSYS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unprivileged reports whether the program's user is to be Nobody.
func (c *Command) unprivileged() bool { return os.Geteuid() == 0 && !c.KeepRoot }

// openProgram opens the program's file, or a copy in memory if Nobody may not read and run it.
func openProgram(name string, nobody bool) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil || !nobody {
		return f, err
	}
	st, err := f.Stat()
	if err == nil && st.Mode()&0o005 == 0o005 {
		return f, nil
	}
	defer f.Close()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	copied := os.NewFile(uintptr(fd), name)
	if _, err := copied.ReadFrom(f); err != nil {
		copied.Close()
		return nil, err
	}
	defer copied.Close() // a file that is open to be written cannot be run
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// start makes one attempt.
func (c *Command) start(program *os.File, a attempt) (*Process, error) {
	filter, err := seal.Filter(c.Calls, c.Places, seal.Process{
		Socket: c.Handed, First: c.firstHanded(), Disk: c.Disk, DiskSizes: c.DiskSizes,
	})
	if err != nil {
		return nil, err
	}
	settings, err := c.settings(filter, a.flags).file()
	if err != nil {
		return nil, err
	}
	defer settings.Close()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	stage := exec.Command(executable())
	stage.Args = append([]string{stageName}, c.Args...)
	stage.Env = []string{settingsVariable + "=" + strconv.Itoa(c.descriptors())}
	stage.Stdin, stage.Stdout, stage.Stderr = cmp.Or(c.Stdin, os.Stdin), cmp.Or(c.Stdout, os.Stdout), cmp.Or(c.Stderr, os.Stderr)
	stage.ExtraFiles = append(append([]*os.File{}, c.Files...), program, settings, theirs)
	stage.SysProcAttr = c.attributes(a.flags)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := stage.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	return newProcess(stage, ours, a.why)
}

// firstHanded is the least descriptor that a connection that is handed over can have.
func (c *Command) firstHanded() int {
	if c.Handed < 0 {
		return -1
	}
	return c.descriptors()
}

// ProgramFile is the descriptor of the program's own file in the program.
func (c *Command) ProgramFile() int { return FirstFile + len(c.Files) }

// descriptors is the number of descriptors that the program begins with.
func (c *Command) descriptors() int { return c.ProgramFile() + 1 }

// executable is the file of the stage: this one. Where /proc cannot be reached it is looked for under
// the name by which the caller was started.
func executable() string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		return os.Args[0]
	}
	return self
}

// attributes are the attributes of the stage's process. In a user namespace it has the capabilities that
// it needs to set the others up, which exec would take from a user that is not root there.
func (c *Command) attributes(flags uintptr) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: c.Group, Cloneflags: flags}
	if flags&syscall.CLONE_NEWUSER == 0 {
		return attr
	}
	attr.AmbientCaps = []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE, unix.CAP_KILL,
	}
	if c.unprivileged() {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: Nobody, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: Nobody, Size: 1}}
		attr.GidMappingsEnableSetgroups = true
		return attr
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	return attr
}
