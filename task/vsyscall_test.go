package task

import (
	"encoding/binary"
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
)

// enterVsyscall stops the thread at the function time of the vsyscall page, with a return address on the stack, and returns RAX.
func enterVsyscall(u *user, r Reason, vector uint64) int64 {
	const fetch, vtime = 1 << 4, 0xffff_ffff_ff60_0400
	f := &u.frame
	u.store(dataAt+0x700, binary.LittleEndian.AppendUint64(nil, textAt+0x42))
	f.AX, f.DI, f.IP, f.SP = 99, 0, vtime, dataAt+0x700
	f.Vector, f.Code, u.address = vector, fetch, vtime
	u.stop(r)
	if f.IP != textAt+0x42 || f.SP != dataAt+0x708 {
		u.space.machine.t.Errorf("%v: IP %#x, SP %#x", r, f.IP, f.SP)
	}
	return int64(f.AX)
}

// A call of the vsyscall page is made if the fetch of the instruction fails, and if the kernel refuses to enter ring 3 at that
// address: a signal handler, a debugger or the trap flag stopped the thread there.
func TestVsyscall(t *testing.T) {
	status := run(t, func(u *user) {
		now := u.call(linux.SYS_TIME, 0)
		is(t, "fetch", enterVsyscall(u, Fault, amd64.VectorPage), now)
		is(t, "entry", enterVsyscall(u, Exception, amd64.VectorProtection), now)
		exit(u, 3)
	})
	is(t, "status", int64(status), 3<<8)
}

// The error EFAULT of a filter is the result of the call, and no signal is sent.
func TestVsyscallFiltered(t *testing.T) {
	const filterAt, programAt = dataAt + 0x100, dataAt + 0x200
	status := run(t, func(u *user) {
		le := binary.LittleEndian
		instruction := func(b []byte, code uint16, otherwise byte, k uint32) []byte {
			return le.AppendUint32(append(le.AppendUint16(b, code), 0, otherwise), k)
		}
		b := instruction(nil, 0x20, 0, 0)           // load the number of the call
		b = instruction(b, 0x15, 1, linux.SYS_TIME) // unless it is time, skip one instruction
		b = instruction(b, 0x06, 0, linux.SECCOMP_RET_ERRNO|uint32(linux.EFAULT))
		b = instruction(b, 0x06, 0, linux.SECCOMP_RET_ALLOW)
		u.store(programAt, b)
		u.store(filterAt, le.AppendUint64(le.AppendUint64(nil, uint64(len(b)/8)), programAt))
		is(t, "seccomp", u.call(linux.SYS_SECCOMP, linux.SECCOMP_SET_MODE_FILTER, 0, filterAt), 0)
		is(t, "filtered", enterVsyscall(u, Fault, amd64.VectorPage), failed(linux.EFAULT))
		exit(u, 3)
	})
	is(t, "status", int64(status), 3<<8)
}
