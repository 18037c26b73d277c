package server

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// fid is a file of the client. The session holds a reference, and so does each request that runs in
// its own goroutine.
type fid struct {
	fd     int    // descriptor opened with O_PATH; after Open, with the flags of the open
	kind   uint32 // type of the file on the host (S_IFMT bits)
	device bool   // the client sees a device
	opened bool
	flags  int // flags of the open

	refs atomic.Int32

	// A FID that is an attribute (XattrWalk, XattrCreate) has no descriptor of its own to read or write.
	xattr *xattr

	mu      sync.Mutex // guards the listing
	listing *listing
}

// newFID returns a FID with one reference. It takes over fd.
func newFID(fd int, kind uint32) *fid {
	f := &fid{fd: fd, kind: kind}
	f.refs.Store(1)
	return f
}

// release drops a reference. The last one closes the file.
func (f *fid) release() {
	if f.refs.Add(-1) > 0 {
		return
	}
	if f.listing != nil {
		unix.Close(f.listing.fd)
	}
	if f.fd >= 0 {
		unix.Close(f.fd)
	}
}

// path returns a name of a descriptor's file, for system calls that do not accept descriptors
// opened with O_PATH. It refers to the file itself, even if that is a symbolic link.
func path(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// fid returns a FID. Errors: EBADF.
func (s *session) fid(n uint32) (*fid, error) {
	f := s.fids[n]
	if f == nil {
		return nil, unix.EBADF
	}
	return f, nil
}

// file returns a FID that is a file, not an attribute. Errors: EBADF.
func (s *session) file(n uint32) (*fid, error) {
	f, err := s.fid(n)
	if err == nil && f.xattr != nil {
		err = unix.EBADF
	}
	return f, err
}

// dir returns a FID that is a directory. Errors: EBADF, ENOTDIR.
func (s *session) dir(n uint32) (*fid, error) {
	f, err := s.file(n)
	if err == nil && f.kind != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	return f, err
}

// openFile returns a FID that has been opened. Errors: EBADF.
func (s *session) openFile(n uint32) (*fid, error) {
	f, err := s.file(n)
	if err == nil && !f.opened {
		err = unix.EBADF
	}
	return f, err
}

// hold returns a work (the second part of a request) that holds a reference to a FID.
func hold(f *fid, slow, waits bool, do func() (ninep.Message, error)) (work, error) {
	f.refs.Add(1)
	return work{do: do, slow: slow, waits: waits, fid: f}, nil
}

// holdBuffer returns a work that holds a reference to a FID, and that gets a buffer of ninep.MaxSize bytes for its reply.
// The work may run in its own goroutine if other requests are waiting.
func holdBuffer(f *fid, do func(buffer []byte) (ninep.Message, error)) (work, error) {
	b := buffers.Get().(*[]byte)
	w, err := hold(f, false, true, func() (ninep.Message, error) { return do(*b) })
	w.buffer = b
	return w, err
}

// vacant checks that a FID can be made. Errors: EINVAL if it is in use, EMFILE.
func (s *session) vacant(n uint32) error {
	switch {
	case n == ninep.NoFID || s.fids[n] != nil:
		return unix.EINVAL
	case len(s.fids) >= s.FIDs:
		return unix.EMFILE
	}
	return nil
}

// name checks a name of one component. Errors: EINVAL, ENAMETOOLONG.
func name(s string) error {
	switch {
	case s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00"):
		return unix.EINVAL
	case len(s) > unix.NAME_MAX:
		return unix.ENAMETOOLONG
	}
	return nil
}

func (s *session) auth(body []byte) (work, error) {
	if err := ninep.Parse(body, &ninep.Auth{}); err != nil {
		return work{}, err
	}
	return work{}, unix.EOPNOTSUPP
}

// attach serves Attach. User has the client's user and group as "UID:GID"; without them they are UID and 0.
func (s *session) attach(body []byte) (work, error) {
	var m ninep.Attach
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	if err := s.vacant(m.FID); err != nil {
		return work{}, err
	}
	s.running.Wait() // other requests may be using s.owner
	if m.UID == ninep.NoFID {
		m.UID = 0
	}
	s.owner = owner{uid: m.UID}
	if uid, gid, ok := strings.Cut(m.User, ":"); ok {
		u, err1 := strconv.ParseUint(uid, 10, 32)
		g, err2 := strconv.ParseUint(gid, 10, 32)
		if err1 != nil || err2 != nil {
			return work{}, unix.EINVAL
		}
		s.owner = owner{uint32(u), uint32(g)}
	}
	fd, err := duplicate(s.root)
	if err != nil {
		return work{}, err
	}
	a, err := s.attr(fd, "")
	if err != nil {
		unix.Close(fd)
		return work{}, err
	}
	s.fids[m.FID] = newFID(fd, unix.S_IFDIR)
	return done(&ninep.OneQID{QID: a.QID})
}

// duplicate returns another descriptor of an open file.
func duplicate(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) }

// walk serves Walk. Like a regular file, a symbolic link ends the walk: it is not followed.
func (s *session) walk(body []byte) (work, error) {
	var m ninep.Walk
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	from, err := s.file(m.FID)
	if err != nil {
		return work{}, err
	}
	if m.New != m.FID {
		if err := s.vacant(m.New); err != nil {
			return work{}, err
		}
	} else if from.opened {
		return work{}, unix.EINVAL
	}
	fd, err := reopen(from)
	if err != nil {
		return work{}, err
	}
	kind, device := from.kind, from.device
	var qids []ninep.QID
	for _, n := range m.Names {
		var a ninep.Attr
		if err = name(n); err == nil {
			a, kind, err = s.step(&fd, n)
		}
		if err != nil {
			break
		}
		device = isDevice(a.Mode)
		qids = append(qids, a.QID)
	}
	if err != nil {
		unix.Close(fd)
		if len(qids) == 0 {
			return work{}, err
		}
		return done(&ninep.Walked{QIDs: qids})
	}
	if m.New == m.FID {
		from.release()
	}
	f := newFID(fd, kind)
	f.device = device
	s.fids[m.New] = f
	return done(&ninep.Walked{QIDs: qids})
}

// reopen returns a descriptor with O_PATH of the file of a FID.
func reopen(f *fid) (int, error) {
	if !f.opened {
		return duplicate(f.fd)
	}
	return unix.Open(path(f.fd), unix.O_PATH|unix.O_CLOEXEC, 0)
}

// step replaces the descriptor of a directory by the descriptor of a name in it.
func (s *session) step(fd *int, n string) (ninep.Attr, uint32, error) {
	next, err := openBeneath(*fd, n, unix.O_PATH, 0)
	if err != nil {
		return ninep.Attr{}, 0, err
	}
	unix.Close(*fd)
	*fd = next
	var st unix.Statx_t
	if err := statAt(next, "", &st); err != nil {
		return ninep.Attr{}, 0, err
	}
	return s.attrOf(next, "", &st), uint32(st.Mode) & unix.S_IFMT, nil
}

// openBeneath opens a name in a directory. With O_PATH, a symbolic link itself is opened; without
// it, a symbolic link returns ELOOP.
func openBeneath(dir int, n string, flags int, mode uint32) (int, error) {
	how := unix.OpenHow{
		Flags: uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC), Mode: uint64(mode),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS,
	}
	if flags&unix.O_PATH == 0 {
		how.Flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	for {
		fd, err := unix.Openat2(dir, n, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // EAGAIN: a rename on the host happened at the same time
			return fd, err
		}
	}
}

// clunk serves Clunk. If XattrCreate created the FID, clunk sets the extended attribute.
func (s *session) clunk(body []byte) (work, error) {
	f, n, err := s.drop(body)
	if err != nil {
		return work{}, err
	}
	delete(s.fids, n)
	if f.xattr != nil && f.xattr.create {
		err = f.xattr.commit(f.fd)
	}
	f.release()
	if err != nil {
		return work{}, err
	}
	return done(ninep.Empty{})
}

// remove serves Remove. It frees the FID and returns an error, because the server does not know the
// file's name.
func (s *session) remove(body []byte) (work, error) {
	f, n, err := s.drop(body)
	if err != nil {
		return work{}, err
	}
	delete(s.fids, n)
	f.release()
	return work{}, unix.EOPNOTSUPP
}

func (s *session) drop(body []byte) (*fid, uint32, error) {
	var m ninep.OneFID
	if err := ninep.Parse(body, &m); err != nil {
		return nil, 0, err
	}
	f, err := s.fid(m.FID)
	return f, m.FID, err
}

// statfs serves Statfs.
func (s *session) statfs(body []byte) (work, error) {
	var m ninep.OneFID
	if err := ninep.Parse(body, &m); err != nil {
		return work{}, err
	}
	f, err := s.file(m.FID)
	if err != nil {
		return work{}, err
	}
	return hold(f, false, true, func() (ninep.Message, error) {
		var st unix.Statfs_t
		if err := unix.Fstatfs(f.fd, &st); err != nil {
			return nil, err
		}
		return &ninep.Statfs{
			Type: uint32(st.Type), BlockSize: uint32(st.Bsize), Blocks: st.Blocks, BlocksFree: st.Bfree, BlocksOK: st.Bavail,
			Files: st.Files, FilesFree: st.Ffree, NameLength: uint32(st.Namelen),
		}, nil
	})
}
