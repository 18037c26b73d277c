package rt

import (
	"syscall"
	"unsafe"
)

//go:noinline
func sysSetUserIDs(ids ...uint32) (uintptr, uintptr) { return fail(process.SetUserIDs(ids...)) }

//go:noinline
func sysSetGroupIDs(ids ...uint32) (uintptr, uintptr) { return fail(process.SetGroupIDs(ids...)) }

//go:noinline
func sysSetID(id uint32, user bool) (uintptr, uintptr) {
	if user {
		return fail(process.SetUserID(id))
	}
	return fail(process.SetGroupID(id))
}

//go:noinline
func sysSetFileID(user bool) (uintptr, uintptr) {
	if user {
		return result(process.SetFileUserID(), 0)
	}
	return result(process.SetFileGroupID(), 0)
}

//go:noinline
func sysSetpgid(pid, to int32) (uintptr, uintptr) {
	group, _, _ := hostCall(syscall.SYS_GETPGRP, 0, 0, 0, 0, 0, 0)
	return fail(process.SetGroup(pid, to, int32(group)))
}

//go:noinline
func sysSetpriority(which int, who int32, nice int) (uintptr, uintptr) {
	const most = 20 // less the nice value is what getpriority(2) returns
	now, _, _ := hostCall(syscall.SYS_GETPRIORITY, 0, 0, 0, 0, 0, 0)
	return fail(process.SetPriority(which, who, nice, most-int(now)))
}

// capHeader is struct __user_cap_header_struct, and capData two times
// __user_cap_data_struct, of the lower and the upper capabilities.
type (
	capHeader struct {
		version uint32
		pid     int32
	}
	capData [2]struct{ effective, permitted, inheritable uint32 }
)

// capVersion is _LINUX_CAPABILITY_VERSION_3.
const capVersion = 0x20080522

// sysCap is capget and capset.
//
//go:noinline
func sysCap(header, data unsafe.Pointer, set bool) (uintptr, uintptr) {
	if header == nil {
		return fail(syscall.EFAULT)
	}
	h := (*capHeader)(header)
	d := (*capData)(data)
	switch {
	case h.version != capVersion:
		h.version = capVersion
		if d == nil && !set { // who asks for the version
			return fail(0)
		}
		return fail(syscall.EINVAL)
	case h.pid != 0 && h.pid != int32(syscall.Getpid()):
		if set {
			return fail(syscall.EPERM)
		}
		return fail(syscall.ESRCH)
	case d == nil:
		return fail(syscall.EFAULT)
	case set:
		return fail(process.SetCapabilities(
			uint64(d[0].effective)|uint64(d[1].effective)<<32,
			uint64(d[0].permitted)|uint64(d[1].permitted)<<32,
			uint64(d[0].inheritable)|uint64(d[1].inheritable)<<32))
	}
	c := process.Capabilities()
	*d = capData{}
	d[0].effective, d[1].effective = uint32(c), uint32(c>>32)
	d[0].permitted, d[1].permitted = d[0].effective, d[1].effective
	return fail(0)
}

// sysPrctl leaves to the host the names of threads and of memory.
//
//go:noinline
func sysPrctl(option int, a2, a3, a4, a5 uintptr) (uintptr, uintptr) {
	const setName, getName, setVMA = 15, 16, 0x53564d41
	switch option {
	case setName, getName, setVMA:
		r, _, errno := hostCall(syscall.SYS_PRCTL, uintptr(option), a2, a3, a4, a5, 0)
		return r, uintptr(errno)
	}
	return result(process.Prctl(option, uint64(a2)))
}
