// Package privilege implements the calls that read and change the credentials of a thread of a Linux program (credentials(7)).
// Package credential has the rules.
package privilege

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/posix/file"
)

// Caller is the thread that makes a call.
type Caller interface {
	ID() int32
	Memory() call.Memory
	// Identity returns the credentials of the thread, and Adopt replaces them.
	Identity() *credential.Set
	Adopt(credential.Set)
	// IdentityOf returns the credentials of a thread, and false if there is none with the ID.
	IdentityOf(id int32) (*credential.Set, bool)
	Map() *mem.Map
}

// Serve executes a call.
type Serve func(t Caller, a call.Args) (uint64, linux.Errno)

// adopt returns a function that stores new credentials of the thread, unless its second argument is an error.
func adopt(t Caller) func(credential.Set, linux.Errno) (uint64, linux.Errno) {
	return func(c credential.Set, errno linux.Errno) (uint64, linux.Errno) {
		if errno == 0 {
			t.Adopt(c)
		}
		return 0, errno
	}
}

// number returns the int in the lower half of a register.
func number(a uint64) int { return int(int32(a)) }

func flag(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}

// Calls maps the numbers of system calls to functions that read and change the credentials of a thread (credentials(7)).
// Package credential has the rules.
//
// As on Linux each thread has its own credentials. The C library changes the credentials of all threads.
var Calls = map[int]Serve{
	linux.SYS_GETUID:  ofSet(func(c *credential.Set) uint32 { return c.UID }),
	linux.SYS_GETEUID: ofSet(func(c *credential.Set) uint32 { return c.EUID }),
	linux.SYS_GETGID:  ofSet(func(c *credential.Set) uint32 { return c.GID }),
	linux.SYS_GETEGID: ofSet(func(c *credential.Set) uint32 { return c.EGID }),
	linux.SYS_GETRESUID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		c := t.Identity()
		return three(t, a, c.UID, c.EUID, c.SUID)
	},
	linux.SYS_GETRESGID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		c := t.Identity()
		return three(t, a, c.GID, c.EGID, c.SGID)
	},
	linux.SYS_GETGROUPS: getgroups,
	linux.SYS_SETGROUPS: setgroups,
	linux.SYS_SETUID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		return adopt(t)(t.Identity().SetUID(uint32(a.A1)))
	},
	linux.SYS_SETGID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		return adopt(t)(t.Identity().SetGID(uint32(a.A1)))
	},
	linux.SYS_SETREUID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		return adopt(t)(t.Identity().SetReUID(uint32(a.A1), uint32(a.A2)))
	},
	linux.SYS_SETREGID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		return adopt(t)(t.Identity().SetReGID(uint32(a.A1), uint32(a.A2)))
	},
	linux.SYS_SETRESUID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		return adopt(t)(t.Identity().SetResUID(uint32(a.A1), uint32(a.A2), uint32(a.A3)))
	},
	linux.SYS_SETRESGID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		return adopt(t)(t.Identity().SetResGID(uint32(a.A1), uint32(a.A2), uint32(a.A3)))
	},
	linux.SYS_SETFSUID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		old := t.Identity().FSUID
		adopt(t)(t.Identity().SetFSUID(uint32(a.A1)), 0)
		return uint64(old), 0
	},
	linux.SYS_SETFSGID: func(t Caller, a call.Args) (uint64, linux.Errno) {
		old := t.Identity().FSGID
		adopt(t)(t.Identity().SetFSGID(uint32(a.A1)), 0)
		return uint64(old), 0
	},
	linux.SYS_CAPGET: capget,
	linux.SYS_CAPSET: capset,
}

// ofSet returns a function for a call that returns one ID of the credentials.
func ofSet(id func(*credential.Set) uint32) Serve {
	return func(t Caller, _ call.Args) (uint64, linux.Errno) { return uint64(id(t.Identity())), 0 }
}

// three writes three IDs (getresuid(2)).
func three(t Caller, a call.Args, ids ...uint32) (uint64, linux.Errno) {
	for i, at := range [...]uint64{a.A1, a.A2, a.A3} {
		if errno := t.Memory().Write(at, binary.LittleEndian.AppendUint32(nil, ids[i])); errno != 0 {
			return 0, errno
		}
	}
	return 0, 0
}

// getgroups implements getgroups(2). Errors: EINVAL, EFAULT.
func getgroups(t Caller, a call.Args) (uint64, linux.Errno) {
	groups := t.Identity().Groups
	n := number(a.A1)
	switch {
	case n == 0:
		return uint64(len(groups)), 0
	case n < len(groups):
		return 0, linux.EINVAL
	}
	var b []byte
	for _, g := range groups {
		b = binary.LittleEndian.AppendUint32(b, g)
	}
	return uint64(len(groups)), t.Memory().Write(a.A2, b)
}

// setgroups implements setgroups(2). Errors: EPERM, EINVAL, EFAULT.
func setgroups(t Caller, a call.Args) (uint64, linux.Errno) {
	if _, errno := t.Identity().SetGroups(nil); errno != 0 {
		return 0, errno
	}
	if a.A1 > credential.MaxGroups {
		return 0, linux.EINVAL
	}
	b := make([]byte, 4*a.A1)
	if errno := t.Memory().Read(b, a.A2); errno != 0 {
		return 0, errno
	}
	groups := make([]uint32, a.A1)
	for i := range groups {
		groups[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return adopt(t)(t.Identity().SetGroups(groups))
}

// capabilityHeader reads the header of capget(2) and capset(2), and returns the size of the data, which depends on the
// version. An unknown version is replaced by the newest one. Errors: EINVAL, EFAULT.
func capabilityHeader(t Caller, addr uint64) (h linux.CapHeader, size int, errno linux.Errno) {
	const version1, version2 = 0x19980330, 0x20071026
	var b [linux.SizeofCapHeader]byte
	if errno = t.Memory().Read(b[:], addr); errno != 0 {
		return h, 0, errno
	}
	h = linux.ParseCapHeader(b[:])
	switch h.Version {
	case version1:
		return h, linux.SizeofCapData / 2, 0
	case version2, linux.CAPABILITY_VERSION_3:
		return h, linux.SizeofCapData, 0
	}
	h.Version = linux.CAPABILITY_VERSION_3
	h.Put(b[:])
	if errno := t.Memory().Write(addr, b[:]); errno != 0 {
		return h, 0, errno
	}
	return h, 0, linux.EINVAL
}

// capget implements capget(2). Errors: EINVAL, ESRCH, EFAULT.
func capget(t Caller, a call.Args) (uint64, linux.Errno) {
	h, size, errno := capabilityHeader(t, a.A1)
	switch {
	case errno == linux.EINVAL && a.A2 == 0:
		return 0, 0
	case errno != 0:
		return 0, errno
	case h.PID < 0:
		return 0, linux.EINVAL
	}
	c := t.Identity()
	if h.PID != 0 {
		var ok bool
		if c, ok = t.IdentityOf(h.PID); !ok {
			return 0, linux.ESRCH
		}
	}
	var b [linux.SizeofCapData]byte
	linux.CapData{Effective: uint64(c.Effective), Permitted: uint64(c.Permitted), Inheritable: uint64(c.Inheritable)}.Put(b[:])
	if a.A2 == 0 {
		return 0, 0
	}
	return 0, t.Memory().Write(a.A2, b[:size])
}

// capset implements capset(2). Errors: EINVAL, EPERM, EFAULT.
func capset(t Caller, a call.Args) (uint64, linux.Errno) {
	h, size, errno := capabilityHeader(t, a.A1)
	switch {
	case errno != 0:
		return 0, errno
	case h.PID != 0 && h.PID != t.ID():
		return 0, linux.EPERM
	}
	var b [linux.SizeofCapData]byte
	if errno := t.Memory().Read(b[:size], a.A2); errno != 0 {
		return 0, errno
	}
	d := linux.ParseCapData(b[:])
	return adopt(t)(t.Identity().SetCapabilities(credential.Capabilities(d.Effective), credential.Capabilities(d.Permitted), credential.Capabilities(d.Inheritable)))
}

// Prctl implements the operations of prctl(2) on capabilities. Errors: EINVAL for an unknown operation.
func Prctl(t Caller, a call.Args) (uint64, linux.Errno) {
	c := t.Identity()
	switch number(a.A1) {
	case linux.PR_CAPBSET_READ:
		if a.A2 > linux.CAP_LAST_CAP {
			return 0, linux.EINVAL
		}
		return flag(c.Bounding.Has(int(a.A2))), 0
	case linux.PR_CAPBSET_DROP:
		return adopt(t)(c.Drop(a.A2))
	case linux.PR_GET_SECUREBITS:
		return uint64(c.Secure), 0
	case linux.PR_SET_SECUREBITS:
		return adopt(t)(c.SetSecure(a.A2))
	case linux.PR_GET_KEEPCAPS:
		return flag(c.Secure&credential.KeepCaps != 0), 0
	case linux.PR_SET_KEEPCAPS:
		return adopt(t)(c.SetKeepCaps(a.A2))
	case linux.PR_CAP_AMBIENT:
		return prctlAmbient(t, a)
	case linux.PR_SET_NO_NEW_PRIVS, linux.PR_GET_NO_NEW_PRIVS, linux.PR_SET_MDWE, linux.PR_GET_MDWE:
		return prctlOneWay(t, a)
	}
	return 0, linux.EINVAL
}

// prctlOneWay implements the operations on restrictions that cannot be removed. Errors: EINVAL, EPERM.
func prctlOneWay(t Caller, a call.Args) (uint64, linux.Errno) {
	if a.A3|a.A4|a.A5 != 0 {
		return 0, linux.EINVAL
	}
	c := *t.Identity()
	switch operation := number(a.A1); {
	case operation == linux.PR_SET_MDWE && a.A2 <= uint64(mem.RefuseExecGain|mem.NoInherit):
		return 0, file.ToErrno(t.Map().Harden(mem.Hardening(a.A2)))
	case operation == linux.PR_SET_NO_NEW_PRIVS && a.A2 == 1:
		c.NoNewPrivs = true
		return adopt(t)(c, 0)
	case operation == linux.PR_GET_MDWE && a.A2 == 0:
		return uint64(t.Map().Hardening()), 0
	case operation == linux.PR_GET_NO_NEW_PRIVS && a.A2 == 0:
		return flag(c.NoNewPrivs), 0
	}
	return 0, linux.EINVAL
}

// prctlAmbient implements PR_CAP_AMBIENT. Errors: EINVAL, EPERM.
func prctlAmbient(t Caller, a call.Args) (uint64, linux.Errno) {
	c := *t.Identity()
	switch {
	case a.A2 == linux.PR_CAP_AMBIENT_CLEAR_ALL && a.A3|a.A4|a.A5 == 0:
		c.Ambient = 0
		return adopt(t)(c, 0)
	case a.A3 > linux.CAP_LAST_CAP || a.A4|a.A5 != 0:
		return 0, linux.EINVAL
	case a.A2 == linux.PR_CAP_AMBIENT_IS_SET:
		return flag(c.Ambient.Has(int(a.A3))), 0
	case a.A2 == linux.PR_CAP_AMBIENT_RAISE, a.A2 == linux.PR_CAP_AMBIENT_LOWER:
		return adopt(t)(c.SetAmbient(a.A3, a.A2 == linux.PR_CAP_AMBIENT_RAISE))
	}
	return 0, linux.EINVAL
}
