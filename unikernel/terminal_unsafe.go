package unikernel

import (
	"syscall"
	"unsafe"
)

// sharesTerminal reports whether standard input is the terminal of this process
// and this process group is in its foreground.
func sharesTerminal() bool {
	var group int32
	// Safety: TIOCGPGRP writes one pid_t (tcgetpgrp(3)); it fails on anything
	// but the controlling terminal.
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, 0, syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0 && int(group) == syscall.Getpgrp()
}
