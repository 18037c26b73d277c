package task

import (
	"testing"

	"loam/abi/linux"
)

// exitsBy starts a child whose end sends a signal.
func (u *user) exitsBy(program uint64, signal int) uint64 {
	u.frame.R15 = program
	return uint64(u.call(linux.SYS_CLONE, uint64(signal), 0, 0, 0, 0))
}

// reap waits for all children.
func reap(u *user) {
	for u.call(linux.SYS_WAIT4, ^uint64(0), 0, 0, 0) > 0 {
	}
}

// A process that is adopted sends SIGCHLD to its new parent at its end, even if it was a zombie, which its tracer held, at the end of
// its parent.
func TestExitSignalOfAdopted(t *testing.T) {
	sleep := func(u *user, n int) {
		for range n {
			u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
		}
	}
	status := run(t, func(u *user) {
		u.call(linux.SYS_PRCTL, linux.PR_SET_CHILD_SUBREAPER, 1)
		u.fork(1)
		sleep(u, 4)
		reap(u)
		exit(u, 0)
	}, func(u *user) { // the parent, which ends at 2 seconds
		u.exitsBy(2, linux.SIGUSR1)
		u.fork(3)
		sleep(u, 2)
		exit(u, 0)
	}, func(u *user) { // ends at 1 second
		sleep(u, 1)
		exit(u, 0)
	}, func(u *user) { // traces it, and ends at 3 seconds
		of := uint64(u.call(linux.SYS_GETPID)) - 1
		is(t, "PTRACE_SEIZE", u.call(linux.SYS_PTRACE, linux.PTRACE_SEIZE, of, 0, 0), 0)
		sleep(u, 3)
		exit(u, 0)
	})
	if status != 0 {
		t.Errorf("the new parent has the status %#x", status)
	}
}

// A sibling of an adopted process (CLONE_PARENT) sends SIGCHLD, too.
func TestExitSignalOfSibling(t *testing.T) {
	status := run(t, func(u *user) {
		u.call(linux.SYS_PRCTL, linux.PR_SET_CHILD_SUBREAPER, 1)
		u.fork(1)
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
		reap(u)
		exit(u, 0)
	}, func(u *user) {
		u.exitsBy(2, linux.SIGUSR1)
		exit(u, 0)
	}, func(u *user) {
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
		u.frame.R15 = 3
		u.call(linux.SYS_CLONE, linux.CLONE_PARENT, 0, 0, 0, 0)
		exit(u, 0)
	}, func(u *user) { exit(u, 0) })
	if status != 0 {
		t.Errorf("the new parent has the status %#x", status)
	}
}

// A process sends SIGCHLD at its end if its parent has executed another program since.
func TestExitSignalAfterExecve(t *testing.T) {
	status := run(t, func(u *user) {
		u.exitsBy(1, linux.SIGUSR1)
		u.call(linux.SYS_EXECVE, u.text(dataAt, "/2"), 0, 0)
		t.Error("execve returns")
	}, func(u *user) {
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
		exit(u, 0)
	}, func(u *user) {
		reap(u)
		exit(u, 0)
	})
	if status != 0 {
		t.Errorf("the parent has the status %#x", status)
	}
}
