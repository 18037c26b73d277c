package seal

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe" // for the addresses of what the kernel reads
)

// HostCall makes a system call of the host's, as syscall.Syscall does.
type HostCall func(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno)

// ErrNoFilters is returned by Install on a kernel that has no such filters.
var ErrNoFilters = errors.New("the kernel has no seccomp filters (CONFIG_SECCOMP_FILTER), which keep a program from the host")

// What package syscall does not name.
const (
	sysSeccomp      = 317
	setModeFilter   = 1  // SECCOMP_SET_MODE_FILTER
	flagTSync       = 1  // SECCOMP_FILTER_FLAG_TSYNC
	prSetNoNewPrivs = 38 // PR_SET_NO_NEW_PRIVS
)

// program is struct sock_fprog.
type program struct {
	length uint16
	_      [6]byte
	filter *Instruction
}

// Install sets a filter for all threads of the process and those that will be, and has it
// leave no core dumps. There is no way back. Errors: ErrNoFilters, what else the kernel says.
func Install(filter []Instruction, call HostCall) error {
	runtime.LockOSThread() // both calls are of one thread
	defer runtime.UnlockOSThread()
	// A core dump would be a file of the host's, of what the program likes, or be told to
	// a program of the host's: with a limit of one byte there is neither (core(5)).
	cores := syscall.Rlimit{Cur: 1, Max: 1}
	if _, _, errno := call(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_CORE, uintptr(unsafe.Pointer(&cores)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("core dumps: %w", errno)
	}
	if _, _, errno := call(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("no_new_privs: %w", errno)
	}
	p := program{length: uint16(len(filter)), filter: &filter[0]}
	thread, _, errno := call(sysSeccomp, setModeFilter, flagTSync, uintptr(unsafe.Pointer(&p)), 0, 0, 0)
	runtime.KeepAlive(filter)
	switch {
	case errno == syscall.ENOSYS || errno == syscall.EINVAL:
		return ErrNoFilters
	case errno != 0:
		return fmt.Errorf("seccomp: %w", errno)
	case thread != 0:
		return fmt.Errorf("seccomp: thread %d has a filter of its own", thread)
	}
	return nil
}
