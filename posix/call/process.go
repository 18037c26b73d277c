package call

import "loam/abi/linux"

// Calls about the process: its IDs, limits, names and signals.

// kernel makes a call of the underlying kernel (posix.Kernel). Errors: ENOSYS if the process has none.
func (c Caller) kernel(number int, a1, a2, a3, a4, a5, a6 uint64) (uint64, linux.Errno) {
	k := c.Process.Kernel()
	if k == nil {
		return fail(linux.ENOSYS)
	}
	return k.Call(number, a1, a2, a3, a4, a5, a6)
}

func setpgid(c Caller, a Args) (uint64, linux.Errno) {
	group, errno := c.kernel(linux.SYS_GETPGRP, 0, 0, 0, 0, 0, 0)
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.SetGroup(int32(a.A1), int32(a.A2), int32(group)))
}

func setpriority(c Caller, a Args) (uint64, linux.Errno) {
	const most = 20 // getpriority(2) returns 20 minus the nice value
	now, errno := c.kernel(linux.SYS_GETPRIORITY, 0, 0, 0, 0, 0, 0)
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.SetPriority(number(a.A1), int32(a.A2), number(a.A3), most-int(now)))
}

// capabilityHeader reads and checks the header of capget(2) and capset(2). If the version differs, it
// writes the supported version to the header and returns EINVAL.
func (c Caller) capabilityHeader(addr uint64) (h linux.CapHeader, errno linux.Errno) {
	h, errno = parse(c, addr, linux.SizeofCapHeader, linux.ParseCapHeader)
	if errno == 0 && h.Version != linux.CAPABILITY_VERSION_3 {
		h.Version = linux.CAPABILITY_VERSION_3
		if _, errno = c.put(addr, linux.SizeofCapHeader, h.Put); errno == 0 {
			errno = linux.EINVAL
		}
	}
	return h, errno
}

func capget(c Caller, a Args) (uint64, linux.Errno) {
	h, errno := c.capabilityHeader(a.A1)
	switch {
	case errno == linux.EINVAL && a.A2 == 0: // with a data pointer of 0, the caller only asks for the supported version
		return fail(0)
	case errno != 0:
		return fail(errno)
	case h.PID < 0:
		return fail(linux.EINVAL)
	case h.PID != 0 && int(h.PID) != c.Process.PID():
		return fail(linux.ESRCH)
	}
	if a.A2 == 0 {
		return fail(0)
	}
	set := c.Process.Capabilities()
	return c.put(a.A2, linux.SizeofCapData, linux.CapData{Effective: set, Permitted: set}.Put)
}

func capset(c Caller, a Args) (uint64, linux.Errno) {
	h, errno := c.capabilityHeader(a.A1)
	switch {
	case errno != 0:
		return fail(errno)
	case h.PID != 0 && int(h.PID) != c.Process.PID():
		return fail(linux.EPERM)
	}
	d, errno := parse(c, a.A2, linux.SizeofCapData, linux.ParseCapData)
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.SetCapabilities(d.Effective, d.Permitted, d.Inheritable))
}

// threadNameSize is the size of a thread's name including the NUL, in bytes (prctl(2)).
const threadNameSize = 16

// memoryNameMax is the maximum size of a mapping's name including the NUL, in bytes (PR_SET_VMA).
const memoryNameMax = 80

// prctl implements prctl(2). The underlying kernel handles the names of threads and memory.
func prctl(c Caller, a Args) (uint64, linux.Errno) {
	k := c.Process.Kernel()
	option := number(a.A1)
	switch {
	case k == nil:
	case option == linux.PR_SET_NAME:
		name, errno := c.Memory.String(a.A2, threadNameSize)
		if errno == linux.ENAMETOOLONG { // a longer name is truncated
			b, errno := c.copyIn(a.A2, threadNameSize-1)
			if errno != 0 {
				return fail(errno)
			}
			name = string(b)
		} else if errno != 0 {
			return fail(errno)
		}
		return fail(k.NameThread(name))
	case option == linux.PR_GET_NAME:
		name, errno := k.ThreadName()
		if errno != 0 {
			return fail(errno)
		}
		b := make([]byte, threadNameSize)
		copy(b[:threadNameSize-1], name)
		return fail(c.Memory.Write(a.A2, b))
	case option == linux.PR_SET_VMA:
		return c.nameMemory(a)
	}
	v, errno := c.Process.Prctl(option, a.A2)
	if errno == 0 && (option == linux.PR_GET_CHILD_SUBREAPER || option == linux.PR_GET_TSC) {
		return 0, c.writeUint32(a.A2, uint32(v))
	}
	return result(v, errno)
}

func (c Caller) nameMemory(a Args) (uint64, linux.Errno) {
	name := ""
	if a.A5 != 0 {
		var errno linux.Errno
		switch name, errno = c.Memory.String(a.A5, memoryNameMax); errno {
		case 0:
		case linux.ENAMETOOLONG:
			return fail(linux.EINVAL)
		default:
			return fail(errno)
		}
	}
	return fail(c.Process.Kernel().NameMemory(int(a.A2), a.A3, a.A4, name))
}

func uname(c Caller, a Args) (uint64, linux.Errno) {
	u := c.Process.Uname()
	l := c.borrow(linux.SizeofUtsname)
	defer l.giveBack()
	u.Put(l.b)
	return fail(c.Memory.Write(a.A1, l.b))
}

// limit implements prlimit(2). An address of 0 means that no limit is set or returned.
func (c Caller) limit(pid, resource int, set, get uint64) (uint64, linux.Errno) {
	k := c.Process.Kernel()
	if k == nil {
		return fail(linux.ENOSYS)
	}
	var to, was *linux.Rlimit
	if set != 0 {
		r, errno := parse(c, set, linux.SizeofRlimit, linux.ParseRlimit)
		if errno != 0 {
			return fail(errno)
		}
		to = &r
	}
	if get != 0 {
		was = new(linux.Rlimit)
	}
	if errno := k.Limit(pid, resource, to, was); errno != 0 || get == 0 {
		return fail(errno)
	}
	return c.put(get, linux.SizeofRlimit, was.Put)
}

func getrlimit(c Caller, a Args) (uint64, linux.Errno) {
	if a.A2 == 0 {
		return fail(linux.EFAULT)
	}
	return c.limit(0, unsigned(a.A1), 0, a.A2)
}

func setrlimit(c Caller, a Args) (uint64, linux.Errno) {
	if a.A2 == 0 {
		return fail(linux.EFAULT)
	}
	return c.limit(0, unsigned(a.A1), a.A2, 0)
}

// kill sends a signal to the process itself. There are no other processes.
func kill(c Caller, a Args) (uint64, linux.Errno) {
	own := c.Process.PID()
	if pid := number(a.A1); pid != own && pid != 0 && pid != -1 {
		return fail(linux.ESRCH)
	}
	return c.kernel(linux.SYS_KILL, uint64(own), uint64(number(a.A2)), 0, 0, 0, 0)
}

func tgkill(c Caller, a Args) (uint64, linux.Errno) {
	if number(a.A1) <= 0 || number(a.A2) <= 0 {
		return fail(linux.EINVAL)
	}
	if number(a.A1) != c.Process.PID() {
		return fail(linux.ESRCH)
	}
	return c.kernel(linux.SYS_TGKILL, uint64(number(a.A1)), uint64(number(a.A2)), uint64(number(a.A3)), 0, 0, 0)
}

func tkill(c Caller, a Args) (uint64, linux.Errno) {
	return tgkill(c, Args{A1: uint64(c.Process.PID()), A2: a.A1, A3: a.A2})
}
