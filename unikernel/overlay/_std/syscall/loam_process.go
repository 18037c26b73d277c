package syscall

import (
	errorspkg "errors"
	_ "unsafe" // for go:linkname
)

// Functions of package syscall whose versions in the toolchain bypass the hook.

// loamSpawn starts a program as a process in ring 3, and returns its process ID. It is nil as a process, and in a
// virtual machine if the program was linked without package children of Loam.
//
//go:linkname loamSpawn
var loamSpawn func(argv0 string, argv []string, attr *ProcAttr, files *Rlimit) (pid int, err error)

// loamNoPrograms is the error of forkExec without loamSpawn. It is ENOSYS for errors.Is and errors.As.
type loamNoPrograms struct{}

func (loamNoPrograms) Error() string {
	return "a process on Loam cannot start programs: use --platform vm"
}
func (loamNoPrograms) Unwrap() error { return ENOSYS }

// forkExec starts another program. The program is linked with its kernel, so a copy of the process would be a second
// kernel: Loam makes a new process instead. It makes the same checks as the toolchain's version.
//
// It is not inlined: the loam command looks for it in the linked program, to find out whether the program starts others.
//
//go:noinline
func forkExec(argv0 string, argv []string, attr *ProcAttr) (pid int, err error) {
	if loamSpawn == nil {
		return 0, loamNoPrograms{}
	}
	if attr == nil {
		attr = &zeroProcAttr
	}
	if err := loamCheckAttr(argv0, argv, attr); err != nil {
		return 0, err
	}
	bubble, ok := loamEnter()
	if !ok {
		return 0, ENOSYS
	}
	acquireForkLock()
	pid, err = loamSpawn(argv0, argv, attr, origRlimitNofile.Load())
	releaseForkLock()
	if bubble != nil {
		loamEnterBubble(bubble)
	}
	return pid, err
}

// loamCheckAttr returns the errors that forkExec returns before it starts a process.
func loamCheckAttr(argv0 string, argv []string, attr *ProcAttr) error {
	texts := []string{argv0, attr.Dir}
	texts = append(append(texts, argv...), attr.Env...)
	sys := attr.Sys
	if sys != nil {
		texts = append(texts, sys.Chroot)
	}
	for _, s := range texts {
		if _, err := BytePtrFromString(s); err != nil {
			return err
		}
	}
	switch {
	case sys == nil:
	case sys.Setctty && sys.Foreground:
		return errorspkg.New("both Setctty and Foreground set in SysProcAttr")
	case sys.Setctty && sys.Ctty >= len(attr.Files):
		return errorspkg.New("Setctty set but Ctty not valid in child")
	}
	return nil
}

// os_checkClonePidfd reports whether forkExec can return descriptors of processes.
//
//go:linkname os_checkClonePidfd os.checkClonePidfd
func os_checkClonePidfd() error {
	if loamSpawn == nil {
		return ENOSYS
	}
	return nil
}

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
