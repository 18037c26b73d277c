package task

import (
	"testing"

	"loam/abi/linux"
)

// A private barrier needs a registration, which a child inherits. A global barrier concerns all processes.
func TestMembarrier(t *testing.T) {
	run(t, func(u *user) {
		made := &u.space.machine.barriers
		is(t, "query", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_QUERY, 0), barriers)
		is(t, "flags", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_GLOBAL, 1), failed(linux.EINVAL))
		is(t, "two commands", u.call(linux.SYS_MEMBARRIER, 3, 0), failed(linux.EINVAL))
		is(t, "not registered", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0), failed(linux.EPERM))
		is(t, "barriers", int64(made.Load()), 0)
		is(t, "register", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0), 0)
		is(t, "private", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0), 0)
		is(t, "barriers", int64(made.Load()), 1)
		is(t, "not registered", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0), failed(linux.EPERM))
		is(t, "registrations", u.call(linux.SYS_MEMBARRIER, getRegistrations, 0), linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		exit(u, 0)
	}, func(u *user) {
		made := &u.space.machine.barriers
		is(t, "inherited", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0), 0)
		is(t, "all", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_GLOBAL, 0), 0)
		is(t, "barriers", int64(made.Load()), 4)
		is(t, "of no process", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0), 0)
		is(t, "barriers", int64(made.Load()), 4)
		is(t, "register", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0), 0)
		is(t, "of this process", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0), 0)
		is(t, "barriers", int64(made.Load()), 5)
		exit(u, 0)
	})
}

// The registration for SYNC_CORE is also one for private barriers.
func TestRegisterSyncCore(t *testing.T) {
	const both = linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED | linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE
	run(t, func(u *user) {
		is(t, "register", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0), 0)
		is(t, "registrations", u.call(linux.SYS_MEMBARRIER, getRegistrations, 0), both)
		is(t, "private", u.call(linux.SYS_MEMBARRIER, linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0), 0)
		exit(u, 0)
	})
}
