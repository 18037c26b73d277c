package task

import (
	"testing"

	"loam/abi/linux"
)

// PTRACE_SEIZE of a stopped process waits only for a thread that is in the stop. A thread that waits for a vfork child joins the
// stop later.
func TestSeizeDuringVfork(t *testing.T) {
	pause := func(u *user) { u.call(linux.SYS_PAUSE) }
	run(t, func(u *user) {
		child := uint64(u.fork(1))
		thread := child + 1
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
		is(t, "tgkill", u.call(linux.SYS_TGKILL, child, thread, linux.SIGSTOP), 0)
		is(t, "wait4", u.call(linux.SYS_WAIT4, child, dataAt, linux.WUNTRACED, 0), int64(child))
		is(t, "PTRACE_SEIZE of the thread in vfork", u.call(linux.SYS_PTRACE, linux.PTRACE_SEIZE, child, 0, 0), 0)
		is(t, "a request to it", u.call(linux.SYS_PTRACE, linux.PTRACE_GETREGS, child, 0, dataAt), failed(linux.ESRCH))
		is(t, "PTRACE_SEIZE of the stopped thread", u.call(linux.SYS_PTRACE, linux.PTRACE_SEIZE, thread, 0, 0), 0)
		is(t, "a request to it", u.call(linux.SYS_PTRACE, linux.PTRACE_GETREGS, thread, 0, dataAt), 0)
		is(t, "kill", u.call(linux.SYS_KILL, child, linux.SIGKILL), 0)
		exit(u, 0)
	}, func(u *user) {
		u.frame.R15 = 2
		u.call(linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_SIGHAND|linux.CLONE_THREAD, 0, 0, 0)
		u.call(linux.SYS_VFORK)
		t.Error("the thread continues")
	}, pause)
}
