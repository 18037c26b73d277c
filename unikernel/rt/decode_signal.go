package rt

import "syscall"

// Decoders of calls that send signals. There is one process, and the host's others
// are none of its business.

//go:noinline
func sysKill(pid, signal int) (uintptr, uintptr) {
	own := syscall.Getpid()
	if pid != own && pid != 0 && pid != -1 {
		return fail(syscall.ESRCH)
	}
	r, _, errno := hostCall(syscall.SYS_KILL, uintptr(own), uintptr(signal), 0, 0, 0, 0)
	return r, uintptr(errno)
}

//go:noinline
func sysTgkill(pid, thread, signal int) (uintptr, uintptr) {
	if pid != syscall.Getpid() {
		return fail(syscall.ESRCH)
	}
	r, _, errno := hostCall(syscall.SYS_TGKILL, uintptr(pid), uintptr(thread), uintptr(signal), 0, 0, 0)
	return r, uintptr(errno)
}
