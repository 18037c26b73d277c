package fs

import "syscall"

// Mode is st_mode of inode(7): the type of a file and its permission bits.
type Mode uint32

// Types of files, and the bits beside the nine of rwx.
const (
	TypeMask    Mode = syscall.S_IFMT
	Fifo        Mode = syscall.S_IFIFO
	CharDevice  Mode = syscall.S_IFCHR
	Dir         Mode = syscall.S_IFDIR
	BlockDevice Mode = syscall.S_IFBLK
	Regular     Mode = syscall.S_IFREG
	Symlink     Mode = syscall.S_IFLNK
	Socket      Mode = syscall.S_IFSOCK

	SetUID      Mode = syscall.S_ISUID
	SetGID      Mode = syscall.S_ISGID
	Sticky      Mode = syscall.S_ISVTX
	Permissions Mode = 0o7777
)

// Type is the type alone.
func (m Mode) Type() Mode { return m & TypeMask }

// Time is nanoseconds since 1970-01-01 UTC, from 1677 to 2262.
type Time int64

// Attr is what stat(2) tells of a file. It is comparable.
type Attr struct {
	Inode     uint64 // unique in its file system while the file exists
	Mode      Mode
	Links     uint32 // names that lead to it
	UID, GID  uint32
	Device    Device // of a device file
	Size      int64  // bytes; of a symbolic link, the length of its target
	Blocks    int64  // of 512 bytes, that are really held
	BlockSize int64  // bytes, good to read and write at once
	Access    Time
	Modify    Time // of the content
	Status    Time // of anything (st_ctime)
}

// Device is the number of a device.
type Device struct{ Major, Minor uint32 }

// Number is st_rdev or st_dev of stat(2) (makedev(3)).
func (d Device) Number() uint64 {
	major, minor := uint64(d.Major), uint64(d.Minor)
	return minor&0xff | major&0xfff<<8 | minor&^0xff<<12 | major&^0xfff<<32
}

// DeviceOf is the device that a number as in mknod(2) stands for.
func DeviceOf(number uint64) Device {
	return Device{
		Major: uint32(number>>8&0xfff | number>>32&^0xfff),
		Minor: uint32(number&0xff | number>>12&^0xff),
	}
}

// Fields says which fields of a [Change] count.
type Fields uint8

// The fields of a Change.
const (
	SetMode Fields = 1 << iota
	SetOwner
	SetGroup
	SetSize
	SetAccess
	SetModify
)

// Change is what chmod(2), chown(2), truncate(2) and utimensat(2) change. The
// file system sets the status time itself.
type Change struct {
	Fields         Fields
	Mode           Mode // permission bits only
	UID, GID       uint32
	Size           int64
	Access, Modify Time
}

// Usage is what statfs(2) tells of a file system.
type Usage struct {
	Type          int64 // magic number, as in statfs(2)
	BlockSize     int64
	Blocks        uint64 // in all; 0 when there is no bound
	BlocksFree    uint64
	Files         uint64 // in all; 0 when there is no bound
	FilesFree     uint64
	ReadOnly      bool
	MaxNameLength int64
}
