package syscall

// Functions of package syscall that do not pass through the hook in the toolchain's version.

// forkExec would start another program, which Loam does not support: it fails with ENOSYS. The program is
// linked with its kernel, so a copy of the process would be a second kernel.
func forkExec(argv0 string, argv []string, attr *ProcAttr) (pid int, err error) { return 0, ENOSYS }

// Umask is umask(2), which cannot fail. The toolchain's version calls the host directly.
func Umask(mask int) (oldmask int) {
	old, _, _ := RawSyscall(SYS_UMASK, uintptr(mask), 0, 0)
	return int(old)
}

// AllThreadsSyscall makes a system call on every thread. Loam keeps no state per thread, so a call that
// Loam serves is made once.
//
//go:uintptrescapes
func AllThreadsSyscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno) {
	if ours, _ := loamWhose(trap, a1); !ours {
		return linuxAllThreadsSyscall(trap, a1, a2, a3)
	}
	return RawSyscall(trap, a1, a2, a3)
}

//go:uintptrescapes
func AllThreadsSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	if ours, _ := loamWhose(trap, a1); !ours {
		return linuxAllThreadsSyscall6(trap, a1, a2, a3, a4, a5, a6)
	}
	return RawSyscall6(trap, a1, a2, a3, a4, a5, a6)
}
