package task

import (
	"testing"

	"loam/abi/linux"
	"loam/mem"
)

// Programs use PR_SET_MDWE to forbid new code in their memory. The result of each call is that of Linux 6.18.
func TestMemoryDenyWriteExecute(t *testing.T) {
	const rw, rx = linux.PROT_READ | linux.PROT_WRITE, linux.PROT_READ | linux.PROT_EXEC
	is(t, "the state after execve", int64(run(t, func(u *user) {
		set := func(args ...uint64) int64 {
			return u.call(linux.SYS_PRCTL, append([]uint64{linux.PR_SET_MDWE}, append(args, 0, 0, 0)...)...)
		}
		get := func() int64 { return u.call(linux.SYS_PRCTL, linux.PR_GET_MDWE, 0, 0, 0, 0) }
		plain, code := uint64(u.anonymous(rw)), uint64(u.anonymous(rx))
		for _, bits := range []uint64{2, 4, 1 << 32} {
			is(t, "other bits", set(bits), failed(linux.EINVAL))
		}
		is(t, "a third argument", set(1, 1), failed(linux.EINVAL))
		is(t, "no bits", set(0), 0)
		is(t, "the state with an argument", u.call(linux.SYS_PRCTL, linux.PR_GET_MDWE, 1, 0, 0, 0), failed(linux.EINVAL))
		is(t, "the state before", get(), 0)
		is(t, "writable code before", min(u.anonymous(rw|rx), 0), 0)
		is(t, "set", set(1), 0)
		is(t, "set again", set(1), 0)
		is(t, "remove", set(0), failed(linux.EPERM))
		is(t, "change", set(3), failed(linux.EPERM))
		is(t, "the state", get(), 1)
		is(t, "writable code", u.anonymous(rw|rx), failed(linux.EACCES))
		is(t, "new code", min(u.anonymous(rx), 0), 0)
		is(t, "data becomes code", u.call(linux.SYS_MPROTECT, plain, mem.PageSize, rx), failed(linux.EACCES))
		is(t, "code becomes writable code", u.call(linux.SYS_MPROTECT, code, mem.PageSize, rx|rw), failed(linux.EACCES))
		is(t, "code stays code", u.call(linux.SYS_MPROTECT, code, mem.PageSize, linux.PROT_EXEC), 0)
		is(t, "code becomes data", u.call(linux.SYS_MPROTECT, code, mem.PageSize, rw), 0)
		is(t, "the data becomes code again", u.call(linux.SYS_MPROTECT, code, mem.PageSize, rx), failed(linux.EACCES))
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt+64, 0, 0), child)
		is(t, "the state of the child", int64(u.load32(dataAt+64)), 1<<8)
		u.call(linux.SYS_EXECVE, u.text(dataAt, "/1"), 0, 0)
	}, func(u *user) {
		exit(u, uint64(u.call(linux.SYS_PRCTL, linux.PR_GET_MDWE, 0, 0, 0, 0)))
	})), 1<<8)
}

// PR_MDWE_NO_INHERIT applies only to the process that sets it.
func TestMemoryDenyWriteExecuteNoInherit(t *testing.T) {
	is(t, "the state after execve", int64(run(t, func(u *user) {
		is(t, "set", u.call(linux.SYS_PRCTL, linux.PR_SET_MDWE, 3, 0, 0, 0), 0)
		is(t, "the state", u.call(linux.SYS_PRCTL, linux.PR_GET_MDWE, 0, 0, 0, 0), 3)
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt+64, 0, 0), child)
		is(t, "the state of the child", int64(u.load32(dataAt+64)), 0)
		u.call(linux.SYS_EXECVE, u.text(dataAt, "/1"), 0, 0)
	}, func(u *user) {
		exit(u, uint64(u.call(linux.SYS_PRCTL, linux.PR_GET_MDWE, 0, 0, 0, 0)))
	})), 0)
}

// anonymous maps a page of private memory, and returns its address or an error.
func (u *user) anonymous(prot uint64) int64 {
	return u.call(linux.SYS_MMAP, 0, mem.PageSize, prot, linux.MAP_PRIVATE|linux.MAP_ANONYMOUS, 1<<64-1, 0)
}
