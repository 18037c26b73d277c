package task

import (
	"testing"

	"loam/abi/linux"
	"loam/mem"
)

// process_madvise advises memory of another process for a task that may do so, and process_mrelease needs a process that ends.
func TestOtherAdvice(t *testing.T) {
	const ranges = dataAt + 64
	run(t, func(u *user) {
		child := uint64(u.fork(1))
		fd := uint64(u.call(linux.SYS_PIDFD_OPEN, child, 0))
		advise := func(fd, count uint64, advice, flags uint64) int64 {
			return u.call(linux.SYS_PROCESS_MADVISE, fd, ranges, count, advice, flags)
		}
		page := uint64(dataAt) &^ (mem.PageSize - 1)
		u.words(ranges, uint32(page), 0, mem.PageSize, 0, 8, 0, mem.PageSize, 0)
		is(t, "cold", advise(fd, 1, mem.AdviseCold, 0), mem.PageSize)
		is(t, "the second is bad", advise(fd, 2, mem.AdviseCold, 0), mem.PageSize)
		is(t, "not for others", advise(fd, 1, mem.AdviseDontNeed, 0), failed(linux.EINVAL))
		is(t, "flags", advise(fd, 1, mem.AdviseCold, 1), failed(linux.EINVAL))
		is(t, "no descriptor", advise(99, 1, mem.AdviseCold, 0), failed(linux.EBADF))
		is(t, "alive", u.call(linux.SYS_PROCESS_MRELEASE, fd, 0), failed(linux.EINVAL))
		is(t, "flags", u.call(linux.SYS_PROCESS_MRELEASE, fd, 1), failed(linux.EINVAL))
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		is(t, "of root", advise(fd, 1, mem.AdviseCold, 0), failed(linux.EACCES))
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}
