package fs

import (
	"time"

	"loam/abi/linux"
	"loam/fs/acl"
)

// Mode is the st_mode of inode(7): the file type and the permission bits.
type Mode uint32

// File types, and the mode bits in addition to rwx.
const (
	TypeMask    Mode = linux.S_IFMT
	Fifo        Mode = linux.S_IFIFO
	CharDevice  Mode = linux.S_IFCHR
	Dir         Mode = linux.S_IFDIR
	BlockDevice Mode = linux.S_IFBLK
	Regular     Mode = linux.S_IFREG
	Symlink     Mode = linux.S_IFLNK
	Socket      Mode = linux.S_IFSOCK

	SetUID      Mode = linux.S_ISUID
	SetGID      Mode = linux.S_ISGID
	Sticky      Mode = linux.S_ISVTX
	Permissions Mode = 0o7777
)

// Type returns the file type without the permission bits.
func (m Mode) Type() Mode { return m & TypeMask }

// Time is a time in nanoseconds since 1970-01-01 UTC. Its range is 1677 to 2262.
type Time int64

// Tick returns a time rounded down to linux.Tick. File systems use it for the times that they set, as on Linux. So most writes to a
// file leave its times as they are, and a file that is written later is never older, in whichever file system.
func Tick(t time.Time) Time {
	n := t.UnixNano()
	return Time(n - n%linux.Tick)
}

// Attr holds the attributes that stat(2) returns, and the access control lists. It is comparable.
type Attr struct {
	Inode     uint64 // inode number, unique in the file system while the file exists
	Mode      Mode
	Links     uint32 // number of names of the file
	UID, GID  uint32
	Device    Device // device number, of a device file
	Size      int64  // size in bytes; of a symbolic link, the length of its target
	Blocks    int64  // allocated space in units of 512 bytes
	BlockSize int64  // preferred size of reads and writes, in bytes
	Access    Time
	Modify    Time // time of the last change of the content
	Status    Time // time of the last change of content or attributes (st_ctime)
	ACL       acl.Set
}

// Device is a device number.
type Device struct{ Major, Minor uint32 }

// Number encodes the number as in st_rdev and st_dev of stat(2) (makedev(3)).
func (d Device) Number() uint64 {
	major, minor := uint64(d.Major), uint64(d.Minor)
	return minor&0xff | major&0xfff<<8 | minor&^0xff<<12 | major&^0xfff<<32
}

// DeviceOf decodes a device number as in mknod(2).
func DeviceOf(number uint64) Device {
	return Device{
		Major: uint32(number>>8&0xfff | number>>32&^0xfff),
		Minor: uint32(number&0xff | number>>12&^0xff),
	}
}

// Fields is a set of fields of a [Change].
type Fields uint8

// Values of Fields: which fields of a Change are to be set.
const (
	SetMode Fields = 1 << iota
	SetOwner
	SetGroup
	SetSize
	SetAccess
	SetModify
	SetAccessList  // the access list, and the permission bits that correspond to it; only of a Controlled
	SetDefaultList // only of a Controlled
)

// Change is a change of attributes by chmod(2), chown(2), truncate(2), utimensat(2), or setxattr(2) of an access control list. The
// file system sets the status time itself.
type Change struct {
	Fields         Fields
	Mode           Mode // permission bits only; with SetAccessList, the bits that the file may keep
	ClearSetIDs    bool // with SetMode: the change only removes the bits that withoutSetIDs removes; Mode has the result for a mode that may be out of date
	KeepSetGID     bool // with ClearSetIDs: the set-group-ID bit stays if the group may not execute the file
	List           acl.List
	UID, GID       uint32
	Size           int64
	Access, Modify Time
	Now            Fields // the fields of times that are set to the present time; a file system may use its own clock for them
}

// Usage holds the information that statfs(2) returns.
type Usage struct {
	Type          int64 // magic number of the file system, f_type in statfs(2)
	BlockSize     int64
	Blocks        uint64 // total number of blocks; 0: no limit
	BlocksFree    uint64
	Files         uint64 // total number of files; 0: no limit
	FilesFree     uint64
	ReadOnly      bool
	Mount         MountFlags // of the mount through which the file was reached
	MaxNameLength int64
}
