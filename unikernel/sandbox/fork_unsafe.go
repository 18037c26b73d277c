package sandbox

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe" // for the addresses of data that the kernel reads

	"golang.org/x/sys/unix"
)

// The child is a copy of the stage with a single thread. That thread is in the middle of a Go program whose other
// threads do not exist in the copy, so the Go runtime does not work in it. Until it executes the program, the child
// therefore only makes system calls, in functions that neither grow the stack nor allocate. All data that it reads was
// prepared before the fork. See forkAndExecInChild in package syscall.

// child holds the data that the child process uses.
type child struct {
	program     uintptr // descriptor of the program's executable file
	rules       int     // descriptor of a Landlock ruleset; -1: none
	user        int     // user ID to change to; -1: keep the present user ID
	dropCaps    bool
	namespace   bool // the stage is process 1 of a PID namespace
	stage       uintptr
	args, env   []*byte
	empty       *byte
	filter      filterProgram
	code        []byte
	pid         []int // indices of filter instructions that contain the process ID
	core        syscall.Rlimit
	caps        [3]uint64 // two struct __user_cap_data_struct without any capability
	capHeader   [2]uint32 // struct __user_cap_header_struct
	blocked     uint64    // signal mask during the fork: all signals
	mask        uint64    // signal mask before the fork
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

// shared is memory that the child shares with the stage, the process that has created it. The child writes it, and the stage reads it.
type shared struct {
	listener atomic.Int32 // descriptor of the filter's listener, which both processes have; 0: not created yet
	step     atomic.Int32 // the step that has failed; 0: none
	errno    atomic.Int32
	ready    atomic.Uint32 // 1: listener or step is set; the stage waits for it by futex(2)
}

// Steps of the child, named after their system calls.
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

// newChild prepares the data of the child. The program's file, arguments and environment come from the stage's
// settings.
func newChild(s *stage, rules int) (*child, error) {
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANONYMOUS)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	c := &child{
		program: uintptr(s.program()), rules: rules, user: s.User, dropCaps: s.DropCaps,
		namespace: s.layers.PID, stage: uintptr(os.Getpid()), code: s.Filter, pid: s.PID,
		// with a limit of one byte, Linux writes no core file and starts no helper program (core(5))
		core:      syscall.Rlimit{Cur: 1, Max: 1},
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

// fork creates the child and returns its process ID. Stage and child share their descriptors until execveat, so the
// stage can use the listener that the child creates.
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

// clone creates the child. It returns only in the calling process (the stage); the child executes the program or exits.
// It is nosplit because the child must not grow its stack.
//
//go:nosplit
//go:norace
func (c *child) clone() (uintptr, syscall.Errno) {
	r, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|unix.CLONE_FILES, 0, 0, 0, 0, 0)
	if errno == 0 && r == 0 {
		step, errno := c.become()
		c.shared.errno.Store(int32(errno))
		c.shared.step.Store(step)
		c.wakeStage()
		for {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
		}
	}
	return r, errno
}

// become performs the child's steps up to execveat. It returns the step that failed and its errno. Like the function
// clone, it is nosplit.
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
	c.wakeStage()
	_, _, errno = syscall.RawSyscall6(unix.SYS_EXECVEAT, c.program, uintptr(unsafe.Pointer(c.empty)),
		uintptr(unsafe.Pointer(&c.args[0])), uintptr(unsafe.Pointer(&c.env[0])), unix.AT_EMPTY_PATH, 0)
	return stepExec, errno
}

// lastCap is above the number of every capability. For a capability that the kernel lacks, prctl(2) returns EINVAL.
const lastCap = 64

// dropUser gives up the user and the capabilities. It clears the bounding set first, because that needs a capability.
// It is nosplit because the child must not grow its stack.
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

// dieWithStage makes the kernel kill the program when the stage, its parent process, ends. It runs after the change
// of user, which resets this setting. It is nosplit because the child must not grow its stack.
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

// resetSignals gives every signal that is not ignored its default action, because the handlers of the stage's runtime
// do not work in the child. It then unblocks signals. It is nosplit because the child must not grow its stack.
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

// sigIgnore is the handler SIG_IGN. SIG_DFL is 0.
const sigIgnore = 1

// writePID writes the child's process ID into the filter. The stage did not know it before the fork. It is nosplit
// because the child must not grow its stack.
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

// Operations of futex(2) for memory that processes share.
const (
	futexWait = 0
	futexWake = 1
)

// wakeStage wakes the stage, which waits in awaitListener. The filter allows futex(2), which changes nothing but wakes
// threads. It is nosplit because the child must not grow its stack.
//
//go:nosplit
//go:norace
func (c *child) wakeStage() {
	c.shared.ready.Store(1)
	syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&c.shared.ready)), futexWake, 1, 0, 0, 0)
}

// awaitListener waits until the child has installed the filter, and returns its listener. It also checks periodically
// whether the child was killed, because a killed child does not wake the stage.
func (c *child) awaitListener(pid int) (int, error) {
	pause := unix.NsecToTimespec(int64(10 * time.Millisecond))
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
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&c.shared.ready)), futexWait, 0, uintptr(unsafe.Pointer(&pause)), 0, 0)
	}
}

// stepError returns the error for a failed step. Kernels without filter notifications reject the flag that requests the
// listener; the error is then ErrKernel.
func (c *child) stepError(step int32) error {
	errno := syscall.Errno(c.shared.errno.Load())
	if step == stepFilter && (errno == unix.ENOSYS || errno == unix.EINVAL) {
		return ErrKernel
	}
	return os.NewSyscallError(stepNames[step], errno)
}

// failure returns the errno of execveat, or 0 if the program runs.
func (c *child) failure() syscall.Errno {
	if c.shared.step.Load() == stepExec {
		return syscall.Errno(c.shared.errno.Load())
	}
	return 0
}
