package task

import (
	"testing"

	"loam/abi/linux"
)

// sethostname and setdomainname need CAP_SYS_ADMIN, and change what uname returns.
func TestNodeNames(t *testing.T) {
	const names, field = dataAt + 512, linux.SizeofUtsname / 6
	run(t, func(u *user) {
		is(t, "sethostname", u.call(linux.SYS_SETHOSTNAME, u.text(dataAt, "other"), 3), 0)
		is(t, "setdomainname", u.call(linux.SYS_SETDOMAINNAME, u.text(dataAt, "example"), 7), 0)
		is(t, "too long", u.call(linux.SYS_SETHOSTNAME, dataAt, linux.NameMax+1), failed(linux.EINVAL))
		is(t, "negative", u.call(linux.SYS_SETHOSTNAME, dataAt, 1<<64-1), failed(linux.EINVAL))
		is(t, "bad address", u.call(linux.SYS_SETHOSTNAME, 8, 4), failed(linux.EFAULT))
		is(t, "uname", u.call(linux.SYS_UNAME, names), 0)
		is(t, "the node name", int64(u.load32(names+field)), 'o'|'t'<<8|'h'<<16)
		is(t, "the domain name", int64(u.load32(names+5*field)), 'e'|'x'<<8|'a'<<16|'m'<<24)
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		is(t, "without a right", u.call(linux.SYS_SETHOSTNAME, dataAt, 3), failed(linux.EPERM))
		exit(u, 0)
	})
}
