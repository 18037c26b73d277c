package task

import (
	"testing"

	"loam/abi/linux"
)

// With CLOSE_RANGE_UNSHARE, the descriptors of a process that shares the table stay open.
func TestCloseRangeUnshare(t *testing.T) {
	run(t, func(u *user) {
		fd := u.call(linux.SYS_EVENTFD2, 0, 0)
		u.frame.R15 = 1
		child := u.call(linux.SYS_CLONE, linux.CLONE_FILES|linux.SIGCHLD, 0, 0, 0)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		is(t, "close", u.call(linux.SYS_CLOSE, uint64(fd)), 0)
		exit(u, 0)
	}, func(u *user) {
		is(t, "flags", u.call(linux.SYS_CLOSE_RANGE, 0, 1<<32-1, 1), failed(linux.EINVAL))
		is(t, "close_range", u.call(linux.SYS_CLOSE_RANGE, 0, 1<<32-1, linux.CLOSE_RANGE_UNSHARE), 0)
		exit(u, 0)
	})
}
