package sandbox

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe" // for the addresses of what the kernel reads

	"golang.org/x/sys/unix"
)

// The child is a copy of the stage with one thread, which is in the middle of a Go program whose
// other threads are not there. So it makes nothing but system calls, in functions that need no
// more stack and allocate nothing, until it becomes the program. Everything that it reads was
// made before the fork. See forkAndExecInChild in package syscall.

// child holds the data that the child needs.
type child struct {
	program     uintptr // descriptor
	rules       int     // descriptor of a Landlock ruleset; -1: none
	user        int     // to become; -1: stay
	dropCaps    bool
	namespace   bool // the stage is process 1
	stage       uintptr
	args, env   []*byte
	empty       *byte
	filter      filterProgram
	code        []byte
	pid         []int // instructions of code whose constant is the process ID
	core        syscall.Rlimit
	caps        [3]uint64 // struct __user_cap_data_struct, twice: nothing
	capHeader   [2]uint32 // struct __user_cap_header_struct
	blocked     uint64    // the signal mask while forking: all
	mask        uint64    // the signal mask before
	action      sigAction
	shared      *shared
	sharedBytes []byte
}

// filterProgram is struct sock_fprog.
type filterProgram struct {
	length uint16
	_      [6]byte
	code   *byte
}

// shared is memory that the stage and the child both see. The child writes, the stage reads.
type shared struct {
	listener atomic.Int32 // the descriptor of the listener, which both have; 0: not there yet
	step     atomic.Int32 // the step that failed
	errno    atomic.Int32
}

// Steps of the child, by their system calls.
const (
	stepUser = 1 + iota
	stepCaps
	stepPrivileges
	stepCore
	stepRules
	stepParent
	stepFilter
	stepExec
)

var stepNames = [...]string{"", "setresuid", "capset", "prctl(PR_SET_NO_NEW_PRIVS)", "prlimit", "landlock_restrict_self", "prctl(PR_SET_PDEATHSIG)", "seccomp", "execveat"}

// newChild lays out what the child needs. The program's file and arguments are the stage's.
func newChild(s *stage, rules int) (*child, error) {
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANONYMOUS)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	c := &child{
		program: uintptr(s.program()), rules: rules, user: s.User, dropCaps: s.DropCaps,
		namespace: s.layers.PID, stage: uintptr(os.Getpid()), code: s.Filter, pid: s.PID,
		core:      syscall.Rlimit{Cur: 1, Max: 1}, // with a limit of one byte there is neither a file nor a helper (core(5))
		capHeader: [2]uint32{unix.LINUX_CAPABILITY_VERSION_3, 0},
		blocked:   ^uint64(0), shared: (*shared)(unsafe.Pointer(&page[0])), sharedBytes: page, empty: new(byte),
	}
	c.filter = filterProgram{length: uint16(len(s.Filter) / instructionSize), code: &s.Filter[0]}
	if c.args, err = syscall.SlicePtrFromStrings(os.Args[1:]); err != nil {
		return nil, err
	}
	c.env, err = syscall.SlicePtrFromStrings(s.env)
	return c, err
}

// fork makes the child and returns its process ID. The two share their descriptors until
// execveat, so that the stage has the listener that the child makes.
func (c *child) fork() (pid int, err error) {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.blocked)), uintptr(unsafe.Pointer(&c.mask)), 8, 0, 0)
	r, errno := c.clone()
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0, 8, 0, 0)
	runtime.KeepAlive(c)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// clone returns in the stage only. It is nosplit since the child must not grow its stack.
//
//go:nosplit
//go:norace
func (c *child) clone() (uintptr, syscall.Errno) {
	r, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|unix.CLONE_FILES, 0, 0, 0, 0, 0)
	if errno == 0 && r == 0 {
		step, errno := c.become()
		c.shared.errno.Store(int32(errno))
		c.shared.step.Store(step)
		for {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
		}
	}
	return r, errno
}

// become takes the child's last steps, and returns which of them failed. It is nosplit as clone is.
//
//go:nosplit
//go:norace
func (c *child) become() (int32, syscall.Errno) {
	if errno := c.dropUser(); errno != 0 {
		return stepUser, errno
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return stepPrivileges, errno
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&c.core)), 0, 0, 0); errno != 0 {
		return stepCore, errno
	}
	if c.rules >= 0 {
		if _, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(c.rules), 0, 0); errno != 0 {
			return stepRules, errno
		}
	}
	if errno := c.dieWithStage(); errno != 0 {
		return stepParent, errno
	}
	c.resetSignals()
	c.writePID()
	listener, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&c.filter)))
	if errno != 0 {
		return stepFilter, errno
	}
	c.shared.listener.Store(int32(listener))
	_, _, errno = syscall.RawSyscall6(unix.SYS_EXECVEAT, c.program, uintptr(unsafe.Pointer(c.empty)),
		uintptr(unsafe.Pointer(&c.args[0])), uintptr(unsafe.Pointer(&c.env[0])), unix.AT_EMPTY_PATH, 0)
	return stepExec, errno
}

// lastCap is above all capabilities; a kernel returns EINVAL for those that it lacks.
const lastCap = 64

// dropUser takes the user and the capabilities. The bounding set comes first, which needs one. It is nosplit
// since the child must not grow its stack.
//
//go:nosplit
//go:norace
func (c *child) dropUser() syscall.Errno {
	if c.dropCaps {
		for i := uintptr(0); i < lastCap; i++ {
			syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, i, 0, 0, 0, 0)
		}
	}
	if c.user >= 0 {
		id := uintptr(c.user)
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return errno
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESGID, id, id, id); errno != 0 {
			return errno
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
			return errno
		}
	}
	if !c.dropCaps {
		return 0
	}
	syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	_, _, errno := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&c.capHeader)), uintptr(unsafe.Pointer(&c.caps)), 0)
	return errno
}

// dieWithStage has the kernel kill the program when the stage ends. It comes after the change
// of the user, which would undo it. It is nosplit since the child must not grow its stack.
//
//go:nosplit
//go:norace
func (c *child) dieWithStage() syscall.Errno {
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if parent, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); parent != c.stage {
		return unix.ESRCH
	}
	return 0
}

// lastSignal is the highest signal number (signal(7)).
const lastSignal = 64

// resetSignals gives every signal that is not ignored its default action, since the handlers of the
// stage's runtime cannot run here, and then has signals arrive again. It is nosplit since the child must
// not grow its stack.
//
//go:nosplit
//go:norace
func (c *child) resetSignals() {
	for n := uintptr(1); n <= lastSignal; n++ {
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, n, 0, uintptr(unsafe.Pointer(&c.action)), 8, 0, 0)
		if c.action[0] > sigIgnore {
			c.action = sigAction{}
			syscall.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&c.action)), 0, 8, 0, 0)
		}
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0, 8, 0, 0)
}

// sigAction is struct kernel_sigaction: handler, flags, restorer, mask.
type sigAction [4]uintptr

// sigIgnore is the handler SIG_IGN; SIG_DFL is less.
const sigIgnore = 1

// writePID puts the process ID, which is not known before, into the filter. It is nosplit since the child
// must not grow its stack.
//
//go:nosplit
//go:norace
func (c *child) writePID() {
	pid, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	for _, i := range c.pid {
		k := c.code[i*instructionSize+4 : (i+1)*instructionSize]
		k[0], k[1], k[2], k[3] = byte(pid), byte(pid>>8), byte(pid>>16), byte(pid>>24)
	}
}

// awaitListener waits for the child to have the filter, and returns the listener.
func (c *child) awaitListener(pid int) (int, error) {
	const pause = 20 * time.Microsecond
	for {
		if fd := c.shared.listener.Load(); fd != 0 {
			return int(fd), nil
		}
		if step := c.shared.step.Load(); step != 0 {
			return 0, c.stepError(step)
		}
		if n, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); n == pid || err == syscall.ECHILD {
			return 0, os.NewSyscallError("fork", syscall.ECHILD)
		}
		time.Sleep(pause)
	}
}

// stepError says which step failed. A kernel without notifications does not know the flag.
func (c *child) stepError(step int32) error {
	errno := syscall.Errno(c.shared.errno.Load())
	if step == stepFilter && (errno == unix.ENOSYS || errno == unix.EINVAL) {
		return ErrKernel
	}
	return os.NewSyscallError(stepNames[step], errno)
}

// failure is the error of the last step, or 0: the program ran.
func (c *child) failure() syscall.Errno {
	if c.shared.step.Load() == stepExec {
		return syscall.Errno(c.shared.errno.Load())
	}
	return 0
}
