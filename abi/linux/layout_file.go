package linux

// Memory layouts of the structures that file system calls take and return.

// Stat is struct stat (stat(2)).
type Stat struct {
	Dev, Ino, Nlink     uint64
	Mode, UID, GID      uint32
	Rdev                uint64
	Size, Blksize       int64
	Blocks              int64
	Atime, Mtime, Ctime Timespec
}

// SizeofStat is the size of a struct stat in bytes.
const SizeofStat = 144

// Put encodes s into the first SizeofStat bytes of b.
func (s *Stat) Put(b []byte) {
	_ = b[SizeofStat-1]
	le.PutUint64(b, s.Dev)
	le.PutUint64(b[8:], s.Ino)
	le.PutUint64(b[16:], s.Nlink)
	le.PutUint32(b[24:], s.Mode)
	le.PutUint32(b[28:], s.UID)
	le.PutUint32(b[32:], s.GID)
	le.PutUint32(b[36:], 0)
	le.PutUint64(b[40:], s.Rdev)
	le.PutUint64(b[48:], uint64(s.Size))
	le.PutUint64(b[56:], uint64(s.Blksize))
	le.PutUint64(b[64:], uint64(s.Blocks))
	s.Atime.Put(b[72:])
	s.Mtime.Put(b[88:])
	s.Ctime.Put(b[104:])
	clear(b[120:SizeofStat])
}

// ParseStat decodes a struct stat.
func ParseStat(b []byte) Stat {
	return Stat{
		Dev: le.Uint64(b), Ino: le.Uint64(b[8:]), Nlink: le.Uint64(b[16:]),
		Mode: le.Uint32(b[24:]), UID: le.Uint32(b[28:]), GID: le.Uint32(b[32:]),
		Rdev: le.Uint64(b[40:]), Size: int64(le.Uint64(b[48:])), Blksize: int64(le.Uint64(b[56:])), Blocks: int64(le.Uint64(b[64:])),
		Atime: ParseTimespec(b[72:]), Mtime: ParseTimespec(b[88:]), Ctime: ParseTimespec(b[104:]),
	}
}

// Statx is struct statx (statx(2)). Birth times and attributes are left out.
type Statx struct {
	Mask, Blksize        uint32
	Nlink, UID, GID      uint32
	Mode                 uint16
	Ino, Size, Blocks    uint64
	Atime, Ctime, Mtime  Timespec
	RdevMajor, RdevMinor uint32
	DevMajor, DevMinor   uint32
}

// SizeofStatx is the size of a struct statx in bytes.
const SizeofStatx = 256

// Put encodes s into the first SizeofStatx bytes of b.
func (s *Statx) Put(b []byte) {
	clear(b[:SizeofStatx])
	le.PutUint32(b, s.Mask)
	le.PutUint32(b[4:], s.Blksize)
	le.PutUint32(b[16:], s.Nlink)
	le.PutUint32(b[20:], s.UID)
	le.PutUint32(b[24:], s.GID)
	le.PutUint16(b[28:], s.Mode)
	le.PutUint64(b[32:], s.Ino)
	le.PutUint64(b[40:], s.Size)
	le.PutUint64(b[48:], s.Blocks)
	s.Atime.putStatx(b[64:])
	s.Ctime.putStatx(b[96:])
	s.Mtime.putStatx(b[112:])
	for i, v := range [...]uint32{s.RdevMajor, s.RdevMinor, s.DevMajor, s.DevMinor} {
		le.PutUint32(b[128+4*i:], v)
	}
}

// putStatx encodes t as a struct statx_timestamp, which has 32-bit nanoseconds.
func (t Timespec) putStatx(b []byte) {
	le.PutUint64(b, uint64(t.Sec))
	le.PutUint32(b[8:], uint32(t.Nsec))
}

// Statfs is struct statfs (statfs(2)): the size and the free space of a file system.
type Statfs struct {
	Type, Bsize     int64
	Blocks, Bfree   uint64
	Bavail          uint64
	Files, Ffree    uint64
	Namelen, Frsize int64
	Flags           int64
}

// SizeofStatfs is the size of a struct statfs in bytes.
const SizeofStatfs = 120

// Put encodes s into the first SizeofStatfs bytes of b.
func (s *Statfs) Put(b []byte) {
	clear(b[:SizeofStatfs])
	for i, v := range [...]uint64{uint64(s.Type), uint64(s.Bsize), s.Blocks, s.Bfree, s.Bavail, s.Files, s.Ffree} {
		le.PutUint64(b[8*i:], v)
	}
	for i, v := range [...]int64{s.Namelen, s.Frsize, s.Flags} {
		le.PutUint64(b[64+8*i:], uint64(v))
	}
}

// Flock is struct flock: a lock of a range of a file (fcntl(2)).
type Flock struct {
	Type, Whence int16
	Start, Len   int64
	PID          int32
}

// SizeofFlock is the size of a struct flock in bytes.
const SizeofFlock = 32

// ParseFlock decodes a struct flock.
func ParseFlock(b []byte) Flock {
	return Flock{
		Type: int16(le.Uint16(b)), Whence: int16(le.Uint16(b[2:])),
		Start: int64(le.Uint64(b[8:])), Len: int64(le.Uint64(b[16:])), PID: int32(le.Uint32(b[24:])),
	}
}

// Put encodes f into the first SizeofFlock bytes of b.
func (f Flock) Put(b []byte) {
	clear(b[:SizeofFlock])
	le.PutUint16(b, uint16(f.Type))
	le.PutUint16(b[2:], uint16(f.Whence))
	le.PutUint64(b[8:], uint64(f.Start))
	le.PutUint64(b[16:], uint64(f.Len))
	le.PutUint32(b[24:], uint32(f.PID))
}

// OpenHow is struct open_how (openat2(2)).
type OpenHow struct{ Flags, Mode, Resolve uint64 }

// SizeofOpenHow is the size of the first version of struct open_how in bytes.
const SizeofOpenHow = 24

// ParseOpenHow decodes a struct open_how.
func ParseOpenHow(b []byte) OpenHow {
	return OpenHow{Flags: le.Uint64(b), Mode: le.Uint64(b[8:]), Resolve: le.Uint64(b[16:])}
}

// PollFD is struct pollfd (poll(2)).
type PollFD struct {
	FD              int32
	Events, Revents uint16
}

// SizeofPollFD is the size of a struct pollfd in bytes.
const SizeofPollFD = 8

// ParsePollFD decodes a struct pollfd.
func ParsePollFD(b []byte) PollFD {
	return PollFD{FD: int32(le.Uint32(b)), Events: le.Uint16(b[4:]), Revents: le.Uint16(b[6:])}
}

// Put encodes p into the first SizeofPollFD bytes of b.
func (p PollFD) Put(b []byte) {
	le.PutUint32(b, uint32(p.FD))
	le.PutUint16(b[4:], p.Events)
	le.PutUint16(b[6:], p.Revents)
}

// EpollEvent is struct epoll_event, which is packed on x86-64 (epoll_ctl(2)).
type EpollEvent struct {
	Events uint32
	Data   uint64
}

// SizeofEpollEvent is the size of a struct epoll_event in bytes.
const SizeofEpollEvent = 12

// ParseEpollEvent decodes a struct epoll_event.
func ParseEpollEvent(b []byte) EpollEvent {
	return EpollEvent{Events: le.Uint32(b), Data: le.Uint64(b[4:])}
}

// Put encodes e into the first SizeofEpollEvent bytes of b.
func (e EpollEvent) Put(b []byte) {
	le.PutUint32(b, e.Events)
	le.PutUint64(b[4:], e.Data)
}

// Sizes in bytes of the structures that requests of a terminal use (ioctl_tty(2)). Termios is the kernel's structure,
// which is shorter than the C library's.
const (
	SizeofTermio   = 18
	SizeofTermios  = 36
	SizeofTermios2 = 44
	SizeofWinsize  = 8
)
