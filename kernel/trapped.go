package kernel

import (
	"syscall"

	"loam/arch/amd64"
	"loam/kernel/signal"
)

// The SYSCALL instruction. In the program's own code and the standard library's
// there is none left, but assembly of others may have one (package unikernel/image
// finds it when a program is built). What it asks for is most often a matter of
// package posix's, which is ordinary Go above the runtime. So the thread is sent
// SIGSYS, as by seccomp(2) with SECCOMP_RET_TRAP, and the runtime has the goroutine
// wait until the call is served: unikernel/overlay/_std/runtime/loam_trap.go.

// trapped serves the instruction: by that signal, or here what is the kernel's
// anyway, or what comes while nobody hears the signal.
func trapped(c *cpu, f *amd64.Frame) {
	th := threads.At(c.current)
	heard := actions[signal.System].Effect(signal.System) == signal.Handle && th.Mask&uint64(signal.Of(signal.System)) == 0
	if heard && !isOurs(f.AX) {
		callHandler(th, signal.Info{Number: signal.System, Code: signal.CodeSeccomp, Value: f.IP, Call: uint32(f.AX), Arch: signal.ArchAMD64})
		return
	}
	if result, returns := call(c, f); returns {
		f.AX = uint64(result)
	}
}

// isOurs reports whether a call is about memory, threads, signals or time, which
// package posix leaves to the kernel; some of them cannot be made by a function.
func isOurs(number uint64) bool {
	switch number {
	case syscall.SYS_MMAP, syscall.SYS_MUNMAP, syscall.SYS_MPROTECT, syscall.SYS_MADVISE, syscall.SYS_MINCORE,
		syscall.SYS_CLONE, syscall.SYS_FORK, syscall.SYS_VFORK, syscall.SYS_EXIT, syscall.SYS_ARCH_PRCTL,
		syscall.SYS_SCHED_YIELD, syscall.SYS_GETTID, syscall.SYS_FUTEX, syscall.SYS_NANOSLEEP,
		syscall.SYS_RT_SIGACTION, syscall.SYS_RT_SIGPROCMASK, syscall.SYS_SIGALTSTACK, syscall.SYS_RT_SIGRETURN,
		syscall.SYS_TGKILL, syscall.SYS_TKILL, syscall.SYS_CLOCK_GETTIME:
		return true
	}
	return false
}

// unserved counts calls that nobody served, by their numbers; the last is for all
// beyond.
var unserved [512]uint32

// sayUnserved says which these are: they may be why a program fails.
func sayUnserved() {
	for number, count := range unserved {
		if count > 0 {
			say("not served: system call ")
			sayInt(uint64(number))
			say(", ")
			sayInt(uint64(count))
			say(" times\n")
		}
	}
}
