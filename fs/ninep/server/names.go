package server

import (
	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// parent returns the directory of a request that creates or removes names, and checks the names.
func (s *session) parent(n uint32, names ...string) (*fid, error) {
	d, err := s.dir(n)
	for _, n := range names {
		if err == nil {
			err = name(n)
		}
	}
	return d, err
}

// created completes a new file: it sets the client's mode, owner and type, and returns the reply
// with the file's QID.
func (s *session) created(d *fid, n string, kind, mode, gid uint32, device uint64) (work, error) {
	a, err := s.attr(d.fd, n)
	if err != nil {
		return work{}, err
	}
	if mode&specialBits != 0 || gid != s.owner.gid || isDevice(mode) {
		fd, err := openBeneath(d.fd, n, unix.O_PATH, 0)
		if err != nil {
			return work{}, err
		}
		defer unix.Close(fd)
		if err := s.dressNew(fd, kind, mode, s.owner.uid, gid, device); err != nil {
			return work{}, err
		}
	}
	return done(&ninep.OneQID{QID: a.QID})
}

// mkdir serves Mkdir.
func (s *session) mkdir(body []byte) (work, error) {
	var m ninep.Mkdir
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	d, err := s.parent(m.FID, m.Name)
	if err != nil {
		return work{}, err
	}
	if err := unix.Mkdirat(d.fd, m.Name, m.Mode&0o777); err != nil {
		return work{}, err
	}
	return s.created(d, m.Name, unix.S_IFDIR, unix.S_IFDIR|m.Mode&0o7777, m.GID, 0)
}

// symlink serves Symlink. The target is not checked, because the server never follows it.
func (s *session) symlink(body []byte) (work, error) {
	var m ninep.Symlink
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	d, err := s.parent(m.FID, m.Name)
	if err != nil {
		return work{}, err
	}
	if err := unix.Symlinkat(m.Target, d.fd, m.Name); err != nil {
		return work{}, err
	}
	return s.created(d, m.Name, unix.S_IFLNK, 0, s.owner.gid, 0)
}

// mknod serves Mknod. A device of the client is an empty file on the host.
func (s *session) mknod(body []byte) (work, error) {
	var m ninep.Mknod
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	d, err := s.parent(m.FID, m.Name)
	if err != nil {
		return work{}, err
	}
	kind := m.Mode & unix.S_IFMT
	mode := m.Mode & 0o777
	switch kind {
	case unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK:
	case unix.S_IFCHR, unix.S_IFBLK:
		kind, mode = unix.S_IFREG, 0o600
	default:
		return work{}, unix.EPERM
	}
	if err := unix.Mknodat(d.fd, m.Name, kind|mode, 0); err != nil {
		return work{}, err
	}
	w, err := s.created(d, m.Name, kind, m.Mode, m.GID, unix.Mkdev(m.Major, m.Minor))
	if err != nil && isDevice(m.Mode) {
		unix.Unlinkat(d.fd, m.Name, 0) // without the attribute user.loam, the device would be an ordinary file
	}
	return w, err
}

// link serves Link.
func (s *session) link(body []byte) (work, error) {
	var m ninep.Link
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	d, err := s.parent(m.Dir, m.Name)
	if err != nil {
		return work{}, err
	}
	f, err := s.file(m.FID)
	switch {
	case err != nil:
		return work{}, err
	case f.kind == unix.S_IFDIR:
		return work{}, unix.EPERM
	}
	if err := unix.Linkat(unix.AT_FDCWD, path(f.fd), d.fd, m.Name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return work{}, err
	}
	return done(ninep.Empty{})
}

// unlinkAt serves UnlinkAt.
func (s *session) unlinkAt(body []byte) (work, error) {
	var m ninep.UnlinkAt
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	d, err := s.parent(m.Dir, m.Name)
	if err != nil {
		return work{}, err
	}
	if err := unix.Unlinkat(d.fd, m.Name, int(m.Flags)&unix.AT_REMOVEDIR); err != nil {
		return work{}, err
	}
	return done(ninep.Empty{})
}

// renameAt serves RenameAt.
func (s *session) renameAt(body []byte) (work, error) {
	var m ninep.RenameAt
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	return s.rename(m, 0)
}

// move serves Move.
func (s *session) move(body []byte) (work, error) {
	var m ninep.Move
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	if m.Flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return work{}, unix.EINVAL
	}
	return s.rename(m.RenameAt, uint(m.Flags))
}

func (s *session) rename(m ninep.RenameAt, flags uint) (work, error) {
	from, err := s.parent(m.Dir, m.Name)
	if err != nil {
		return work{}, err
	}
	to, err := s.parent(m.NewDir, m.NewName)
	if err != nil {
		return work{}, err
	}
	if err := unix.Renameat2(from.fd, m.Name, to.fd, m.NewName, flags); err != nil {
		return work{}, err
	}
	return done(ninep.Empty{})
}

// readlink serves Readlink.
func (s *session) readlink(body []byte) (work, error) {
	var m ninep.OneFID
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.file(m.FID)
	if err != nil {
		return work{}, err
	}
	if f.kind != unix.S_IFLNK {
		return work{}, unix.EINVAL
	}
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(f.fd, "", b)
	if err != nil {
		return work{}, err
	}
	return done(&ninep.Target{Target: string(b[:n])})
}
