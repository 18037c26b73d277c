package rt

import (
	"syscall"
	"unsafe"
)

// hostUname is what the host says. It is set before the door opens and never
// changed.
var hostUname syscall.Utsname

//go:noinline
func sysUname(p unsafe.Pointer) (uintptr, uintptr) {
	if p == nil {
		return fail(syscall.EFAULT)
	}
	names := hostUname
	ours := process.Uname()
	setString(names.Release[:], ours.Release)
	if ours.Node != "" {
		setString(names.Nodename[:], ours.Node)
	}
	*(*syscall.Utsname)(p) = names
	return 0, 0
}

// setString fills a field with a string, cut to fit, and NULs.
func setString(field []int8, s string) {
	clear(field)
	for i := range min(len(s), len(field)-1) {
		field[i] = int8(s[i])
	}
}

// stringOf is a field up to its NUL.
func stringOf(field []int8) string {
	var b []byte
	for _, c := range field {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
