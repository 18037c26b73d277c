package task

import (
	"encoding/binary"
	"testing"

	"loam/abi/linux"
	"loam/task/signal"
)

// stack sets the alternate stack and returns the result of sigaltstack(2). old is the address of the previous one.
func (u *user) stack(addr, size, flags, old uint64) int64 {
	b := make([]byte, linux.SizeofSigStack)
	for i, v := range []uint64{addr, flags, size} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	u.store(dataAt+0x900, b)
	return u.call(linux.SYS_SIGALTSTACK, dataAt+0x900, old)
}

// A new thread has no alternate stack, even if the thread that creates it has one: a handler with SA_ONSTACK runs on the stack of
// the thread (sigaltstack(2)).
func TestHandlerOfThreadWithoutStack(t *testing.T) {
	const flags = linux.CLONE_VM | linux.CLONE_FS | linux.CLONE_FILES | linux.CLONE_SIGHAND | linux.CLONE_THREAD
	const old = dataAt + 0xa00
	handled := false
	status := run(t, func(u *user) {
		is(t, "sigaltstack", u.stack(dataAt+0x2000, 0x1000, 0, 0), 0)
		install(u, linux.SIGUSR1, 2, linux.SA_ONSTACK)
		u.frame.R15 = 1
		u.call(linux.SYS_CLONE, flags, 0, 0, 0)
		u.call(linux.SYS_PAUSE)
	}, func(u *user) {
		is(t, "sigaltstack", u.call(linux.SYS_SIGALTSTACK, 0, old), 0)
		is(t, "flags", int64(u.load32(old+8)), linux.SS_DISABLE)
		is(t, "tkill", u.call(linux.SYS_TKILL, uint64(u.call(linux.SYS_GETTID)), linux.SIGUSR1), 0)
		exit(u, 3)
	}, func(u *user) { handled = true })
	if is(t, "status", int64(status), 3<<8); !handled {
		t.Error("the handler did not run")
	}
}

// With SS_AUTODISARM the alternate stack is disabled while a handler runs on it, and has its settings back afterwards.
func TestStackThatDisarms(t *testing.T) {
	const old, at, size = dataAt + 0xa00, dataAt + 0x2000, 0x1000
	run(t, func(u *user) {
		is(t, "unknown flags", u.stack(at, size, 4, 0), failed(linux.EINVAL))
		is(t, "sigaltstack", u.stack(at, size, 1<<31, 0), 0)
		install(u, linux.SIGUSR1, 1, signal.OnStack)
		is(t, "kill", u.call(linux.SYS_KILL, 2, linux.SIGUSR1), 0)
		is(t, "sigaltstack", u.call(linux.SYS_SIGALTSTACK, 0, old), 0)
		is(t, "flags", int64(u.load32(old+8)), 1<<31)
		is(t, "size", int64(u.load32(old+16)), size)
		exit(u, 0)
	}, func(u *user) {
		if sp := u.frame.SP; sp < at || sp >= at+size {
			t.Errorf("the handler runs at %#x", sp)
		}
		is(t, "sigaltstack", u.call(linux.SYS_SIGALTSTACK, 0, old), 0)
		is(t, "flags", int64(u.load32(old+8)), linux.SS_DISABLE)
	})
}
