package task

import (
	"testing"

	"loam/abi/linux"
)

// With SO_PASSCRED, a message has the process and the real user of the process that sent it, also if another process made the
// socket (unix(7)). A sender may name other IDs with SCM_CREDENTIALS only if it has the rights.
func TestSenderOfMessage(t *testing.T) {
	const header, vector, control, data = dataAt + 256, dataAt + 320, dataAt + 384, dataAt + 512
	var ends [2]uint64
	var parent uint64
	message := func(u *user, controlSize uint32) {
		u.words(vector, uint32(data), uint32(uint64(data)>>32), 4, 0)
		u.words(header, 0, 0, 0, 0, uint32(vector), uint32(uint64(vector)>>32), 1, 0, uint32(control), uint32(uint64(control)>>32), controlSize, 0, 0, 0)
	}
	claim := func(u *user, pid, uid, gid uint32) int64 {
		u.words(control, 28, 0, linux.SOL_SOCKET, linux.SCM_CREDENTIALS, pid, uid, gid, 0)
		message(u, 32)
		return u.call(linux.SYS_SENDMSG, ends[0], header, 0)
	}
	run(t, func(u *user) {
		parent = uint64(u.call(linux.SYS_GETPID))
		receive := func(name string, pid int64, uid, gid uint32) {
			t.Helper()
			message(u, 64)
			is(t, name, u.call(linux.SYS_RECVMSG, ends[1], header, 0), 4)
			if g := [3]uint32{u.load32(control + 16), u.load32(control + 20), u.load32(control + 24)}; g != [3]uint32{uint32(pid), uid, gid} {
				t.Errorf("%s: from %v, want %v", name, g, []any{pid, uid, gid})
			}
		}
		for _, kind := range []uint64{linux.SOCK_STREAM, linux.SOCK_DGRAM} {
			ends[0], ends[1] = pair(u, linux.SYS_SOCKETPAIR, linux.AF_UNIX, kind, 0)
			u.words(dataAt, 1)
			is(t, "SO_PASSCRED", u.call(linux.SYS_SETSOCKOPT, ends[1], linux.SOL_SOCKET, linux.SO_PASSCRED, dataAt, 4), 0)
			child := u.fork(1)
			is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt+64, 0, 0), child)
			is(t, "own message", u.call(linux.SYS_WRITE, ends[0], data, 4), 4)
			for _, how := range []string{"write", "writev", "sendto", "splice", "SCM_CREDENTIALS"} {
				receive(how, child, 1000, 1001)
			}
			receive("own message", int64(parent), 0, 0)
			is(t, "other IDs as root", claim(u, uint32(parent), 77, 78), 4)
			receive("other IDs as root", int64(parent), 77, 78)
			is(t, "a process that does not exist", claim(u, 99999, 0, 0), failed(linux.ESRCH))
			is(t, "no user", claim(u, uint32(parent), 1<<32-1, 0), failed(linux.EINVAL))
		}
		exit(u, 0)
	}, func(u *user) {
		self := uint32(u.call(linux.SYS_GETPID))
		u.call(linux.SYS_SETRESGID, 1001, 1003, 1001)
		u.call(linux.SYS_SETRESUID, 1000, 1002, 1000) // the real IDs are sent
		is(t, "write", u.call(linux.SYS_WRITE, ends[0], data, 4), 4)
		message(u, 0)
		is(t, "writev", u.call(linux.SYS_WRITEV, ends[0], vector, 1), 4)
		is(t, "sendto", u.call(linux.SYS_SENDTO, ends[0], data, 4, 0, 0, 0), 4)
		u.call(linux.SYS_PIPE2, dataAt+600, 0)
		is(t, "write to a pipe", u.call(linux.SYS_WRITE, uint64(u.load32(dataAt+604)), data, 4), 4)
		is(t, "splice", u.call(linux.SYS_SPLICE, uint64(u.load32(dataAt+600)), 0, ends[0], 0, 4, 0), 4)
		is(t, "its own IDs", claim(u, self, 1000, 1001), 4)
		is(t, "another process", claim(u, uint32(parent), 1000, 1001), failed(linux.EPERM))
		is(t, "another user", claim(u, self, 0, 1001), failed(linux.EPERM))
		is(t, "another group", claim(u, self, 1000, 0), failed(linux.EPERM))
		exit(u, 0)
	})
}
