package linux

// Memory layouts of the structures that calls on processes, signals and system information use.

// Rlimit is struct rlimit64 (prlimit(2)).
type Rlimit struct{ Cur, Max uint64 }

// SizeofRlimit is the size of a struct rlimit64 in bytes.
const SizeofRlimit = 16

// ParseRlimit decodes a struct rlimit64.
func ParseRlimit(b []byte) Rlimit { return Rlimit{Cur: le.Uint64(b), Max: le.Uint64(b[8:])} }

// Put encodes r into the first SizeofRlimit bytes of b.
func (r Rlimit) Put(b []byte) {
	le.PutUint64(b, r.Cur)
	le.PutUint64(b[8:], r.Max)
}

// Utsname is struct utsname (uname(2)). A string is cut to 64 bytes.
type Utsname struct{ Sysname, Nodename, Release, Version, Machine, Domainname string }

// SizeofUtsname is the size of a struct utsname in bytes, and utsnameField the size of each field.
const (
	SizeofUtsname = 6 * utsnameField
	utsnameField  = 65
)

// NameMax is the greatest length of a host name and of a domain name in bytes (__NEW_UTS_LEN).
const NameMax = utsnameField - 1

// Put encodes u into the first SizeofUtsname bytes of b.
func (u *Utsname) Put(b []byte) {
	clear(b[:SizeofUtsname])
	for i, s := range [...]string{u.Sysname, u.Nodename, u.Release, u.Version, u.Machine, u.Domainname} {
		copy(b[i*utsnameField:][:utsnameField-1], s)
	}
}

// CapHeader is struct __user_cap_header_struct (capget(2)).
type CapHeader struct {
	Version uint32
	PID     int32
}

// SizeofCapHeader is the size of a struct __user_cap_header_struct in bytes.
const SizeofCapHeader = 8

// ParseCapHeader decodes a struct __user_cap_header_struct.
func ParseCapHeader(b []byte) CapHeader {
	return CapHeader{Version: le.Uint32(b), PID: int32(le.Uint32(b[4:]))}
}

// Put encodes h into the first SizeofCapHeader bytes of b.
func (h CapHeader) Put(b []byte) {
	le.PutUint32(b, h.Version)
	le.PutUint32(b[4:], uint32(h.PID))
}

// CapData holds three sets of 64 capabilities. It is encoded as two struct __user_cap_data_struct: the
// first has the lower halves, the second the upper halves.
type CapData struct{ Effective, Permitted, Inheritable uint64 }

// SizeofCapData is the size of both structures in bytes.
const SizeofCapData = 24

// ParseCapData decodes both structures.
func ParseCapData(b []byte) CapData {
	set := func(at int) uint64 { return uint64(le.Uint32(b[at:])) | uint64(le.Uint32(b[12+at:]))<<32 }
	return CapData{Effective: set(0), Permitted: set(4), Inheritable: set(8)}
}

// Put encodes d into the first SizeofCapData bytes of b.
func (d CapData) Put(b []byte) {
	for i, set := range [...]uint64{d.Effective, d.Permitted, d.Inheritable} {
		le.PutUint32(b[4*i:], uint32(set))
		le.PutUint32(b[12+4*i:], uint32(set>>32))
	}
}

// VfsCapData is struct vfs_ns_cap_data: the capabilities of a program file, as its attribute security.capability holds them
// (capabilities(7)). Version 2 has no RootID.
type VfsCapData struct {
	Magic                  uint32 // version, and VFS_CAP_FLAGS_EFFECTIVE
	Permitted, Inheritable uint64
	RootID                 uint32
}

// Sizes of the two versions of struct vfs_ns_cap_data in bytes.
const (
	SizeofVfsCapData2 = 20
	SizeofVfsCapData  = 24
)

// ParseVfsCapData decodes a valid struct vfs_ns_cap_data.
func ParseVfsCapData(b []byte) VfsCapData {
	c := VfsCapData{
		Magic: le.Uint32(b), Permitted: uint64(le.Uint32(b[4:])) | uint64(le.Uint32(b[12:]))<<32,
		Inheritable: uint64(le.Uint32(b[8:])) | uint64(le.Uint32(b[16:]))<<32,
	}
	if len(b) >= SizeofVfsCapData {
		c.RootID = le.Uint32(b[20:])
	}
	return c
}

// ValidVfsCapData reports whether b is a struct vfs_ns_cap_data of version 2 or 3.
func ValidVfsCapData(b []byte) bool {
	switch len(b) {
	case SizeofVfsCapData2:
		return le.Uint32(b)&^VFS_CAP_FLAGS_EFFECTIVE == VFS_CAP_REVISION_2
	case SizeofVfsCapData:
		return le.Uint32(b)&^VFS_CAP_FLAGS_EFFECTIVE == VFS_CAP_REVISION_3
	}
	return false
}

// SigStack is stack_t (sigaltstack(2)).
type SigStack struct {
	Addr  uint64
	Flags int32
	Size  uint64
}

// SizeofSigStack is the size of a stack_t in bytes.
const SizeofSigStack = 24

// ParseSigStack decodes a stack_t.
func ParseSigStack(b []byte) SigStack {
	return SigStack{Addr: le.Uint64(b), Flags: int32(le.Uint32(b[8:])), Size: le.Uint64(b[16:])}
}

// Put encodes a stack_t.
func (s SigStack) Put(b []byte) {
	le.PutUint64(b, s.Addr)
	le.PutUint64(b[8:], uint64(uint32(s.Flags)))
	le.PutUint64(b[16:], s.Size)
}

// KernelSigaction is the kernel's struct sigaction (rt_sigaction(2)).
type KernelSigaction struct{ Handler, Flags, Restorer, Mask uint64 }

// SizeofKernelSigaction is the size of the kernel's struct sigaction in bytes.
const SizeofKernelSigaction = 32

// ParseKernelSigaction decodes the kernel's struct sigaction.
func ParseKernelSigaction(b []byte) KernelSigaction {
	return KernelSigaction{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])}
}

// Put encodes the kernel's struct sigaction.
func (a KernelSigaction) Put(b []byte) {
	le.PutUint64(b, a.Handler)
	le.PutUint64(b[8:], a.Flags)
	le.PutUint64(b[16:], a.Restorer)
	le.PutUint64(b[24:], a.Mask)
}
