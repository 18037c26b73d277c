// Package sandbox starts an untrusted Linux program. No instruction of the program's file runs unconfined, whatever the
// file contains.
//
// Between the caller and the program is a stage: this executable, started again by Start under the name stageName. The
// stage is trusted code. It gives up everything that the program must not have (files, a view of the host, privileges),
// and then forks the program's process. The last steps of that process before execveat(2) install the filter of system
// calls:
//
//	caller (Start)  ──clone, new namespaces──▶  stage  ──fork──▶  child  ──execveat──▶  program
//	     ▲  pidfd, layers, wait status             │  allows one execveat, hands over maps
//	     └────────── control socket ───────────────┘
//
// The layers of confinement, from the outermost:
//
//   - descriptors: the program has only the standard streams, the files of Command, and its own file;
//   - a user: if the caller is root, the program runs as the user Nobody without capabilities
//     (Command.KeepRoot keeps root);
//   - namespaces (user, mount, PID, network, IPC), if the kernel grants them. The mount
//     namespace has an empty read-only root;
//   - Landlock (landlock(7)), if the kernel has it: no files, no TCP, no signals to other processes;
//   - no_new_privs, no core dumps, and the filter (seccomp(2)). Without the filter nothing starts.
//
// Process.Layers returns the layers in force.
//
// The filter cannot count, but must allow execveat exactly once. Therefore execveat and openat2 are notifications
// (SECCOMP_RET_USER_NOTIF): the stage lets the first execveat continue, answers the first openat2 with the program's
// /proc/self/maps, and closes the listener. From then on both calls return ENOSYS.
//
// Rejected: a filter that the program installs itself. Code that is linked into the program may run before it, through
// a symbol that the runtime's entry calls or that replaces one of the runtime. Rejected: a filter that allows execveat
// of one descriptor. With an absolute path the kernel ignores the descriptor. Rejected: ptrace(2), to install the
// filter at the stop after exec. It needs no notification, but a process has only one tracer, so strace and debuggers
// of the loam command would no longer work.
//
// Reading order: sandbox.go and process.go for the caller's side; then stage.go, root.go, landlock_unsafe.go,
// fork_unsafe.go and notify_unsafe.go for the stage's side.
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

// Nobody is the user ID and group ID of a program that root starts.
const Nobody = 65534

// FirstFile is the descriptor number of Command.Files[0] in the program.
const FirstFile = 3

// Command describes a program to start.
type Command struct {
	Program string   // path of the executable file
	Args    []string // arguments, starting with the program's name
	Env     []string // environment; each element has the form KEY=VALUE
	// files that get the numbers from FirstFile in the program; the next number is the program's own file, open for reading
	Files []*os.File

	// Stdin, Stdout and Stderr are the program's standard streams; nil: the caller's.
	Stdin, Stdout, Stderr *os.File

	// Nonblock lists descriptors of the program to set non-blocking, which the filter does not allow the program
	// itself.
	Nonblock []int
	// Calls are the allowed system calls, and Places the addresses from which some of them may be made. Handed is the
	// program's descriptor of the socket for handed-over connections; -1: none.
	Calls  []seal.Call
	Places []seal.Place
	Handed int
	// Disk is the first descriptor of a disk image, and DiskSizes are the sizes of the images in bytes.
	Disk      int
	DiskSizes []int64
	// Memory is the first descriptor of memory that is shared with the server of a folder, and Memories their number.
	Memory, Memories int

	Group    bool // the program runs in a process group of its own
	KeepRoot bool // if root starts the program, the program stays root

	probe bool // set up the layers of confinement and report them, but start no program
}

// Layers describes the layers that confine a program. Closed descriptors, no_new_privs and the filter are not listed,
// because every program has them.
type Layers struct {
	User, Mount, PID, Network, IPC bool   // kinds of namespaces that the program has of its own; Mount includes the empty root
	Landlock                       int    // version of Landlock's ABI; 0: Landlock is not in force
	Unprivileged                   bool   // the program's user is not root of the host
	Why                            string // reason why namespaces are missing; empty: none is missing
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

// attempt is a set of namespaces with which Start tries to create the process of the stage, and the reason
// why a larger set has failed.
type attempt struct {
	flags uintptr
	why   string
}

// refused reports whether a process could not be created because a kind of namespace is not available (clone(2)).
func refused(err error) bool {
	for _, e := range []error{syscall.EPERM, syscall.EINVAL, syscall.ENOSPC, syscall.EUSERS, syscall.EACCES, syscall.ENOSYS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unprivileged reports whether the program must run as Nobody.
func (c *Command) unprivileged() bool { return os.Geteuid() == 0 && !c.KeepRoot }

// openProgram opens the program's file. If Nobody may not read and execute that file, it returns a copy in memory.
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
	defer copied.Close() // a file that is open for writing cannot be executed, so the writable copy is closed
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// start tries to start the program in one set of namespaces.
func (c *Command) start(program *os.File, a attempt) (*Process, error) {
	filter, err := seal.Filter(c.Calls, c.Places, seal.Process{
		Socket: c.Handed, First: c.firstHanded(), Disk: c.Disk, DiskSizes: c.DiskSizes,
		Memory: c.Memory, Memories: c.Memories,
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

// firstHanded returns the lowest descriptor number that a handed-over connection can have.
func (c *Command) firstHanded() int {
	if c.Handed < 0 {
		return -1
	}
	return c.descriptors()
}

// ProgramFile returns the number of the program's own file in the program.
func (c *Command) ProgramFile() int { return FirstFile + len(c.Files) }

// descriptors returns the number of descriptors that are open when the program starts.
func (c *Command) descriptors() int { return c.ProgramFile() + 1 }

// executable returns the path of this executable, which also runs as the stage. If /proc is not accessible, it returns
// the name under which the caller was started.
func executable() string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		return os.Args[0]
	}
	return self
}

// attributes returns the attributes of the stage's process. In a user namespace, the stage gets the capabilities to set
// up the other layers as ambient capabilities: execve would otherwise remove them from a user who is not root there.
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
