package ext4

import (
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
)

// Contents of files: reading and writing through the cache.

// handle is an open file.
type handle struct {
	n    node
	sync fs.Flags // bits of O_SYNC: a write is durable when it returns (O_SYNC, O_DSYNC)
}

// maxSize returns the maximum size of a file in bytes.
func (s *FileSystem) maxSize() int64 { return disk.MaxLogical << s.geometry.BlockBits }

// ReadAt implements fs.Handle.
func (h handle) ReadAt(p []byte, offset int64) (int, error) {
	if pages := h.n.s.pages.Get(h.n.key()); pages != nil {
		return pages.Read(p, offset, h.ReadStorage)
	}
	return h.ReadStorage(p, offset)
}

// ReadStorage implements fs.Stored.
func (h handle) ReadStorage(p []byte, offset int64) (int, error) {
	return h.readRuns(p, offset, h.n.s.readRun)
}

// readRuns reads a part of the file. It calls the function read for each run, which is a range of contiguous blocks.
func (h handle) readRuns(p []byte, offset int64, read func(ino uint32, i disk.Inode, p []byte, offset uint64) (int, error)) (int, error) {
	s := h.n.s
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, err := h.n.load()
	if err != nil {
		return 0, err
	}
	if offset < 0 || uint64(offset) >= i.Size() {
		return 0, nil
	}
	p = p[:min(uint64(len(p)), i.Size()-uint64(offset))]
	if i.Flags()&disk.FlagInlineData != 0 {
		b, err := i.InlineData()
		if err != nil {
			return 0, errDamaged
		}
		return copy(p, b[offset:]), nil
	}
	n := 0
	for n < len(p) {
		got, err := read(h.n.ino, i, p[n:], uint64(offset)+uint64(n))
		if err != nil {
			if n > 0 {
				break
			}
			return 0, err
		}
		n += got
	}
	return n, nil
}

// readRun reads from a single run of a file.
func (s *FileSystem) readRun(ino uint32, i disk.Inode, p []byte, offset uint64) (int, error) {
	bits := s.geometry.BlockBits
	r, err := s.locate(ino, i, offset>>bits)
	if err != nil {
		return 0, err
	}
	within := offset & (1<<bits - 1)
	p = p[:min(uint64(len(p)), r.length<<bits-within)]
	if r.zeros() {
		clear(p)
		return len(p), nil
	}
	n := 0
	for number := r.physical; n < len(p); number++ {
		b, err := s.contentRun(ino, number, r.physical+r.length-number, uint64(len(p)-n)+within)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], b.data[within:])
		within = 0
	}
	return n, nil
}

// readAhead is the minimum number of bytes of a read from the device.
const readAhead = 128 << 10

// contentRun returns block number of a file. If it is not in the cache, contentRun reads a run of consecutive blocks from
// the device, of at most length blocks: as many as the caller wants (bytes), or readAhead if that is more.
func (s *FileSystem) contentRun(ino uint32, number, length, bytes uint64) (*buffer, error) {
	if b := s.cache.find(number); b != nil {
		return s.content(number)
	}
	if !s.geometry.Holds(number, length) {
		return nil, errDamaged
	}
	bits := s.geometry.BlockBits
	length = min(length, (max(bytes, readAhead)+1<<bits-1)>>bits, 1<<20>>bits)
	n := uint64(1)
	for n < length && s.cache.find(number+n) == nil {
		n++
	}
	data := make([]byte, n<<bits)
	mark := s.cache.mark()
	if err := s.device.read(number, data); err != nil {
		return nil, linux.EIO
	}
	var first *buffer
	for i := range n {
		piece := data[i<<bits : (i+1)<<bits : (i+1)<<bits]
		b := &buffer{number: number + i, data: piece, inode: ino}
		b.set(disk.Structure{Kind: disk.KindContent})
		b = s.cache.addRead(b, mark)
		if i == 0 {
			first = b
		}
	}
	if disk.Kind(first.kind.Load()) != disk.KindContent {
		return s.content(number)
	}
	return first, nil
}

// content returns a block of a file, and reads only that block.
func (s *FileSystem) content(number uint64) (*buffer, error) {
	return s.buffer(number, disk.Structure{Kind: disk.KindContent})
}

// change is new content for part of a block.
type change struct {
	number uint64
	inode  uint32
	at     int
	data   []byte // the caller's memory, which is read before the op ends
	fresh  bool   // the block is new: the rest of it is zeros
	owned  bool   // the block already held content of this file
	b      *buffer
}

// changeContent applies a change to the cache. It cannot fail: the block is in the cache, or fresh.
func (s *FileSystem) changeContent(c change) {
	b := c.b
	if c.fresh {
		if b = s.cache.find(c.number); b == nil {
			b = s.cache.add(&buffer{number: c.number})
		}
		whole := len(c.data) == s.geometry.BlockSize
		switch inPlace := b.data != nil && s.owns(b); {
		case inPlace && !whole:
			clear(b.data)
		case !inPlace && whole:
			b.data, c.data = slices.Clone(c.data), nil
		case !inPlace:
			b.data = make([]byte, s.geometry.BlockSize)
		}
		b.set(disk.Structure{Kind: disk.KindContent})
	} else if b = s.cache.add(b); !s.owns(b) {
		b.data = slices.Clone(b.data) // a commit may be writing the old slice
	}
	copy(b.data[c.at:], c.data)
	_, before := s.dirty[b]
	b.late = c.owned && (b.late || !before)
	b.inode, b.dirty = c.inode, true
	s.dirty[b] = struct{}{}
	s.cache.settle(b)
}

// owns reports whether the image of a content block may be changed in place: no commit may be
// writing it. A commit removes the buffers that it writes from s.dirty, and clears their field dirty when it has written them.
func (s *FileSystem) owns(b *buffer) bool {
	_, waits := s.dirty[b]
	return waits || !b.dirty && !b.logged && b.tx == nil
}

// WriteAt implements fs.Handle.
func (h handle) WriteAt(p []byte, offset int64) (int, error) {
	pages := h.n.s.pages.Enter(h.n.key())
	defer h.n.s.pages.Leave()
	if pages == nil {
		return h.WriteStorage(p, offset)
	}
	n, _, err := pages.Write(p, func() (int, int64, error) {
		return h.write(p, func(disk.Inode) int64 { return offset })
	})
	return n, err
}

// WriteStorage implements fs.Stored.
func (h handle) WriteStorage(p []byte, offset int64) (int, error) {
	n, _, err := h.write(p, func(disk.Inode) int64 { return offset })
	return n, err
}

// Append implements fs.Handle.
func (h handle) Append(p []byte) (int, int64, error) {
	end := func(i disk.Inode) int64 { return int64(i.Size()) }
	return h.n.s.pages.Write(h.n.key(), p, func() (int, int64, error) { return h.write(p, end) })
}

// write writes p in several ops. The function where returns the offset at which to begin;
// it is called in the first op. write returns an error only if nothing was written.
func (h handle) write(p []byte, where func(disk.Inode) int64) (n int, end int64, err error) {
	s := h.n.s
	at := int64(-1)
	if len(p) == 0 {
		return 0, int64(h.n.Attr().Size), nil
	}
	const atOnce = 1 << 20 // appends of at most this size are atomic
	most := atOnce
	for n < len(p) {
		got, size := 0, 0
		err := s.update(func(o *op) error {
			got = 0
			i, err := h.n.load()
			if err != nil {
				return err
			}
			if n == 0 {
				at = where(i)
			}
			if at >= s.maxSize() {
				return linux.EFBIG
			}
			part := p[n:]
			part = part[:min(int64(len(part)), s.maxSize()-at, int64(most))]
			size = len(part)
			got, err = o.write(h.n.ino, i, part, uint64(at))
			return err
		})
		if err == linux.ENOSPC && got > 1 { // the op was undone; there is room for a shorter write
			if most = got; got == size {
				most = got / 2 // the device has enough free blocks, but the transaction has not
			}
			continue
		}
		if err != nil {
			if n > 0 {
				break
			}
			return 0, 0, err
		}
		n += got
		at += int64(got)
	}
	if err := h.written(); err != nil {
		return 0, 0, err
	}
	return n, at, nil
}

// written makes a write durable, if the flags of the open file ask for that.
func (h handle) written() error {
	if h.sync == 0 {
		return nil
	}
	return h.n.s.commitFile(h.n.ino, h.sync&linux.O_SYNC != linux.O_SYNC)
}

// write writes part of a file. If the space is not enough, it returns ENOSPC and the number of bytes for which the
// space is enough. Then the op must be undone, because a block may have been allocated that the tree has no room for.
func (o *op) write(ino uint32, i disk.Inode, p []byte, offset uint64) (int, error) {
	t := &tree{o: o, ino: ino, i: i}
	if i.Flags()&disk.FlagExtents == 0 {
		if err := t.begin(); err != nil { // converts the block map before a run of it is located
			return 0, err
		}
	}
	n := 0
	for n < len(p) {
		got, err := t.writeRun(p[n:], offset+uint64(n))
		if err != nil {
			return n, err
		}
		n += got
	}
	if size := offset + uint64(n); size > t.i.Size() {
		if err := t.begin(); err != nil {
			return n, err
		}
		t.i.SetSize(size)
	}
	return n, o.stamp(ino, t.i)
}

// writeRun writes to a single run of a file, after allocating blocks if the run is a hole.
func (t *tree) writeRun(p []byte, offset uint64) (int, error) {
	s := t.o.s
	bits := s.geometry.BlockBits
	logical, within := offset>>bits, offset&(1<<bits-1)
	blocks := (uint64(len(p)) + within + 1<<bits - 1) >> bits
	r, err := s.locate(t.ino, t.i, logical)
	if err != nil {
		return 0, err
	}
	r.length = min(r.length, blocks)
	fresh := r.zeros()
	if fresh {
		if err := t.begin(); err != nil {
			return 0, err
		}
	}
	switch {
	case r.physical == 0 && t.delay(logical, r.length):
		r.physical = standInFor(t.ino, logical)
	case r.physical == 0:
		if r.physical, r.length, err = t.fill(logical, r.length, false); err != nil {
			return 0, err
		}
	case r.unwritten:
		if err := t.mark(r, false); err != nil {
			return 0, err
		}
	}
	p = p[:min(uint64(len(p)), r.length<<bits-within)]
	n := 0
	for number := r.physical; n < len(p); number++ {
		part := p[n:min(len(p), n+s.geometry.BlockSize-int(within))]
		c := change{number: number, inode: t.ino, at: int(within), data: part, fresh: fresh || len(part) == s.geometry.BlockSize, owned: !fresh}
		if !c.fresh {
			if c.b, err = s.content(number); err != nil {
				return 0, err
			}
		}
		t.o.content = append(t.o.content, c)
		n += len(part)
		within = 0
	}
	return n, nil
}

// fill allocates at most length adjacent blocks for a hole.
func (t *tree) fill(logical, length uint64, unwritten bool) (physical, n uint64, err error) {
	limit := uint64(disk.MaxExtent)
	if unwritten {
		limit = disk.MaxUnwritten
	}
	goal := t.goal
	if logical > 0 {
		before, err := t.o.s.find(t.ino, t.i, logical-1)
		if err != nil {
			return 0, 0, err
		}
		if before.physical != 0 {
			goal = before.physical + 1
		}
	}
	if physical, n, err = t.o.allocate(goal, min(length, limit)); err != nil {
		return 0, 0, err
	}
	t.addSectors(int64(n))
	e := disk.Extent{Logical: uint32(logical), Length: uint32(n), Physical: physical, Unwritten: unwritten}
	return physical, n, t.insert(e)
}

// mark marks an allocated run as written or unwritten.
func (t *tree) mark(r run, unwritten bool) error {
	if err := t.remove(r.logical, r.logical+r.length, nil); err != nil {
		return err
	}
	for r.length > 0 {
		e := disk.Extent{Logical: uint32(r.logical), Physical: r.physical, Unwritten: unwritten}
		e.Length = uint32(min(r.length, uint64(e.Limit())))
		if err := t.insert(e); err != nil {
			return err
		}
		r.logical, r.physical, r.length = r.logical+uint64(e.Length), r.physical+uint64(e.Length), r.length-uint64(e.Length)
	}
	return nil
}

// Sync implements fs.Handle.
func (h handle) Sync() error { return h.flush(false) }

// SyncData implements fs.DataSyncer.
func (h handle) SyncData() error { return h.flush(true) }

func (h handle) flush(dataOnly bool) error {
	if p := h.n.s.pages.Get(h.n.key()); p != nil {
		if err := p.Flush(); err != nil {
			return err
		}
	}
	return h.n.s.commitFile(h.n.ino, dataOnly)
}

// SyncStorage implements fs.Stored.
func (h handle) SyncStorage() error { return h.n.s.commitFile(h.n.ino, true) }

// SetPages implements fs.Stored.
func (h handle) SetPages(p fs.Pages) { h.n.s.pages.Set(h.n.key(), p) }

// Foreign implements fs.Stored.
func (h handle) Foreign() bool { return false }

// Close implements fs.Handle.
func (h handle) Close() error {
	s := h.n.s
	if s.handles.Close(h.n.key(), &s.known) {
		return nil
	}
	s.mu.RLock()
	orphan, done := s.isOrphan(h.n.ino), s.closed || s.readOnly != ""
	s.mu.RUnlock()
	if orphan && !done {
		return h.n.reap()
	}
	if !done {
		h.n.Attr() // caches the attributes of a file that was written: a program may look at them next
	}
	return nil
}

// NextData implements fs.Sparse.
func (h handle) NextData(offset int64) (int64, bool) {
	at, hole := h.next(offset, false)
	return at, !hole
}

// NextHole implements fs.Sparse.
func (h handle) NextHole(offset int64) int64 {
	at, _ := h.next(offset, true)
	return at
}

// next returns the offset of the first hole, or of the first data, at or after an offset. If there
// is none, it returns the end of the file and true. Pages that a mapping has changed are data.
func (h handle) next(offset int64, hole bool) (int64, bool) {
	s := h.n.s
	if p := s.pages.Get(h.n.key()); p != nil {
		p.Flush()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, err := h.n.load()
	if err != nil || i.Flags()&disk.FlagInlineData != 0 {
		return offset, false
	}
	bits := s.geometry.BlockBits
	for at := uint64(offset); at < i.Size(); {
		r, err := s.locate(h.n.ino, i, at>>bits)
		if err != nil {
			return offset, false
		}
		if r.zeros() == hole {
			return int64(at), false
		}
		at = (r.logical + r.length) << bits
	}
	return int64(i.Size()), true
}

var (
	_ fs.Sparse     = handle{}
	_ fs.DataSyncer = handle{}
	_ fs.Stored     = handle{}
)
