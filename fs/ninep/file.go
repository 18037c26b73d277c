package ninep

import (
	"runtime"
	"slices"

	"loam/abi/linux"
	"loam/fs"
)

// handle is an open regular file. It implements fs.Allocator and fs.Sparse. FileSystem.mu guards the fields that
// change.
type handle struct {
	*node
	flags  fs.Flags
	fid    uint32   // 0: no FID was needed yet, because the content is known
	users  int      // requests that use fid
	closed bool     // fid is clunked when users is 0
	cached *content // content at the time of the open; nil: not known
}

// passedFlags are the flags of open(2) that are sent to the server.
const passedFlags = linux.O_ACCMODE | linux.O_TRUNC | linux.O_SYNC | linux.O_DSYNC | linux.O_NOATIME

// use marks the FID as used. The caller holds mu.
func (h *handle) use() held {
	h.users++
	return held{fid: h.fid, handle: h}
}

// unuse ends a use.
func (h *handle) unuse() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.users--; h.closed && h.users == 0 {
		h.s.conn.forget(h.fid)
	}
}

// create creates a regular file and keeps it open for the first Open: the creator may write to a file whose mode
// forbids it.
func (s *FileSystem) create(d *node, name string, mode fs.Mode, owner fs.Owner) (fs.Node, error) {
	dir, err := s.dirFID(d)
	if err != nil {
		return nil, err
	}
	m := OpenAt{
		FID: dir.fid, Name: name, Flags: linux.O_RDWR | linux.O_CREAT | linux.O_EXCL, Mode: uint32(mode & fs.Permissions),
		UID: owner.UID, GID: owner.GID,
	}
	var answer OpenedAt
	var spare *node
	began, until := s.begin()
	err = s.openAt(&m, &answer, func() { spare = s.newNode() })
	dir.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.doubt(d, name)
		return nil, err
	}
	r := recordOf(&answer.Attr)
	n := s.nodeWith(d, name, &r, spare)
	if n == nil || n.kind != fs.Regular {
		s.doubt(d, name)
		s.conn.forget(m.New)
		return nil, linux.EIO
	}
	d.touch()
	if d.names != nil {
		d.names.unlist()
	}
	n.learn(&r, began, until)
	if until == 0 || d.gone { // remember would keep an entry that says that the name is absent
		s.doubt(d, name)
	}
	s.remember(d, name, &r, began, until)
	s.keepMade(n, m.New)
	return n.fsNode(), nil
}

// mostMade is the maximum number of new files that are kept open and were not opened yet.
const mostMade = 16

// keepMade keeps the FID of a new file. The caller holds mu.
func (s *FileSystem) keepMade(n *node, fid uint32) {
	if n.madeFID != 0 { // invalid answer: the file was created twice
		s.conn.forget(fid)
		return
	}
	n.madeFID = fid
	s.made = append(s.made, n)
	for len(s.made) > mostMade {
		s.dropMade(s.made[0])
	}
}

// dropMade releases the FID of a new file. A file without a name keeps the FID as its own. The
// caller holds mu.
func (s *FileSystem) dropMade(n *node) {
	s.made = slices.DeleteFunc(s.made, func(m *node) bool { return m == n })
	if n.gone && n.fid == 0 {
		n.keepFID(n.madeFID)
	} else {
		s.conn.forget(n.madeFID)
	}
	n.madeFID = 0
}

// mostKept is the number of FIDs that nodes keep, from which keepFID runs the collector: a quarter of the number that servers of
// Loam allow by default. Servers with a smaller limit answer with EMFILE: see conn.call.
const mostKept = 4096

// keepFID makes a FID the node's own, until the collector finds that the node is no longer referenced. The caller holds mu.
func (n *node) keepFID(fid uint32) {
	n.fid, n.kept = fid, true
	c := n.s.conn
	runtime.AddCleanup(n, func(fid uint32) {
		c.forget(fid)
		c.kept.Add(-1)
	}, fid)
	if kept := c.kept.Add(1); kept >= mostKept && kept%(mostKept/4) == 0 {
		c.beside(runtime.GC)
	}
}

// keep gets a FID from the server for a file that is about to lose the name at which it was found.
func (n *node) keep() error {
	s := n.s
	s.mu.Lock()
	dir, name := n.dir, n.name
	s.mu.Unlock()
	if dir == nil {
		return nil
	}
	at, err := s.dirFID(dir)
	if err != nil {
		return err
	}
	own, q, err := s.walk(at.fid, []string{name})
	at.release()
	if err == linux.ENOENT {
		return nil // the removal will return this error
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if keyOf(q) != n.key || n.fid != 0 {
		s.conn.forget(own)
		return nil
	}
	n.keepFID(own)
	return nil
}

// Open implements fs.Node.
func (r regular) Open(flags fs.Flags) (fs.Handle, error) {
	if flags&fs.PathOnly != 0 {
		return nil, nil // the FID keeps the file
	}
	s := r.s
	h := &handle{node: r.node, flags: flags}
	if h.takeMade() || !flags.MayWrite() && flags&(fs.Truncate|fs.Direct) == 0 && s.takeContent(h) {
		return h, nil
	}
	err := error(nil)
	if flags&fs.Truncate != 0 {
		err = s.pages.Resize(h.node, 0, h.open)
	} else {
		err = h.open()
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// takeMade makes h the first handle of a file that this client has just created, with the FID that is still open
// since then. It returns false if there is none.
func (h *handle) takeMade() bool {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.madeFID == 0 || h.flags&(linux.O_SYNC|linux.O_DSYNC) != 0 {
		return false
	}
	h.fid, h.madeFID = h.madeFID, 0
	s.made = slices.DeleteFunc(s.made, func(m *node) bool { return m == h.node })
	h.handles = append(h.handles, h)
	h.truncated = h.flags&fs.Truncate != 0
	return true
}

// firstBytes is the maximum content that an open returns.
const firstBytes = 64 << 10

// open opens the file on the server, and keeps its content if it is small.
func (h *handle) open() error {
	s := h.s
	at, name, err := h.reach()
	if err != nil {
		return err
	}
	m := OpenAt{FID: at.fid, Name: name, Flags: uint32(h.flags & passedFlags)}
	if s.valid > 0 && !h.flags.MayWrite() && h.flags&(fs.Truncate|fs.Direct) == 0 {
		m.Count = firstBytes
	}
	var answer OpenedAt
	began, until := s.begin()
	err = s.openAt(&m, &answer, nil)
	at.release()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if keyOf(answer.Attr.QID) != h.key {
		s.conn.forget(m.New)
		return linux.ENOENT
	}
	if h.closed {
		s.conn.forget(m.New)
		return linux.EBADF
	}
	if h.fid != 0 { // another goroutine has opened it meanwhile
		s.conn.forget(m.New)
		return nil
	}
	h.fid = m.New
	if !slices.Contains(h.handles, h) {
		h.handles = append(h.handles, h)
	}
	if h.flags&fs.Truncate != 0 {
		h.touch()
		h.forgetContent()
		h.truncated = true
		return nil
	}
	r := recordOf(&answer.Attr)
	h.learn(&r, began, until)
	if m.Count > 0 && uint64(len(answer.Data)) == answer.Attr.Size && h.changed <= began {
		h.cached = &content{data: answer.Data, until: until}
	}
	return nil
}

// opened returns the FID, which the caller releases. Errors: those of open(2).
func (h *handle) opened() (held, error) {
	for {
		h.s.mu.Lock()
		if h.closed {
			h.s.mu.Unlock()
			return held{}, linux.EBADF
		}
		if h.fid != 0 {
			file := h.use()
			h.s.mu.Unlock()
			return file, nil
		}
		h.s.mu.Unlock()
		if err := h.open(); err != nil {
			return held{}, err
		}
	}
}

// ReadAt implements fs.Handle.
func (h *handle) ReadAt(p []byte, offset int64) (int, error) {
	if pages := h.s.pages.Get(h.node); pages != nil {
		return pages.Read(p, offset, h.ReadStorage)
	}
	return h.ReadStorage(p, offset)
}

// ReadStorage implements fs.Stored.
func (h *handle) ReadStorage(p []byte, offset int64) (int, error) {
	if data, ok := h.known(); ok {
		return copy(p, data[min(offset, int64(len(data))):]), nil
	}
	file, err := h.opened()
	if err != nil {
		return 0, err
	}
	defer file.release()
	if len(p) == 0 {
		return 0, nil
	}
	return h.s.readAt(file.fid, p, offset)
}

// readAt reads from an open file. A long read is several requests at once.
func (s *FileSystem) readAt(fid uint32, p []byte, offset int64) (int, error) {
	unit := int(s.conn.size - ReadRoom)
	var calls []*call
	const most = 16 // maximum number of requests for one read at the same time
	for at := 0; at < len(p) && len(calls) < most; at += unit {
		part := p[at:min(len(p), at+unit)]
		k := &call{reply: &Data{}, into: part, clunk: NoFID, done: make(chan struct{}, 1)}
		s.conn.begin(TypeRead, &Read{fid, uint64(offset) + uint64(at), uint32(len(part))}, k, at+unit < len(p) && len(calls)+1 < most)
		calls = append(calls, k)
	}
	n, ended := 0, false
	var first error
	for _, k := range calls {
		s.conn.wait(k)
		switch {
		case ended:
		case k.err != nil:
			ended = true
			first = k.err
		default:
			n += k.n
			ended = k.n < len(k.into)
		}
	}
	if n > 0 {
		first = nil
	}
	return n, first
}

// WriteAt implements fs.Handle.
func (h *handle) WriteAt(p []byte, offset int64) (int, error) {
	pages := h.s.pages.Enter(h.node)
	defer h.s.pages.Leave()
	if pages == nil {
		return h.WriteStorage(p, offset)
	}
	n, _, err := pages.Write(p, func() (int, int64, error) {
		n, err := h.WriteStorage(p, offset)
		return n, offset + int64(n), err
	})
	return n, err
}

// WriteStorage implements fs.Stored.
func (h *handle) WriteStorage(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) < 0 {
		return 0, linux.EFBIG
	}
	file, err := h.opened()
	if err != nil {
		return 0, err
	}
	defer file.release()
	defer h.written()
	return h.s.writeAt(file.fid, p, offset)
}

// writeAt writes to an open file. A long write is several requests at once.
func (s *FileSystem) writeAt(fid uint32, p []byte, offset int64) (n int, err error) {
	unit := int(s.conn.size - WriteRoom)
	if 0 < len(p) && len(p) <= unit {
		return s.writeOnce(fid, p, offset)
	}
	const most = 16 // maximum number of requests for one write at the same time
	for n < len(p) {
		var calls []*call
		var counts [most]Count
		for at := n; at < len(p) && len(calls) < most; at += unit {
			part := p[at:min(len(p), at+unit)]
			k := &call{reply: &counts[len(calls)], n: len(part), clunk: NoFID, done: make(chan struct{}, 1)}
			s.conn.begin(TypeWrite, &Write{fid, uint64(offset) + uint64(at), part}, k, false)
			calls = append(calls, k)
		}
		ended := false
		for i, k := range calls {
			s.conn.wait(k)
			switch {
			case ended:
			case k.err != nil:
				ended, err = true, k.err
			case int(counts[i].Count) > k.n:
				ended, err = true, linux.EIO
			default:
				n += int(counts[i].Count)
				ended = int(counts[i].Count) < k.n
			}
		}
		if ended {
			break
		}
	}
	if n < len(p) && err == nil {
		err = linux.ENOSPC
	}
	return n, err
}

// writeOnce is writeAt for data that fits into one request.
func (s *FileSystem) writeOnce(fid uint32, p []byte, offset int64) (int, error) {
	var written Count
	err := s.conn.call(TypeWrite, &Write{fid, uint64(offset), p}, &written)
	switch n := int(written.Count); {
	case err != nil:
		return 0, err
	case n > len(p):
		return 0, linux.EIO
	case n < len(p):
		return n, linux.ENOSPC
	default:
		return n, nil
	}
}

// written records that the file has been written to.
func (h *handle) written() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.touch()
	h.forgetContent()
	h.truncated = false
}

// Append implements fs.Handle.
func (h *handle) Append(p []byte) (n int, end int64, err error) {
	pages := h.s.pages.Enter(h.node)
	defer h.s.pages.Leave()
	if pages == nil {
		return h.append(p)
	}
	return pages.Write(p, func() (int, int64, error) { return h.append(p) })
}

// append writes p at the end of the file, and returns the new end. Data that does not fit into one message is
// appended in several.
func (h *handle) append(p []byte) (n int, end int64, err error) {
	file, err := h.opened()
	if err != nil {
		return 0, 0, err
	}
	defer file.release()
	defer h.written()
	unit := int(h.s.conn.size - WriteRoom)
	for {
		k, e, err := h.s.appendTo(file.fid, p[n:min(len(p), n+unit)])
		if err != nil {
			return n, end, err
		}
		n, end = n+k, e
		if n == len(p) || k == 0 {
			return n, end, nil
		}
	}
}

// Sync implements fs.Handle.
func (h *handle) Sync() error {
	if p := h.s.pages.Get(h.node); p != nil {
		if err := p.Flush(); err != nil {
			return err
		}
	}
	return h.SyncStorage()
}

// SetPages implements fs.Stored.
func (h *handle) SetPages(p fs.Pages) { h.s.pages.Set(h.node, p) }

// Foreign implements fs.Stored: processes of the host can change the file.
func (h *handle) Foreign() bool { return true }

// SyncStorage implements fs.Stored.
func (h *handle) SyncStorage() error {
	file, err := h.opened()
	if err != nil {
		return err
	}
	defer file.release()
	return h.s.conn.call(TypeFsync, &Fsync{FID: file.fid}, Empty{})
}

// Close implements fs.Handle.
func (h *handle) Close() error {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	h.closed = true
	h.node.handles = slices.DeleteFunc(h.node.handles, func(o *handle) bool { return o == h })
	if h.fid != 0 && h.users == 0 {
		s.conn.forget(h.fid)
	}
	return nil
}

// Allocate implements fs.Allocator.
func (h *handle) Allocate(mode fs.AllocateMode, offset, length int64) error {
	if !h.s.conn.loam {
		return linux.EOPNOTSUPP
	}
	change := func() error { return h.allocate(mode, offset, length) }
	size := func() int64 { return h.Attr().Size }
	return h.s.pages.Allocate(h.node, mode, offset, length, change, size)
}

func (h *handle) allocate(mode fs.AllocateMode, offset, length int64) error {
	file, err := h.opened()
	if err != nil {
		return err
	}
	defer file.release()
	defer h.written()
	return h.s.conn.call(TypeAllocate, &Allocate{file.fid, uint32(mode), uint64(offset), uint64(length)}, Empty{})
}

// NextData implements fs.Sparse.
func (h *handle) NextData(offset int64) (int64, bool) {
	at, err := h.seek(offset, linux.SEEK_DATA)
	if err == linux.ENXIO {
		return 0, false
	}
	if err != nil {
		return offset, true
	}
	return at, true
}

// NextHole implements fs.Sparse.
func (h *handle) NextHole(offset int64) int64 {
	at, err := h.seek(offset, linux.SEEK_HOLE)
	if err != nil {
		return max(offset, h.Attr().Size)
	}
	return at
}

// seek asks where the next data or hole is. Errors: ENXIO; EOPNOTSUPP if the server does not support it.
func (h *handle) seek(offset int64, whence uint32) (int64, error) {
	if !h.s.conn.loam {
		return 0, linux.EOPNOTSUPP
	}
	if p := h.s.pages.Get(h.node); p != nil {
		p.Flush() // pages that a mapping has changed are data
	}
	file, err := h.opened()
	if err != nil {
		return 0, err
	}
	defer file.release()
	var at Size
	err = h.s.conn.call(TypeSeek, &Seek{file.fid, uint64(offset), whence}, &at)
	return int64(at.Size), err
}
