package server

import (
	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// openFlags are the flags of open(2) that a client may use; all others are ignored. O_APPEND is not among them:
// AppendData appends.
const openFlags = unix.O_ACCMODE | unix.O_TRUNC | unix.O_SYNC | unix.O_DSYNC | unix.O_NOATIME

// open serves Open.
func (s *session) open(body []byte) (work, error) {
	var m ninep.Open
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.file(m.FID)
	if err != nil {
		return work{}, err
	}
	if err := f.open(int(m.Flags)); err != nil {
		return work{}, err
	}
	a, err := s.attr(f.fd, "")
	if err != nil {
		return work{}, err
	}
	return done(&ninep.Opened{QID: a.QID})
}

// open opens the file. A directory is opened for reading only. Errors: EINVAL if it is open already; ENXIO for
// other files than regular files and directories; those of open(2).
func (f *fid) open(flags int) error {
	if f.opened || f.refs.Load() != 1 {
		return unix.EINVAL
	}
	fd, flags, err := openAgain(f.fd, f.kind, f.device, flags)
	if err != nil {
		return err
	}
	unix.Close(f.fd)
	f.fd, f.flags, f.opened = fd, flags, true
	return nil
}

// openAgain opens the file of a descriptor.
func openAgain(fd int, kind uint32, device bool, flags int) (int, int, error) {
	appends := flags & unix.O_APPEND
	flags &= openFlags
	switch {
	case device:
		return -1, 0, unix.ENXIO
	case kind == unix.S_IFLNK:
		return -1, 0, unix.ELOOP
	case kind == unix.S_IFDIR && flags&(unix.O_ACCMODE|unix.O_TRUNC) != 0:
		return -1, 0, unix.EISDIR
	case kind != unix.S_IFDIR && kind != unix.S_IFREG:
		return -1, 0, unix.ENXIO
	}
	again, err := unix.Open(path(fd), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err == unix.EPERM && flags&unix.O_NOATIME != 0 {
		again, err = unix.Open(path(fd), flags&^unix.O_NOATIME|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	}
	return again, flags | appends, err
}

// create serves Create.
func (s *session) create(body []byte) (work, error) {
	var m ninep.Create
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	d, err := s.dir(m.FID)
	switch {
	case err != nil:
		return work{}, err
	case d.opened || d.refs.Load() != 1:
		return work{}, unix.EINVAL
	}
	f, a, err := s.make(d, m.Name, int(m.Flags)|unix.O_CREAT, m.Mode, s.owner.uid, m.GID)
	if err != nil {
		return work{}, err
	}
	d.release()
	s.fids[m.FID] = f
	return done(&ninep.Opened{QID: a.QID})
}

// make opens a file in a directory. If the file does not exist and flags contain O_CREAT, make creates it.
func (s *session) make(d *fid, n string, flags int, mode, uid, gid uint32) (*fid, ninep.Attr, error) {
	if err := name(n); err != nil {
		return nil, ninep.Attr{}, err
	}
	var st unix.Statx_t
	err := error(unix.ENOENT) // with O_EXCL, open(2) itself checks whether the file exists
	if flags&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL {
		err = statAt(d.fd, n, &st)
	}
	switch {
	case err == nil:
		return s.openNamed(d.fd, n, &st, flags)
	case err != unix.ENOENT || flags&unix.O_CREAT == 0:
		return nil, ninep.Attr{}, err
	}
	const private = 0o700 // mode of a new file until it gets the mode that the client wants
	first := mode & 0o777
	if mode&specialBits != 0 || uid != s.owner.uid || gid != s.owner.gid {
		first = private
	}
	fd, err := openBeneath(d.fd, n, flags&openFlags|unix.O_CREAT|unix.O_EXCL, first)
	if err == unix.EEXIST && flags&unix.O_EXCL == 0 { // a process of the host has created the file meanwhile
		if err = statAt(d.fd, n, &st); err == nil {
			return s.openNamed(d.fd, n, &st, flags)
		}
	}
	if err != nil {
		return nil, ninep.Attr{}, err
	}
	return s.made(fd, flags, mode, uid, gid)
}

// made completes a new regular file that is open.
func (s *session) made(fd, flags int, mode, uid, gid uint32) (*fid, ninep.Attr, error) {
	err := s.dressNew(fd, unix.S_IFREG, unix.S_IFREG|mode&0o7777, uid, gid, 0)
	var a ninep.Attr
	if err == nil {
		a, err = s.attr(fd, "")
	}
	if err != nil {
		unix.Close(fd)
		return nil, a, err
	}
	f := newFID(fd, unix.S_IFREG)
	f.opened, f.flags = true, flags&(openFlags|unix.O_APPEND)
	return f, a, nil
}

// openNamed opens an existing file, with attributes st.
func (s *session) openNamed(dir int, n string, st *unix.Statx_t, flags int) (*fid, ninep.Attr, error) {
	kind := uint32(st.Mode) & unix.S_IFMT
	a := s.attrOf(dir, n, st)
	appends := flags & unix.O_APPEND
	flags &= openFlags
	switch {
	case isDevice(a.Mode):
		return nil, a, unix.ENXIO
	case kind == unix.S_IFLNK:
		return nil, a, unix.ELOOP
	case kind == unix.S_IFDIR && flags&(unix.O_ACCMODE|unix.O_TRUNC) != 0:
		return nil, a, unix.EISDIR
	case kind != unix.S_IFDIR && kind != unix.S_IFREG:
		return nil, a, unix.ENXIO
	}
	fd, err := openBeneath(dir, n, flags, 0)
	if err == unix.EPERM && flags&unix.O_NOATIME != 0 {
		fd, err = openBeneath(dir, n, flags&^unix.O_NOATIME, 0)
	}
	if err != nil {
		return nil, a, err
	}
	if flags&unix.O_TRUNC != 0 {
		if a, err = s.attr(fd, ""); err != nil {
			unix.Close(fd)
			return nil, a, err
		}
	}
	f := newFID(fd, kind)
	f.opened, f.flags = true, flags|appends
	return f, a, nil
}

// openAt serves OpenAt.
func (s *session) openAt(body []byte) (work, error) {
	var m ninep.OpenAt
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	if err := s.vacant(m.New); err != nil {
		return work{}, err
	}
	var f *fid
	var a ninep.Attr
	if m.Name == "" {
		from, err := s.file(m.FID)
		if err != nil {
			return work{}, err
		}
		fd, flags, err := openAgain(from.fd, from.kind, from.device, int(m.Flags))
		if err != nil {
			return work{}, err
		}
		f = newFID(fd, from.kind)
		f.opened, f.flags = true, flags
		if a, err = s.attr(fd, ""); err != nil {
			f.release()
			return work{}, err
		}
	} else {
		d, err := s.dir(m.FID)
		if err != nil {
			return work{}, err
		}
		if f, a, err = s.make(d, m.Name, int(m.Flags), m.Mode, m.UID, m.GID); err != nil {
			return work{}, err
		}
	}
	s.fids[m.New] = f
	answer := &ninep.OpenedAt{Attr: a}
	room := s.size - ninep.HeaderSize - openedRoom
	if m.Count == 0 || f.kind != unix.S_IFREG || f.flags&unix.O_ACCMODE == unix.O_WRONLY || a.Size == 0 {
		return done(answer)
	}
	return hold(f, false, true, func() (ninep.Message, error) {
		b := make([]byte, min(uint64(m.Count), uint64(room), a.Size))
		n, err := readAll(f.fd, b, 0)
		if err != nil {
			return answer, nil // the client reads again, and then gets the error
		}
		answer.Data = b[:n]
		return answer, nil
	})
}

// openedRoom is an upper limit of the size of an OpenedAt without data, in bytes.
const openedRoom = 256

// temp serves Temp.
func (s *session) temp(body []byte) (work, error) {
	var m ninep.Temp
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	d, err := s.dir(m.FID)
	if err == nil {
		err = s.vacant(m.New)
	}
	if err != nil {
		return work{}, err
	}
	flags := int(m.Flags)&openFlags&^unix.O_TRUNC | unix.O_TMPFILE | int(m.Flags)&unix.O_EXCL
	fd, err := unix.Open(path(d.fd), flags|unix.O_CLOEXEC, m.Mode&0o777)
	if err != nil {
		if err == unix.EISDIR { // the file system does not support O_TMPFILE
			err = unix.EOPNOTSUPP
		}
		return work{}, err
	}
	f, a, err := s.made(fd, int(m.Flags), m.Mode, m.UID, m.GID)
	if err != nil {
		return work{}, err
	}
	s.fids[m.New] = f
	return done(&ninep.OpenedAt{Attr: a})
}
