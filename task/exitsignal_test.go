package task

import (
	"encoding/binary"
	"fmt"
	"testing"

	"loam/abi/linux"
	"loam/task/signal"
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

// A process that adopts a zombie gets SIGCHLD for it.
func TestSignalOfAdoptedZombie(t *testing.T) {
	const set, info, status = dataAt, dataAt + 64, dataAt + 256
	run(t, func(u *user) {
		u.store(set, binary.LittleEndian.AppendUint64(nil, uint64(signal.SetOf(linux.SIGCHLD))))
		u.call(linux.SYS_RT_SIGPROCMASK, linux.SIG_BLOCK, set, 0, setSize)
		u.call(linux.SYS_PRCTL, linux.PR_SET_CHILD_SUBREAPER, 1)
		zombie := u.fork(1) + 2
		is(t, "sigtimedwait", u.call(linux.SYS_RT_SIGTIMEDWAIT, set, info, second(u, dataAt+1024), setSize), linux.SIGCHLD)
		is(t, "si_code", int64(u.load32(info+8)), int64(signal.ChildExited))
		is(t, "si_pid", int64(u.load32(info+16)), zombie)
		is(t, "si_status", int64(u.load32(info+24)), 5)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(zombie), status, linux.WNOHANG, 0), zombie)
		is(t, "status", int64(u.load32(status)), 5<<8)
		exit(u, 0)
	}, func(u *user) {
		u.fork(2)
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
		exit(u, 0)
	}, func(u *user) { // does not wait for its child
		u.fork(3)
		u.store(dataAt+1024, append(make([]byte, 8), 1, 0, 0, 0, 0, 0, 0, 0))
		u.call(linux.SYS_NANOSLEEP, dataAt+1024, 0)
		exit(u, 0)
	}, func(u *user) { exit(u, 5) })
}

// A process that ignores SIGCHLD can wait for a child that sends another signal, or none, at its end.
func TestWaitWithIgnoredSignal(t *testing.T) {
	const all = 0x40000000 // __WALL
	run(t, func(u *user) {
		u.call(linux.SYS_PRCTL, linux.PR_SET_CHILD_SUBREAPER, 1)
		b := make([]byte, linux.SizeofKernelSigaction)
		linux.KernelSigaction{Handler: signal.Ignore}.Put(b)
		u.store(dataAt, b)
		for _, n := range []uint64{linux.SIGCHLD, linux.SIGUSR1} {
			u.call(linux.SYS_RT_SIGACTION, n, dataAt, 0, setSize)
		}
		for n, waits := range map[int]bool{linux.SIGUSR1: true, 0: true, linux.SIGCHLD: false} {
			child := u.exitsBy(1, n)
			want := failed(linux.ECHILD)
			if waits {
				want = int64(child)
			}
			is(t, fmt.Sprint("wait for the child of signal ", n), u.call(linux.SYS_WAIT4, child, 0, all, 0), want)
		}
		adopted := u.fork(2) + 1
		is(t, "wait for all", u.call(linux.SYS_WAIT4, ^uint64(0), 0, all, 0), failed(linux.ECHILD))
		is(t, "wait for an adopted process", u.call(linux.SYS_WAIT4, uint64(adopted), 0, all, 0), failed(linux.ECHILD))
		exit(u, 0)
	}, func(u *user) { exit(u, 0) },
		func(u *user) {
			u.exitsBy(3, linux.SIGUSR1)
			exit(u, 0)
		}, func(u *user) {
			u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
			exit(u, 0)
		})
}
