package rt

import (
	"syscall"
	"unsafe"

	"loam/fs"
	"loam/posix"
)

// Decoders of calls that tell about files: stat(2), statx(2), statfs(2).

//go:noinline
func sysFstat(fd int, p unsafe.Pointer) (uintptr, uintptr) {
	st, errno := process.Fstat(fd)
	return putStat(p, st, errno)
}

//go:noinline
func sysStat(dir int, p, to unsafe.Pointer, flags int) (uintptr, uintptr) {
	name, errno := pathAt(p)
	if errno != 0 {
		return fail(errno)
	}
	st, errno := process.StatAt(dir, name, flags)
	return putStat(to, st, errno)
}

func putStat(p unsafe.Pointer, st posix.Stat, errno syscall.Errno) (uintptr, uintptr) {
	switch {
	case errno != 0:
		return fail(errno)
	case p == nil:
		return fail(syscall.EFAULT)
	}
	*(*syscall.Stat_t)(p) = syscall.Stat_t{
		Dev: st.On.Number(), Ino: st.Inode, Nlink: uint64(st.Links), Mode: uint32(st.Mode), Uid: st.UID, Gid: st.GID,
		Rdev: st.Device.Number(), Size: st.Size, Blksize: st.BlockSize, Blocks: st.Blocks,
		Atim: syscall.NsecToTimespec(int64(st.Access)),
		Mtim: syscall.NsecToTimespec(int64(st.Modify)),
		Ctim: syscall.NsecToTimespec(int64(st.Status)),
	}
	return 0, 0
}

// statx is struct statx.
type statx struct {
	mask, blockSize     uint32
	attributes          uint64
	links, uid, gid     uint32
	mode, _             uint16
	inode, size, blocks uint64
	attributesMask      uint64
	access, birth       statxTime
	status, modify      statxTime
	deviceMajor         uint32
	deviceMinor         uint32
	onMajor, onMinor    uint32
	_                   [14]uint64
}

type statxTime struct {
	seconds     int64
	nanoseconds uint32
	_           int32
}

// statxBasic is STATX_BASIC_STATS: what stat(2) tells.
const statxBasic = 0x7ff

//go:noinline
func sysStatx(dir int, p unsafe.Pointer, flags int, to unsafe.Pointer) (uintptr, uintptr) {
	name, errno := pathAt(p)
	if errno != 0 {
		return fail(errno)
	}
	st, errno := process.StatAt(dir, name, flags)
	switch {
	case errno != 0:
		return fail(errno)
	case to == nil:
		return fail(syscall.EFAULT)
	}
	*(*statx)(to) = statx{
		mask: statxBasic, blockSize: uint32(st.BlockSize), links: st.Links, uid: st.UID, gid: st.GID, mode: uint16(st.Mode),
		inode: st.Inode, size: uint64(st.Size), blocks: uint64(st.Blocks),
		access: statxTimeOf(st.Access), modify: statxTimeOf(st.Modify), status: statxTimeOf(st.Status),
		deviceMajor: st.Device.Major, deviceMinor: st.Device.Minor, onMajor: st.On.Major, onMinor: st.On.Minor,
	}
	return 0, 0
}

func statxTimeOf(t fs.Time) statxTime {
	ts := syscall.NsecToTimespec(int64(t))
	return statxTime{seconds: ts.Sec, nanoseconds: uint32(ts.Nsec)}
}

//go:noinline
func sysStatfs(p, to unsafe.Pointer) (uintptr, uintptr) {
	name, errno := pathAt(p)
	if errno != 0 {
		return fail(errno)
	}
	u, errno := process.Statfs(name)
	return putStatfs(to, u, errno)
}

//go:noinline
func sysFstatfs(fd int, to unsafe.Pointer) (uintptr, uintptr) {
	u, errno := process.Fstatfs(fd)
	return putStatfs(to, u, errno)
}

func putStatfs(p unsafe.Pointer, u fs.Usage, errno syscall.Errno) (uintptr, uintptr) {
	switch {
	case errno != 0:
		return fail(errno)
	case p == nil:
		return fail(syscall.EFAULT)
	}
	const readOnly = 1 // ST_RDONLY
	st := syscall.Statfs_t{
		Type: u.Type, Bsize: u.BlockSize, Frsize: u.BlockSize, Namelen: u.MaxNameLength,
		Blocks: u.Blocks, Bfree: u.BlocksFree, Bavail: u.BlocksFree, Files: u.Files, Ffree: u.FilesFree,
	}
	if u.ReadOnly {
		st.Flags |= readOnly
	}
	*(*syscall.Statfs_t)(p) = st
	return 0, 0
}
