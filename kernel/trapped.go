package kernel

import (
	"loam/arch/amd64"
	"loam/kernel/signal"
)

// The SYSCALL instruction. The program's own code and the standard library do not contain it, but third-party
// assembly may (package unikernel/image finds it when a program is built). Most of its calls are served by package
// posix, which is ordinary Go above the runtime. So the thread is sent SIGSYS, as by seccomp(2) with
// SECCOMP_RET_TRAP, and the runtime blocks the goroutine until the call is served:
// unikernel/overlay/_std/runtime/loam_trap.go.

// trapped serves the instruction. The kernel serves the call itself if it is one of answersAtOnce (table.go), or
// if the program does not handle SIGSYS at this time. Otherwise it sends SIGSYS.
func (k *core) trapped(c *cpu, f *amd64.Frame) {
	th := k.threads.At(c.current)
	heard := k.actions[signal.System].Effect(signal.System) == signal.Handle && th.Mask&uint64(signal.Of(signal.System)) == 0
	if heard && !answersAtOnce(f.AX) {
		k.callHandler(th, signal.Info{Number: signal.System, Code: signal.CodeSeccomp, Value: f.IP, Call: uint32(f.AX), Arch: signal.ArchAMD64})
		return
	}
	if result, returns := k.call(c, f); returns {
		f.AX = uint64(result)
	}
}

// sayUnserved prints the system calls that were not served, as part of a crash report: they may be its cause.
func (k *core) sayUnserved() {
	for number, count := range k.unserved {
		if count > 0 {
			k.say("not served: system call ")
			k.sayInt(uint64(number))
			k.say(", ")
			k.sayInt(uint64(count))
			k.say(" times\n")
		}
	}
}
