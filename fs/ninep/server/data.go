package server

import (
	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// readAll reads until b is full or the file ends. It makes one system call: a regular file ends
// where a read is short.
func readAll(fd int, b []byte, offset int64) (int, error) {
	for {
		n, err := unix.Pread(fd, b, offset)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// read serves Read.
func (s *session) read(body []byte) (work, error) {
	var m ninep.Read
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.fid(m.FID)
	if err != nil {
		return work{}, err
	}
	count := min(m.Count, s.size-ninep.ReadRoom)
	if f.xattr != nil {
		return f.xattr.read(m.Offset, count)
	}
	if f, err = s.openFile(m.FID); err != nil {
		return work{}, err
	}
	if int64(m.Offset) < 0 {
		return work{}, unix.EINVAL
	}
	return holdBuffer(f, func(b []byte) (ninep.Message, error) {
		n, err := readAll(f.fd, b[:count], int64(m.Offset))
		return &ninep.Data{Data: b[:n]}, err
	})
}

// write serves Write. A file that was opened with O_APPEND is appended to.
func (s *session) write(body []byte) (work, error) {
	var m ninep.Write
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.fid(m.FID)
	if err != nil {
		return work{}, err
	}
	if f.xattr != nil {
		return f.xattr.write(m.Offset, m.Data)
	}
	if f, err = s.openFile(m.FID); err != nil {
		return work{}, err
	}
	if int64(m.Offset) < 0 {
		return work{}, unix.EINVAL
	}
	return hold(f, false, true, func() (ninep.Message, error) {
		if f.flags&unix.O_APPEND != 0 {
			n, _, err := f.append(m.Data)
			return &ninep.Count{Count: uint32(n)}, err
		}
		n, err := writeAll(f.fd, m.Data, int64(m.Offset))
		return &ninep.Count{Count: uint32(n)}, err
	})
}

// writeAll writes b. An error is returned only if nothing was written.
func writeAll(fd int, b []byte, offset int64) (int, error) {
	n := 0
	for n < len(b) {
		k, err := unix.Pwrite(fd, b[n:], offset+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil && n == 0:
			return 0, err
		case err != nil || k == 0:
			return n, nil
		default:
			n += k
		}
	}
	return n, nil
}

// append writes at the end of the file, and returns the end. The kernel finds the end: pwritev2(2) with RWF_APPEND. A
// process of the host may write to the file between the append and the system call that returns the end.
func (f *fid) append(b []byte) (n int, end uint64, err error) {
	for {
		n, err = unix.Pwritev2(f.fd, [][]byte{b}, 0, unix.RWF_APPEND)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return 0, 0, err
	}
	var st unix.Stat_t
	err = unix.Fstat(f.fd, &st)
	return n, uint64(st.Size), err
}

// appendData serves AppendData.
func (s *session) appendData(body []byte) (work, error) {
	var m ninep.AppendData
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.openFile(m.FID)
	if err != nil {
		return work{}, err
	}
	return now(func() (ninep.Message, error) { // served at once and in order, so that appends of one client do not mix
		n, end, err := f.append(m.Data)
		return &ninep.Appended{Count: uint32(n), End: end}, err
	})
}

// fsync serves Fsync.
func (s *session) fsync(body []byte) (work, error) {
	var m ninep.Fsync
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.file(m.FID)
	if err != nil {
		return work{}, err
	}
	return hold(f, true, false, func() (ninep.Message, error) { return ninep.Empty{}, f.sync(m.DataOnly != 0) })
}

// sync writes the file to the disk. A directory need not be open. Errors: EINVAL for other files.
func (f *fid) sync(dataOnly bool) error {
	if f.opened {
		if dataOnly {
			return unix.Fdatasync(f.fd)
		}
		return unix.Fsync(f.fd)
	}
	if f.kind != unix.S_IFDIR && f.kind != unix.S_IFREG {
		return unix.EINVAL
	}
	fd, err := unix.Open(path(f.fd), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsync(fd)
}

// allocate serves Allocate.
func (s *session) allocate(body []byte) (work, error) {
	var m ninep.Allocate
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.openFile(m.FID)
	if err != nil {
		return work{}, err
	}
	return now(func() (ninep.Message, error) {
		return ninep.Empty{}, unix.Fallocate(f.fd, m.Mode, int64(m.Offset), int64(m.Length))
	})
}

// seek serves Seek.
func (s *session) seek(body []byte) (work, error) {
	var m ninep.Seek
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.openFile(m.FID)
	if err != nil {
		return work{}, err
	}
	if m.Whence != unix.SEEK_DATA && m.Whence != unix.SEEK_HOLE {
		return work{}, unix.EINVAL
	}
	return now(func() (ninep.Message, error) {
		at, err := unix.Seek(f.fd, int64(m.Offset), int(m.Whence))
		return &ninep.Size{Size: uint64(at)}, err
	})
}

// lockRange converts a lock to that of fcntl(2).
func lockRange(kind uint8, start, length uint64) (unix.Flock_t, error) {
	kinds := [...]int16{ninep.LockRead: unix.F_RDLCK, ninep.LockWrite: unix.F_WRLCK, ninep.LockUnlock: unix.F_UNLCK}
	if int(kind) >= len(kinds) || int64(start) < 0 || int64(length) < 0 {
		return unix.Flock_t{}, unix.EINVAL
	}
	return unix.Flock_t{Type: kinds[kind], Whence: unix.SEEK_SET, Start: int64(start), Len: int64(length)}, nil
}

// lock serves Lock. The lock belongs to the open file description. The server never waits for a
// lock: the client repeats the request.
func (s *session) lock(body []byte) (work, error) {
	var m ninep.Lock
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.openFile(m.FID)
	if err != nil {
		return work{}, err
	}
	l, err := lockRange(m.Kind, m.Start, m.Length)
	if err != nil {
		return work{}, err
	}
	switch err := unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_SETLK, &l); err {
	case nil:
		return done(&ninep.Status{Status: ninep.LockSuccess})
	case unix.EAGAIN, unix.EACCES:
		return done(&ninep.Status{Status: ninep.LockBlocked})
	default:
		return work{}, err
	}
}

// getLock serves GetLock.
func (s *session) getLock(body []byte) (work, error) {
	var m ninep.GetLock
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.openFile(m.FID)
	if err != nil {
		return work{}, err
	}
	l, err := lockRange(m.Kind, m.Start, m.Length)
	if err != nil {
		return work{}, err
	}
	if err := unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_GETLK, &l); err != nil {
		return work{}, err
	}
	r := m.Range
	switch l.Type {
	case unix.F_UNLCK:
		r.Kind = ninep.LockUnlock
		return done(&r)
	case unix.F_RDLCK:
		r.Kind = ninep.LockRead
	default:
		r.Kind = ninep.LockWrite
	}
	r.Start, r.Length = uint64(l.Start), uint64(l.Len)
	return done(&r)
}
