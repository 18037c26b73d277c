package task

import (
	"testing"

	"loam/abi/linux"
)

// A child in another root uses a Unix socket of its parent: names lead to files in the child's root, and SO_PEERCRED shows the
// child and its user.
func TestInheritedUnixSocket(t *testing.T) {
	const path, credentials, size = dataAt + 0x100, dataAt + 0x200, dataAt + 0x280
	address := func(u *user, name string) uint64 {
		u.text(path+2, name)
		u.store(path, []byte{linux.AF_UNIX, 0})
		return path
	}
	var listener, client, stranger, named uint64
	run(t, func(u *user) {
		open := func() uint64 { return uint64(u.call(linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_STREAM, 0)) }
		listener, client, stranger, named = open(), open(), open(), open()
		is(t, "mkdir", u.call(linux.SYS_MKDIR, u.text(path, "/jail"), 0o777), 0)
		is(t, "bind", u.call(linux.SYS_BIND, listener, address(u, "/socket"), 100), 0)
		is(t, "listen", u.call(linux.SYS_LISTEN, listener, 5), 0)
		is(t, "link", u.call(linux.SYS_LINK, u.text(path, "/socket"), u.text(path+0x40, "/jail/inside")), 0)
		is(t, "chmod", u.call(linux.SYS_CHMOD, u.text(path, "/socket"), 0o666), 0)
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt+64, 0, 0), child)
		u.words(size, 12)
		accepted := uint64(u.call(linux.SYS_ACCEPT, listener, 0, 0))
		is(t, "SO_PEERCRED", u.call(linux.SYS_GETSOCKOPT, accepted, linux.SOL_SOCKET, linux.SO_PEERCRED, credentials, size), 0)
		for i, want := range []int64{child, 1000, 1001} {
			is(t, "peer", int64(u.load32(credentials+uint64(4*i))), want)
		}
		is(t, "the child's file", u.call(linux.SYS_ACCESS, u.text(path, "/jail/new"), 0), 0)
		is(t, "no file outside", u.call(linux.SYS_ACCESS, u.text(path, "/new"), 0), failed(linux.ENOENT))
		exit(u, 0)
	}, func(u *user) {
		is(t, "chmod", u.call(linux.SYS_CHMOD, u.text(path, "/jail"), 0o777), 0)
		is(t, "chroot", u.call(linux.SYS_CHROOT, u.text(path, "/jail")), 0)
		is(t, "chdir", u.call(linux.SYS_CHDIR, u.text(path, "/")), 0)
		u.call(linux.SYS_SETRESGID, 1001, 1001, 1001)
		u.call(linux.SYS_SETRESUID, 1000, 1000, 1000)
		is(t, "connect to a socket outside", u.call(linux.SYS_CONNECT, stranger, address(u, "/socket"), 100), failed(linux.ENOENT))
		is(t, "connect", u.call(linux.SYS_CONNECT, client, address(u, "/inside"), 100), 0)
		is(t, "bind", u.call(linux.SYS_BIND, named, address(u, "/new"), 100), 0)
		exit(u, 0)
	})
}
