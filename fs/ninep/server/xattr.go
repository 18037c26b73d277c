package server

import (
	"strings"

	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// xattr is a FID of an extended attribute: its value for reading, or the new value to set.
type xattr struct {
	value  []byte
	create bool // XattrCreate created the FID, not XattrWalk
	name   string
	size   int // size of the new value
	flags  int
}

// xattrFile returns a FID whose attributes are read or set, and checks a name. Only class "user" exists.
// Errors: EOPNOTSUPP.
func (s *session) xattrFile(n uint32, attribute string) (*fid, error) {
	f, err := s.file(n)
	switch {
	case err != nil:
		return nil, err
	case attribute != "" && !strings.HasPrefix(attribute, xattrClass) || f.device || !mayHaveOverride(f.kind):
		return nil, unix.EOPNOTSUPP
	}
	return f, nil
}

// xattrWalk serves XattrWalk.
func (s *session) xattrWalk(body []byte) (work, error) {
	var m ninep.XattrWalk
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.xattrFile(m.FID, m.Name)
	if err == nil {
		err = s.vacant(m.New)
	}
	if err != nil {
		return work{}, err
	}
	var value []byte
	switch {
	case hidden(m.Name):
		err = unix.ENODATA
	case m.Name == "":
		value, err = listXattrs(f.fd)
	default:
		value, err = sized(func(b []byte) (int, error) { return unix.Getxattr(path(f.fd), m.Name, b) })
	}
	if err != nil {
		return work{}, err
	}
	made := newFID(-1, f.kind)
	made.xattr = &xattr{value: value}
	s.fids[m.New] = made
	return done(&ninep.Size{Size: uint64(len(value))})
}

// sized calls the function get with a buffer that is large enough.
func sized(get func([]byte) (int, error)) ([]byte, error) {
	for {
		n, err := get(nil)
		if err != nil || n == 0 {
			return nil, err
		}
		b := make([]byte, n)
		if n, err = get(b); err != unix.ERANGE {
			return b[:max(n, 0)], err
		}
	}
}

// listXattrs returns the names of the client's attributes, each followed by a zero byte.
func listXattrs(fd int) ([]byte, error) {
	all, err := sized(func(b []byte) (int, error) { return unix.Listxattr(path(fd), b) })
	var list []byte
	for n := range strings.SplitSeq(string(all), "\x00") {
		if strings.HasPrefix(n, xattrClass) && !hidden(n) {
			list = append(append(list, n...), 0)
		}
	}
	return list, err
}

// xattrCreate serves XattrCreate. The attribute keeps the file's descriptor.
func (s *session) xattrCreate(body []byte) (work, error) {
	var m ninep.XattrCreate
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.xattrFile(m.FID, m.Name)
	switch {
	case err != nil:
		return work{}, err
	case m.Name == "" || hidden(m.Name):
		return work{}, unix.EPERM
	case m.Size > unix.PathMax*16: // XATTR_SIZE_MAX
		return work{}, unix.E2BIG
	case f.refs.Load() != 1:
		return work{}, unix.EBUSY
	}
	f.xattr = &xattr{create: true, name: m.Name, size: int(m.Size), flags: int(m.Flags)}
	return done(ninep.Empty{})
}

// read returns part of the value.
func (x *xattr) read(offset uint64, count uint32) (work, error) {
	if x.create {
		return work{}, unix.EBADF
	}
	rest := x.value[min(offset, uint64(len(x.value))):]
	return done(&ninep.Data{Data: rest[:min(len(rest), int(count))]})
}

// write appends to the value.
func (x *xattr) write(offset uint64, data []byte) (work, error) {
	if !x.create || offset != uint64(len(x.value)) || len(x.value)+len(data) > x.size {
		return work{}, unix.EINVAL
	}
	x.value = append(x.value, data...)
	return done(&ninep.Count{Count: uint32(len(data))})
}

// commit sets or removes the attribute. Errors: EINVAL if not all of the value was written.
func (x *xattr) commit(fd int) error {
	switch {
	case len(x.value) != x.size:
		return unix.EINVAL
	case x.size == 0 && x.flags == unix.XATTR_REPLACE:
		return unix.Removexattr(path(fd), x.name)
	}
	return unix.Setxattr(path(fd), x.name, x.value, x.flags)
}
