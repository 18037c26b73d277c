package task

import (
	"testing"

	"loam/abi/linux"
	"loam/mem"
)

// process_madvise advises about the memory of another process. process_mrelease accepts only a process that is about to end.
func TestProcessAdvice(t *testing.T) {
	const vector, cold, unknown = dataAt + 64, mem.AdviseCold, 99
	run(t, func(u *user) {
		child := uint64(u.fork(1))
		pidfd := uint64(u.call(linux.SYS_PIDFD_OPEN, child, 0))
		advise := func(n, advice, flags uint64) int64 {
			return u.call(linux.SYS_PROCESS_MADVISE, pidfd, vector, n, advice, flags)
		}
		u.words(vector, dataAt, 0, 4096, 0, 0x1000, 0, 4096, 0)
		is(t, "one range", advise(1, cold, 0), 4096)
		is(t, "a hole after a range", advise(2, cold, 0), 4096)
		u.words(vector, 0x1000, 0, 4096, 0)
		is(t, "a hole", advise(1, cold, 0), failed(linux.ENOMEM))
		is(t, "too many ranges", advise(1025, cold, 0), failed(linux.EINVAL))
		is(t, "flags", advise(1, cold, 1), failed(linux.EINVAL))
		is(t, "destructive advice", advise(1, mem.AdviseDontNeed, 0), failed(linux.EINVAL))
		is(t, "unknown advice", advise(1, unknown, 0), failed(linux.EINVAL))
		is(t, "no pidfd", u.call(linux.SYS_PROCESS_MADVISE, 99, vector, 1, cold, 0), failed(linux.EBADF))
		is(t, "flags of mrelease", u.call(linux.SYS_PROCESS_MRELEASE, pidfd, 1), failed(linux.EINVAL))
		is(t, "mrelease of no pidfd", u.call(linux.SYS_PROCESS_MRELEASE, 99, 0), failed(linux.EBADF))
		is(t, "mrelease of a running process", u.call(linux.SYS_PROCESS_MRELEASE, pidfd, 0), failed(linux.EINVAL))
		is(t, "kill", u.call(linux.SYS_KILL, child, linux.SIGKILL), 0)
		is(t, "wait", u.call(linux.SYS_WAIT4, child, 0, 0, 0), int64(child))
		is(t, "of an ended process", advise(1, cold, 0), failed(linux.ESRCH))
		is(t, "mrelease of an ended process", u.call(linux.SYS_PROCESS_MRELEASE, pidfd, 0), failed(linux.ESRCH))
		exit(u, 0)
	}, func(u *user) {
		for {
			u.call(linux.SYS_PAUSE)
		}
	})
}
