package server

import (
	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// statMask are the fields that every attribute needs. Birth distinguishes files with the same inode number.
const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME

// statAt returns the attributes of a name in a directory, or, with an empty name, of the descriptor's file.
func statAt(fd int, name string, st *unix.Statx_t) error {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return unix.Statx(fd, name, flags, statMask, st)
}

func deviceOf(st *unix.Statx_t) uint64 { return unix.Mkdev(st.Dev_major, st.Dev_minor) }

// attr returns the attributes of a name in a directory, or of the descriptor's file, as the client sees them.
func (s *session) attr(fd int, name string) (ninep.Attr, error) {
	var st unix.Statx_t
	if err := statAt(fd, name, &st); err != nil {
		return ninep.Attr{}, err
	}
	return s.attrOf(fd, name, &st), nil
}

// attrOf converts attributes of the file.
func (s *session) attrOf(fd int, name string, st *unix.Statx_t) ninep.Attr {
	a := ninep.Attr{
		Valid: ninep.AttrBasic, QID: s.qid(st), Mode: uint32(st.Mode), UID: OtherUser, GID: OtherUser,
		Links: uint64(st.Nlink), Size: st.Size, BlockSize: uint64(st.Blksize), Blocks: st.Blocks,
		Access: timeOf(st.Atime), Modify: timeOf(st.Mtime), Status: timeOf(st.Ctime), Birth: timeOf(st.Btime),
	}
	if st.Uid == s.uid {
		a.UID = s.owner.uid
	}
	if s.groups[st.Gid] {
		a.GID = s.owner.gid
	}
	kind := a.Mode & unix.S_IFMT
	if kind == unix.S_IFCHR || kind == unix.S_IFBLK {
		a.Device = unix.Mkdev(st.Rdev_major, st.Rdev_minor)
	}
	if a.Mode&unix.S_ISVTX != 0 && mayHaveOverride(kind) {
		if o, ok := readOverride(fd, name); ok {
			o.apply(&a)
		}
	}
	return a
}

func timeOf(t unix.StatxTimestamp) ninep.Time {
	return ninep.Time{Sec: uint64(t.Sec), Nsec: uint64(t.Nsec)}
}

// qid identifies a file. For a file of another file system that is mounted below the folder, Path is a hash of
// the inode number and the device number.
func (s *session) qid(st *unix.Statx_t) ninep.QID {
	q := ninep.QID{Path: st.Ino}
	if d := deviceOf(st); d != s.device {
		q.Path = mix(st.Ino^mix(d)) | 1<<63
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		birth := mix(uint64(st.Btime.Sec)<<30 ^ uint64(st.Btime.Nsec))
		q.Version = uint32(birth)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		q.Type = ninep.QIDDir
	case unix.S_IFLNK:
		q.Type = ninep.QIDSymlink
	}
	return q
}

// mix is the finaliser of SplitMix64: a permutation of 64-bit numbers that changes half of the bits for each bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// getattr serves Getattr.
func (s *session) getattr(body []byte) (work, error) {
	var m ninep.Getattr
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.file(m.FID)
	if err != nil {
		return work{}, err
	}
	return now(func() (ninep.Message, error) {
		a, err := s.attr(f.fd, "")
		return &a, err
	})
}

// lookup serves Lookup.
func (s *session) lookup(body []byte) (work, error) {
	var m ninep.Lookup
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	if m.Name == "" {
		f, err := s.file(m.FID)
		if err != nil {
			return work{}, err
		}
		a, err := s.attr(f.fd, "")
		if err != nil {
			return work{}, err
		}
		return done(&a)
	}
	d, err := s.dir(m.FID)
	if err == nil {
		err = name(m.Name)
	}
	if err != nil {
		return work{}, err
	}
	a, err := s.attr(d.fd, m.Name)
	if err != nil {
		return work{}, err
	}
	return done(&a)
}

// setattr serves Setattr.
func (s *session) setattr(body []byte) (work, error) {
	var m ninep.Setattr
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.file(m.FID)
	if err != nil {
		return work{}, err
	}
	if m.Valid&ninep.SetSize != 0 {
		if err := f.truncate(m.Size); err != nil {
			return work{}, err
		}
	}
	if m.Valid&(ninep.SetMode|ninep.SetUID|ninep.SetGID) != 0 {
		if err := s.setOwner(f, m); err != nil {
			return work{}, err
		}
	}
	if m.Valid&(ninep.SetAccess|ninep.SetModify) != 0 {
		if err := f.setTimes(m); err != nil {
			return work{}, err
		}
	}
	return done(ninep.Empty{})
}

// truncate sets the size of the file. Errors: EINVAL unless it is a regular file to the client.
func (f *fid) truncate(size uint64) error {
	switch {
	case f.kind != unix.S_IFREG || f.device || int64(size) < 0:
		return unix.EINVAL
	case f.opened && f.flags&unix.O_ACCMODE != unix.O_RDONLY:
		return unix.Ftruncate(f.fd, int64(size))
	}
	return unix.Truncate(path(f.fd), int64(size))
}

// setTimes sets the times of access and of modification.
func (f *fid) setTimes(m ninep.Setattr) error {
	pick := func(set, to uint32, t ninep.Time) unix.Timespec {
		switch {
		case m.Valid&set == 0:
			return unix.Timespec{Nsec: unix.UTIME_OMIT}
		case m.Valid&to == 0:
			return unix.Timespec{Nsec: unix.UTIME_NOW}
		}
		return unix.Timespec{Sec: int64(t.Sec), Nsec: int64(t.Nsec % 1e9)}
	}
	times := []unix.Timespec{
		pick(ninep.SetAccess, ninep.SetAccessTo, m.Access), pick(ninep.SetModify, ninep.SetModifyTo, m.Modify),
	}
	if f.kind != unix.S_IFLNK {
		return unix.UtimesNanoAt(unix.AT_FDCWD, path(f.fd), times, 0)
	}
	return unix.UtimesNanoAt(f.fd, "", times, unix.AT_EMPTY_PATH)
}
