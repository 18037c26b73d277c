package server

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// listing is a directory that is being listed: a descriptor of its own, with an offset, and entries that were
// read from it. The FID's mu guards it.
type listing struct {
	fd   int
	at   int64  // offset of the first entry in the field rest
	rest []byte // entries of getdents64(2)
	end  bool   // the directory has no entries after the entries in the field rest
	b    []byte // the buffer that contains the field rest
}

// dirent is an entry of getdents64(2).
type dirent struct {
	inode  uint64
	offset int64 // offset of the next entry
	kind   uint8
	name   string
}

// direntRoom is the size of the buffer for getdents64(2), in bytes.
const direntRoom = 32 << 10

// listFrom returns the listing of a directory, at an offset. The caller holds f.mu.
func (f *fid) listFrom(offset int64) (*listing, error) {
	l := f.listing
	if l == nil {
		fd, err := unix.Openat(f.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == unix.EACCES { // a directory that may be read but not searched
			fd, err = unix.Open(path(f.fd), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			return nil, err
		}
		l = &listing{fd: fd, b: make([]byte, direntRoom), at: -1}
		f.listing = l
	}
	if l.at != offset {
		if _, err := unix.Seek(l.fd, offset, unix.SEEK_SET); err != nil {
			return nil, err
		}
		l.at, l.rest, l.end = offset, nil, false
	}
	return l, nil
}

// next returns the entry at the offset; false at the end. It skips "." and "..". It returns the same entry again
// until take is called.
func (l *listing) next() (d dirent, ok bool, err error) {
	for {
		if len(l.rest) == 0 {
			if l.end {
				return d, false, nil
			}
			n, err := unix.Getdents(l.fd, l.b)
			if err != nil {
				return d, false, err
			}
			if n == 0 {
				l.end = true
				return d, false, nil
			}
			l.rest = l.b[:n]
		}
		d = parseDirent(l.rest)
		if d.name != "." && d.name != ".." {
			return d, true, nil
		}
		l.take(d)
	}
}

// take advances past the entry that next has returned.
func (l *listing) take(d dirent) {
	l.at = d.offset
	l.rest = l.rest[binary.NativeEndian.Uint16(l.rest[16:]):]
}

// parseDirent decodes an entry, which the kernel has written.
func parseDirent(b []byte) dirent {
	const nameAt = 19
	size := binary.NativeEndian.Uint16(b[16:])
	text := b[nameAt:size]
	for i, c := range text {
		if c == 0 {
			text = text[:i]
			break
		}
	}
	return dirent{binary.NativeEndian.Uint64(b), int64(binary.NativeEndian.Uint64(b[8:])), b[18], string(text)}
}

// readdir serves Readdir.
func (s *session) readdir(body []byte) (work, error) {
	var m ninep.Read
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.dir(m.FID)
	if err != nil {
		return work{}, err
	}
	count := int(min(m.Count, s.size-ninep.ReadRoom))
	return hold(f, false, true, func() (ninep.Message, error) {
		var data []byte
		err := s.eachEntry(f, m.Offset, func(d dirent, st *unix.Statx_t) bool {
			e := ninep.Dirent{QID: s.qid(st), Offset: uint64(d.offset), Type: d.kind, Name: d.name}
			longer := e.AppendTo(data)
			if len(longer) > count {
				return false
			}
			data = longer
			return true
		})
		return &ninep.Data{Data: data}, err
	})
}

// eachEntry calls yield for the entries of a directory from an offset on, until it returns false. An entry
// that was removed meanwhile is left out.
func (s *session) eachEntry(f *fid, offset uint64, yield func(dirent, *unix.Statx_t) bool) error {
	if int64(offset) < 0 {
		return unix.EINVAL
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.listFrom(int64(offset))
	if err != nil {
		return err
	}
	var st unix.Statx_t
	for {
		d, ok, err := l.next()
		if err != nil || !ok {
			return err
		}
		if err := statAt(l.fd, d.name, &st); err == nil && !yield(d, &st) {
			return nil
		}
		l.take(d)
	}
}

// list serves List.
func (s *session) list(body []byte) (work, error) {
	var m ninep.List
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.dir(m.FID)
	if err == nil && m.Name != "" {
		f, err = s.subdirectory(f, m.Name)
		if err == nil {
			defer f.release() // the work holds its own reference
		}
	}
	if err != nil {
		return work{}, err
	}
	qid, err := s.attr(f.fd, "")
	if err != nil {
		return work{}, err
	}
	const more = 14 // bytes of a Listed besides its entries
	count := int(min(m.Count, s.size-ninep.ReadRoom-more))
	return holdBuffer(f, func(b []byte) (ninep.Message, error) {
		answer := &ninep.Listed{QID: qid.QID, End: 1, Entries: b[:0]}
		err := s.eachEntry(f, m.Offset, func(d dirent, st *unix.Statx_t) bool {
			e := ninep.Entry{Offset: uint64(d.offset), Name: d.name, Attr: s.attrOf(f.fd, d.name, st)}
			longer := e.AppendTo(answer.Entries)
			if len(longer) > count {
				answer.End = 0
				return false
			}
			answer.Entries = longer
			return true
		})
		if err == nil && answer.End == 0 && len(answer.Entries) == 0 {
			err = unix.EINVAL // there is no room for one entry
		}
		return answer, err
	})
}

// subdirectory returns a fid for a directory in another one. It has no number in the session.
func (s *session) subdirectory(f *fid, n string) (*fid, error) {
	if err := name(n); err != nil {
		return nil, err
	}
	fd, err := openBeneath(f.fd, n, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return newFID(fd, unix.S_IFDIR), nil
}

// fetch serves Fetch.
func (s *session) fetch(body []byte) (work, error) {
	var m ninep.Fetch
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.dir(m.FID)
	if err != nil {
		return work{}, err
	}
	for _, n := range m.Names {
		if err := name(n); err != nil {
			return work{}, err
		}
	}
	count := int(min(m.Count, s.size-ninep.ReadRoom))
	most := min(m.Most, s.size)
	return holdBuffer(f, func(data []byte) (ninep.Message, error) {
		data = data[:0]
		room := make([]byte, most+1) // one byte more, to detect that a file has grown
		for _, n := range m.Names {
			c := s.content(f.fd, n, room)
			longer := c.AppendTo(data)
			if len(longer) > count {
				break
			}
			data = longer
		}
		return &ninep.Data{Data: data}, nil
	})
}

// content returns the content of a regular file that is smaller than room. The content is in room.
func (s *session) content(dir int, n string, room []byte) ninep.Content {
	fail := func(err error) ninep.Content { return ninep.Content{Errno: uint32(errno(err))} }
	var st unix.Statx_t
	if err := statAt(dir, n, &st); err != nil {
		return fail(err)
	}
	a := s.attrOf(dir, n, &st)
	switch {
	case a.Mode&unix.S_IFMT != unix.S_IFREG:
		return fail(unix.EINVAL)
	case a.Size >= uint64(len(room)):
		return fail(unix.EFBIG)
	}
	fd, err := openBeneath(dir, n, unix.O_RDONLY, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	k, err := readAll(fd, room[:a.Size+1], 0)
	switch {
	case err != nil:
		return fail(err)
	case uint64(k) != a.Size:
		return fail(unix.EAGAIN)
	}
	return ninep.Content{Attr: a, Data: room[:k]}
}
