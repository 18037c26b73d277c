package task

import (
	"encoding/binary"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix"
	"loam/task/family"
	"loam/task/signal"
)

// A pidfd becomes readable when its process ends; pidfd_send_signal and waitid accept it. After the wait it refers to
// no process.
func TestPidfd(t *testing.T) {
	const pollfd = dataAt + 64
	run(t, func(u *user) {
		child := u.fork(1)
		fd := u.call(linux.SYS_PIDFD_OPEN, uint64(child), linux.O_NONBLOCK)
		is(t, "pidfd", fd, 0)
		same(t, "name", u.link("/proc/self/fd/0"), "anon_inode:[pidfd]")
		u.words(pollfd, uint32(fd), uint32(posix.PollIn))
		is(t, "poll", u.call(linux.SYS_POLL, pollfd, 1, 0), 0)
		is(t, "not yet", u.call(linux.SYS_WAITID, linux.P_PIDFD, uint64(fd), dataAt+128, linux.WEXITED, 0), failed(linux.EAGAIN))
		is(t, "flags", u.call(linux.SYS_PIDFD_SEND_SIGNAL, uint64(fd), linux.SIGTERM, 0, 1), failed(linux.EINVAL))
		is(t, "send", u.call(linux.SYS_PIDFD_SEND_SIGNAL, uint64(fd), linux.SIGTERM, 0, 0), 0)
		is(t, "poll", u.call(linux.SYS_POLL, pollfd, 1, 1<<64-1), 1)
		is(t, "events", int64(u.load32(pollfd+4)>>16), int64(posix.PollIn))
		is(t, "waitid", u.call(linux.SYS_WAITID, linux.P_PIDFD, uint64(fd), dataAt+128, linux.WEXITED, 0), 0)
		is(t, "of the child", int64(u.load32(dataAt+128+16)), child)
		is(t, "gone", u.call(linux.SYS_PIDFD_SEND_SIGNAL, uint64(fd), 0, 0, 0), failed(linux.ESRCH))
		is(t, "no process", u.call(linux.SYS_PIDFD_OPEN, 999, 0), failed(linux.ESRCH))
		dir := u.call(linux.SYS_OPEN, u.text(dataAt, "/proc/self"), linux.O_RDONLY|linux.O_DIRECTORY)
		is(t, "the directory of a process", u.call(linux.SYS_PIDFD_SEND_SIGNAL, uint64(dir), 0, 0, 0), 0)
		dir = u.call(linux.SYS_OPEN, u.text(dataAt, "/proc/self/task"), linux.O_RDONLY|linux.O_DIRECTORY)
		is(t, "another directory", u.call(linux.SYS_PIDFD_SEND_SIGNAL, uint64(dir), 0, 0, 0), failed(linux.EBADF))
		is(t, "no pidfd", u.call(linux.SYS_PIDFD_SEND_SIGNAL, 99, 0, 0, 0), failed(linux.EBADF))
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}

// A queued message does not keep the memory of a sender that has been waited for. Its process still has a pidfd.
func TestMessageOfEndedProcess(t *testing.T) {
	var system *System
	var sender weak.Pointer[Process]
	var in, out uint64
	runIn(t, func(w *world) func() {
		system = w.system
		return func() {}
	}, func(u *user) {
		is(t, "socketpair", u.call(linux.SYS_SOCKETPAIR, linux.AF_UNIX, linux.SOCK_DGRAM, 0, dataAt), 0)
		in, out = uint64(u.load32(dataAt)), uint64(u.load32(dataAt+4))
		u.words(dataAt, 1)
		is(t, "SO_PASSPIDFD", u.call(linux.SYS_SETSOCKOPT, in, linux.SOL_SOCKET, linux.SO_PASSPIDFD, dataAt, 4), 0)
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		synctest.Wait()
		runtime.GC()
		if sender.Value() != nil {
			t.Error("the process is kept")
		}
		const header, vector, control = dataAt + 0x100, dataAt + 0x200, dataAt + 0x300
		u.words64(header, 0, 0, vector, 1, control, 64, 0)
		u.words64(vector, dataAt, 1)
		is(t, "recvmsg", u.call(linux.SYS_RECVMSG, in, header, 0), 1)
		fd := uint64(u.load32(control + linux.SizeofCmsghdr))
		is(t, "type of the control message", int64(u.load32(control+12)), linux.SCM_PIDFD)
		is(t, "pidfd_send_signal", u.call(linux.SYS_PIDFD_SEND_SIGNAL, fd, 0, 0, 0), failed(linux.ESRCH))
		is(t, "waitid", u.call(linux.SYS_WAITID, linux.P_PIDFD, fd, 0, linux.WEXITED, 0), failed(linux.ECHILD))
		exit(u, 0)
	}, func(u *user) {
		pid := family.PID(u.call(linux.SYS_GETPID))
		system.mu.Lock()
		sender = weak.Make(system.processes[pid])
		system.mu.Unlock()
		is(t, "write", u.call(linux.SYS_WRITE, out, dataAt, 1), 1)
		exit(u, 0)
	})
}

// clone3 with CLONE_PIDFD returns a pidfd, and with CLONE_CLEAR_SIGHAND resets handlers; it checks its arguments.
func TestClone3(t *testing.T) {
	const args, pidfd = dataAt + 256, dataAt + 512
	run(t, func(u *user) {
		clone3 := func(size int, words ...uint64) int64 {
			b := make([]byte, 128)
			for i, w := range words {
				binary.LittleEndian.PutUint64(b[8*i:], w)
			}
			u.store(args, b)
			return u.call(linux.SYS_CLONE3, args, uint64(size))
		}
		is(t, "short", clone3(63), failed(linux.EINVAL))
		is(t, "long", clone3(5000), failed(linux.E2BIG))
		is(t, "unknown field", clone3(96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), failed(linux.E2BIG))
		is(t, "unknown flag", clone3(88, 1<<40), failed(linux.EINVAL))
		is(t, "stack without a size", clone3(88, 0, 0, 0, 0, 0, 4096), failed(linux.EINVAL))
		is(t, "signal of a thread", clone3(88, linux.CLONE_THREAD|linux.CLONE_SIGHAND|linux.CLONE_VM, 0, 0, 0, linux.SIGCHLD), failed(linux.EINVAL))
		is(t, "namespace", clone3(88, linux.CLONE_NEWNET), failed(linux.EPERM))
		install(u, linux.SIGUSR1, 2, 0)
		u.frame.R15 = 1
		child := clone3(88, linux.CLONE_PIDFD|linux.CLONE_CLEAR_SIGHAND, pidfd, 0, 0, linux.SIGCHLD)
		is(t, "send", u.call(linux.SYS_PIDFD_SEND_SIGNAL, uint64(u.load32(pidfd)), linux.SIGUSR1, 0, 0), 0)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt, 0, 0), child)
		is(t, "its handler is gone", int64(u.load32(dataAt)), linux.SIGUSR1)
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) }, func(u *user) { t.Error("the handler of the parent") })
}

// A parent death signal is sent when the parent ends, and orphans go to the nearest subreaper.
func TestSubreaper(t *testing.T) {
	run(t, func(u *user) {
		is(t, "subreaper", u.call(linux.SYS_PRCTL, linux.PR_SET_CHILD_SUBREAPER, 1), 0)
		child := u.fork(1)
		is(t, "the child", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		if orphan := u.call(linux.SYS_WAIT4, 1<<64-1, dataAt, 0, 0); orphan <= child {
			t.Errorf("the orphan: %d", orphan)
		}
		is(t, "its signal", int64(u.load32(dataAt)), linux.SIGUSR1)
		exit(u, 0)
	}, func(u *user) {
		u.fork(2)
		second(u, dataAt+64)
		u.call(linux.SYS_NANOSLEEP, dataAt+64, 0)
		exit(u, 0)
	}, func(u *user) {
		is(t, "death signal", u.call(linux.SYS_PRCTL, linux.PR_SET_PDEATHSIG, linux.SIGUSR1), 0)
		u.call(linux.SYS_PAUSE)
		u.call(linux.SYS_PAUSE)
	})
}

// process_vm_readv and process_vm_writev copy memory of another process, and need the permission to trace it. kcmp
// compares the resources of two processes.
func TestOtherMemory(t *testing.T) {
	const local, remote, buffer, word = dataAt + 64, dataAt + 128, dataAt + 256, dataAt + 512
	run(t, func(u *user) {
		u.store32(word, 5)
		child := uint64(u.fork(1))
		u.store32(word, 6)
		u.words(local, buffer, 0, 4, 0)
		u.words(remote, word, 0, 4, 0)
		is(t, "read", u.call(linux.SYS_PROCESS_VM_READV, child, local, 1, remote, 1, 0), 4)
		is(t, "the child's", int64(u.load32(buffer)), 5)
		u.store32(buffer, 7)
		is(t, "write", u.call(linux.SYS_PROCESS_VM_WRITEV, child, local, 1, remote, 1, 0), 4)
		is(t, "read", u.call(linux.SYS_PROCESS_VM_READV, child, local, 1, remote, 1, 0), 4)
		is(t, "written", int64(u.load32(buffer)), 7)
		u.words(remote, 0x1000, 0, 4, 0)
		is(t, "no memory", u.call(linux.SYS_PROCESS_VM_READV, child, local, 1, remote, 1, 0), failed(linux.EFAULT))
		is(t, "no process", u.call(linux.SYS_PROCESS_VM_READV, 999, local, 1, remote, 1, 0), failed(linux.ESRCH))
		is(t, "the same", u.call(linux.SYS_KCMP, 2, 2, linux.KCMP_VM, 0, 0), 0)
		is(t, "another", u.call(linux.SYS_KCMP, 2, child, linux.KCMP_VM, 0, 0), 1)
		is(t, "no kind", u.call(linux.SYS_KCMP, 2, child, 99, 0, 0), failed(linux.EINVAL))
		const robust, list = dataAt + 0xe00, 0x1234
		is(t, "set_robust_list", u.call(linux.SYS_SET_ROBUST_LIST, list, 24), 0)
		is(t, "get_robust_list", u.call(linux.SYS_GET_ROBUST_LIST, 0, robust, robust+8), 0)
		is(t, "its address", int64(u.load32(robust)), list)
		is(t, "its size", int64(u.load32(robust+8)), 24)
		is(t, "of the child", u.call(linux.SYS_GET_ROBUST_LIST, child, robust, robust+8), 0)
		is(t, "its address", int64(u.load32(robust)), 0)
		is(t, "of no thread", u.call(linux.SYS_GET_ROBUST_LIST, 999, robust, robust+8), failed(linux.ESRCH))
		is(t, "set_robust_list", u.call(linux.SYS_SET_ROBUST_LIST, 0, 24), 0)
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		is(t, "robust list of root", u.call(linux.SYS_GET_ROBUST_LIST, child, robust, robust+8), failed(linux.EPERM))
		is(t, "of root", u.call(linux.SYS_PROCESS_VM_READV, child, local, 1, remote, 1, 0), failed(linux.EPERM))
		is(t, "of root", u.call(linux.SYS_KCMP, 2, child, linux.KCMP_VM, 0, 0), failed(linux.EPERM))
		is(t, "unshare", u.call(linux.SYS_UNSHARE, linux.CLONE_NEWNS), failed(linux.EPERM))
		is(t, "unshare of two", u.call(linux.SYS_UNSHARE, linux.CLONE_NEWNS|linux.CLONE_NEWNET), failed(linux.EPERM))
		is(t, "setns", u.call(linux.SYS_SETNS, 99, 0), failed(linux.EBADF))
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}

// process_madvise gives advice about ranges of the own memory and of another process, and stops at the first range that
// fails. process_mrelease needs a process that a signal has killed. The expected results are those of Linux 6.18.
func TestAdviseOther(t *testing.T) {
	const page, ranges = mem.PageSize, dataAt + 64
	run(t, func(u *user) {
		at := uint64(u.call(linux.SYS_MMAP, 0, 8*page, linux.PROT_READ|linux.PROT_WRITE, linux.MAP_PRIVATE|linux.MAP_ANONYMOUS, 1<<64-1, 0))
		own := uint64(u.call(linux.SYS_PIDFD_OPEN, 2, 0))
		child := uint64(u.fork(1))
		other := uint64(u.call(linux.SYS_PIDFD_OPEN, child, 0))
		u.words(ranges, uint32(at), uint32(at>>32), 2*page, 0, uint32(at+4*page), uint32(at>>32), page, 0, uint32(at+6*page), uint32(at>>32), page, 0)
		u.store32(at, 7)
		advise := func(what string, want int64, fd, count, advice, flags uint64) {
			t.Helper()
			is(t, what, u.call(linux.SYS_PROCESS_MADVISE, fd, ranges, count, advice, flags), want)
		}
		const all = 4 * page
		advise("cold of another process", all, other, 3, mem.AdviseCold, 0)
		advise("page out", all, other, 3, mem.AdvisePageOut, 0)
		advise("random of another process", failed(linux.EINVAL), other, 3, mem.AdviseRandom, 0)
		advise("random of the own process", all, own, 3, mem.AdviseRandom, 0)
		advise("unknown advice", failed(linux.EINVAL), own, 0, 100, 0)
		advise("flags", failed(linux.EINVAL), 99, 3, mem.AdviseCold, 1)
		advise("no descriptor", failed(linux.EBADF), 99, 3, mem.AdviseRandom, 0)
		advise("no range", 0, other, 0, mem.AdviseCold, 0)
		advise("too many ranges", failed(linux.EINVAL), other, 1025, mem.AdviseCold, 0)
		is(t, "the word", int64(u.load32(at)), 7)
		advise("drop", all, own, 3, mem.AdviseDontNeed, 0)
		is(t, "the dropped word", int64(u.load32(at)), 0)
		is(t, "munmap", u.call(linux.SYS_MUNMAP, at+4*page, page), 0)
		advise("the second range is unmapped", 2*page, own, 3, mem.AdviseCold, 0)
		advise("only the child has the range", all, other, 3, mem.AdviseCold, 0)
		is(t, "the first range is unmapped", u.call(linux.SYS_PROCESS_MADVISE, own, ranges+16, 2, mem.AdviseCold, 0), failed(linux.ENOMEM))
		u.words(ranges+32, 0, 0x8000, page, 0)
		advise("a range outside of user memory", failed(linux.EFAULT), 99, 3, mem.AdviseCold, 0)
		u.words(ranges+32, 0, 0x8000, 0, 0)
		advise("an empty range outside of user memory", failed(linux.EFAULT), other, 3, mem.AdviseCold, 0)
		u.words(ranges+32, uint32(at+6*page), uint32(at>>32), page, 0)
		is(t, "a bad vector", u.call(linux.SYS_PROCESS_MADVISE, 99, 8, 1, mem.AdviseCold, 0), failed(linux.EFAULT))

		release := func(what string, want int64, fd, flags uint64) {
			t.Helper()
			is(t, what, u.call(linux.SYS_PROCESS_MRELEASE, fd, flags), want)
		}
		release("release of a living process", failed(linux.EINVAL), other, 0)
		release("flags", failed(linux.EINVAL), other, 1)
		release("no descriptor", failed(linux.EBADF), 99, 0)
		is(t, "kill", u.call(linux.SYS_KILL, child, linux.SIGKILL), 0)
		if n := u.call(linux.SYS_PROCESS_MRELEASE, other, 0); n != 0 && n != failed(linux.ESRCH) {
			t.Errorf("release of a killed process returns %d", n)
		}
		release("release of a zombie", failed(linux.ESRCH), other, 0)
		advise("a zombie", failed(linux.ESRCH), other, 3, mem.AdviseRandom, 0)
		is(t, "wait4", u.call(linux.SYS_WAIT4, child, 0, 0, 0), int64(child))
		release("release of no process", failed(linux.ESRCH), other, 0)

		install(u, linux.SIGCHLD, 2, signal.Restart)
		for range 50 { // SIGCHLD of the child does not interrupt the wait
			child = uint64(u.fork(1))
			other := uint64(u.call(linux.SYS_PIDFD_OPEN, child, 0))
			is(t, "kill", u.call(linux.SYS_KILL, child, linux.SIGKILL), 0)
			if n := u.call(linux.SYS_PROCESS_MRELEASE, other, 0); n != 0 && n != failed(linux.ESRCH) {
				t.Fatalf("release by a process with a handler of SIGCHLD returns %d", n)
			}
			is(t, "wait4", u.call(linux.SYS_WAIT4, child, 0, 0, 0), int64(child))
			is(t, "close", u.call(linux.SYS_CLOSE, other), 0)
		}

		const exitStop = linux.SIGTRAP | linux.PTRACE_EVENT_EXIT<<8
		u.frame.R15 = 1
		child = uint64(u.call(linux.SYS_CLONE, linux.CLONE_VM|linux.SIGCHLD, 0))
		other = uint64(u.call(linux.SYS_PIDFD_OPEN, child, 0))
		is(t, "ptrace", u.call(linux.SYS_PTRACE, linux.PTRACE_SEIZE, child, 0, linux.PTRACE_O_TRACEEXIT), 0)
		is(t, "kill", u.call(linux.SYS_KILL, child, linux.SIGKILL), 0)
		is(t, "wait4", u.call(linux.SYS_WAIT4, child, ranges+64, 0, 0), int64(child))
		is(t, "its status", int64(u.load32(ranges+64)), exitStop<<8|0x7f)
		release("release of memory that is shared with a living process", failed(linux.EINVAL), other, 0)
		is(t, "ptrace", u.call(linux.SYS_PTRACE, linux.PTRACE_CONT, child, 0, 0), 0)
		is(t, "waitid", u.call(linux.SYS_WAITID, linux.P_PID, child, 0, linux.WEXITED|linux.WNOWAIT, 0), 0)
		release("release of a zombie that shared the memory", failed(linux.ESRCH), other, 0)
		advise("a zombie that shared the memory", failed(linux.ESRCH), other, 3, mem.AdviseCold, 0)
		is(t, "wait4", u.call(linux.SYS_WAIT4, child, 0, 0, 0), int64(child))

		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		advise("the own process, without privilege", 2*page, own, 1, mem.AdviseCold, 0)
		advise("another process that may not be inspected", failed(linux.EACCES), uint64(u.call(linux.SYS_PIDFD_OPEN, uint64(u.fork(1)), 0)), 1, mem.AdviseCold, 0)
		is(t, "prctl", u.call(linux.SYS_PRCTL, linux.PR_SET_DUMPABLE, 1), 0)
		child = uint64(u.fork(1))
		advise("another process, without privilege", failed(linux.EPERM), uint64(u.call(linux.SYS_PIDFD_OPEN, child, 0)), 1, mem.AdviseCold, 0)
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) }, func(u *user) {})
}

// Two processes without semaphore adjustments or without an I/O priority have the same of both (kcmp).
func TestCompareAbsent(t *testing.T) {
	const ops = dataAt + 64
	run(t, func(u *user) {
		child := uint64(u.fork(1))
		for _, c := range []struct {
			what    string
			prepare func()
			io, sem int64
		}{
			{"neither", func() {}, 0, 0},
			{"SEM_UNDO", func() {
				id := u.call(linux.SYS_SEMGET, linux.IPC_PRIVATE, 1, 0o600)
				u.store32(ops, 1<<16) // semaphore 0 is increased by 1
				u.store32(ops+4, linux.SEM_UNDO)
				is(t, "semop", u.call(linux.SYS_SEMOP, uint64(id), ops, 1), 0)
			}, 0, 1},
			{"an I/O priority", func() { is(t, "ioprio_set", u.call(linux.SYS_IOPRIO_SET, 1, 0, 2<<13|4), 0) }, 1, 1},
		} {
			c.prepare()
			is(t, "KCMP_IO with "+c.what, u.call(linux.SYS_KCMP, 2, child, linux.KCMP_IO, 0, 0), c.io)
			is(t, "KCMP_SYSVSEM with "+c.what, u.call(linux.SYS_KCMP, 2, child, linux.KCMP_SYSVSEM, 0, 0), c.sem)
			is(t, "KCMP_SYSVSEM of itself", u.call(linux.SYS_KCMP, 2, 2, linux.KCMP_SYSVSEM, 0, 0), 0)
		}
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}

// A queued signal carries its value. Another process cannot claim that it comes from the kernel.
func TestQueuedSignal(t *testing.T) {
	const info, set, realTime = dataAt + 64, dataAt + 256, 40
	run(t, func(u *user) {
		u.store(set, binary.LittleEndian.AppendUint64(nil, uint64(signal.SetOf(linux.SIGUSR1))))
		u.call(linux.SYS_RT_SIGPROCMASK, linux.SIG_BLOCK, set, 0, setSize)
		child := u.fork(1)
		is(t, "sigtimedwait", u.call(linux.SYS_RT_SIGTIMEDWAIT, set, info, 0, setSize), linux.SIGUSR1)
		is(t, "code", int64(int32(u.load32(info+8))), signal.CodeQueue)
		is(t, "sender", int64(u.load32(info+16)), child)
		is(t, "value", int64(u.load32(info+24)), 99)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		exit(u, 0)
	}, func(u *user) {
		b := make([]byte, signal.InfoSize)
		signal.Info{Signal: linux.SIGUSR1, Code: signal.CodeUser, PID: 3, Value: 99}.Put(b)
		u.store(info, b)
		is(t, "as the kernel", u.call(linux.SYS_RT_SIGQUEUEINFO, 2, linux.SIGUSR1, info), failed(linux.EPERM))
		binary.LittleEndian.PutUint32(b[8:], 1<<32+signal.CodeQueue)
		u.store(info, b)
		is(t, "sigqueue", u.call(linux.SYS_RT_SIGQUEUEINFO, 2, linux.SIGUSR1, info), 0)
		u.store(set, binary.LittleEndian.AppendUint64(nil, uint64(signal.SetOf(realTime))))
		u.call(linux.SYS_RT_SIGPROCMASK, linux.SIG_BLOCK, set, 0, setSize)
		u.limitTo(t, linux.RLIMIT_SIGPENDING, 2, 2)
		self := uint64(u.call(linux.SYS_GETPID))
		for _, want := range []int64{0, 0, failed(linux.EAGAIN)} {
			u.store32(info, realTime)
			is(t, "queue", u.call(linux.SYS_RT_SIGQUEUEINFO, self, realTime, info), want)
		}
		is(t, "kill", u.call(linux.SYS_KILL, self, linux.SIGCHLD), 0)
		exit(u, 0)
	})
}

// clone3 with a bad address for the pidfd fails and creates no process. Clocks and requests that Linux knows but does not
// support here return its errors, and only the owner of a file may open it with O_NOATIME (LTP's clone302, clock_nanosleep01,
// arch_prctl01, kill03, waitpid04, sched_setparam04 and open02).
func TestUnsupportedRequests(t *testing.T) {
	const arguments, bad = dataAt + 64, 0x1000
	run(t, func(u *user) {
		u.words(arguments, linux.CLONE_PIDFD, 0, bad, 0, 0, 0, 0, 0, linux.SIGCHLD, 0, 0, 0, 0, 0, 0, 0)
		is(t, "clone3", u.call(linux.SYS_CLONE3, arguments, 64), failed(linux.EFAULT))
		is(t, "wait4", u.call(linux.SYS_WAIT4, 1<<64-1, 0, 0, 0), failed(linux.ECHILD))
		is(t, "the descriptor is closed", u.call(linux.SYS_DUP, 0), failed(linux.EBADF))
		u.words(arguments, 0, 0, 0, 0)
		for _, clock := range []uint64{linux.CLOCK_THREAD_CPUTIME_ID, linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_REALTIME_COARSE} {
			is(t, "clock_nanosleep", u.call(linux.SYS_CLOCK_NANOSLEEP, clock, 0, arguments, 0), failed(linux.EOPNOTSUPP))
		}
		is(t, "ARCH_GET_CPUID", u.call(linux.SYS_ARCH_PRCTL, linux.ARCH_GET_CPUID, 0), 1)
		is(t, "ARCH_SET_CPUID", u.call(linux.SYS_ARCH_PRCTL, linux.ARCH_SET_CPUID, 0), failed(linux.ENODEV))
		is(t, "kill", u.call(linux.SYS_KILL, 1<<31, linux.SIGKILL), failed(linux.ESRCH))
		is(t, "wait4", u.call(linux.SYS_WAIT4, 1<<31, 0, 0, 0), failed(linux.ESRCH))
		is(t, "sched_setscheduler", u.call(linux.SYS_SCHED_SETSCHEDULER, 0, linux.SCHED_OTHER, 0), failed(linux.EINVAL))
		is(t, "sched_setparam", u.call(linux.SYS_SCHED_SETPARAM, 0, 0), failed(linux.EINVAL))
		path := u.text(dataAt+64, "/file")
		is(t, "open", u.call(linux.SYS_OPEN, path, linux.O_CREAT|linux.O_NOATIME, 0o644), 0)
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		is(t, "open", u.call(linux.SYS_OPEN, path, linux.O_RDONLY|linux.O_NOATIME), failed(linux.EPERM))
		is(t, "open", u.call(linux.SYS_OPEN, path, linux.O_RDONLY), 1)
		exit(u, 0)
	})
}
