package syscall

// What the toolchain's own syscall package does past the door.

// forkExec would start another program. There is one here: what this one is linked
// with is its kernel, and a copy of it would be a second.
func forkExec(argv0 string, argv []string, attr *ProcAttr) (pid int, err error) { return 0, ENOSYS }

// Umask is a call that cannot fail; the toolchain's goes straight to the host.
func Umask(mask int) (oldmask int) {
	old, _, _ := RawSyscall(SYS_UMASK, uintptr(mask), 0, 0)
	return int(old)
}

// AllThreadsSyscall changes what Linux keeps for each thread. Loam keeps nothing
// for threads, so once is enough, unless the call is the host's.
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
