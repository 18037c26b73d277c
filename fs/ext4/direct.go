package ext4

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
	"loam/fs/ext4/journal"
)

// Direct I/O (O_DIRECT, open(2)): content moves between the caller and the device, and the cache keeps none of it.
//
// A block that the cache holds unwritten is newer than the device. A direct read copies such a block from the cache. A
// direct write to blocks that the file already has goes to the device while mu is held shared, so that the blocks cannot
// be freed meanwhile, and then drops them from the cache. Any other direct write goes through the cache like write(2), and
// is then written out: so holes, new blocks and the size of the file follow the same rules.
//
// A read that fills the cache may overlap with a direct write: see cache.begin.

// memoryAlignment is the alignment of a program's memory in bytes, as Linux requires it for most disks.
const memoryAlignment = 512

// direct is an open file with O_DIRECT.
type direct struct{ handle }

// Direct implements fs.Bypass.
func (h handle) Direct() fs.Handle { return direct{h} }

// MemoryAlignment implements fs.Bypass.
func (h handle) MemoryAlignment() int { return memoryAlignment }

// aligned reports whether n bytes at an offset are whole sectors of the device.
func (h direct) aligned(n int, offset int64) bool {
	return (int64(n)|offset)&(h.n.s.sector()-1) == 0
}

// sector returns the unit of requests to the device in bytes.
func (s *FileSystem) sector() int64 { return int64(s.device.io.Device().Info().LogicalSector) }

// ReadAt implements fs.Handle.
func (h direct) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= h.n.Attr().Size {
		return 0, nil
	}
	if !h.aligned(len(p), offset) {
		return 0, linux.EINVAL
	}
	if pages := h.n.s.pages.Get(h.n.key()); pages != nil {
		return pages.Read(p, offset, h.read)
	}
	return h.read(p, offset)
}

// read reads without the pages of mappings.
func (h direct) read(p []byte, offset int64) (int, error) {
	return h.readRuns(p, offset, h.n.s.readRunDirect)
}

// readRunDirect is like readRun, but does not fill the cache.
func (s *FileSystem) readRunDirect(ino uint32, i disk.Inode, p []byte, offset uint64) (int, error) {
	bits := s.geometry.BlockBits
	r, err := s.locate(ino, i, offset>>bits)
	if err != nil {
		return 0, err
	}
	within := offset & (1<<bits - 1)
	p = p[:min(uint64(len(p)), r.length<<bits-within)]
	switch {
	case r.zeros():
		clear(p)
		return len(p), nil
	case r.physical&standIn == 0 && !s.geometry.Holds(r.physical, r.length):
		return 0, errDamaged
	}
	for n := 0; n < len(p); {
		at := within + uint64(n)
		number := r.physical + at>>bits
		inBlock := at & (1<<bits - 1)
		if b := s.cache.find(number); b != nil {
			n += copy(p[n:], b.data[inBlock:])
			continue
		}
		if number&standIn != 0 {
			return n, errDamaged
		}
		length := 1<<bits - inBlock
		for length < uint64(len(p)-n) && s.cache.find(r.physical+(at+length)>>bits) == nil {
			length += 1 << bits
		}
		part := p[n : n+int(min(length, uint64(len(p)-n)))]
		if err := s.readBytes(part, int64(number<<bits+inBlock)); err != nil {
			return n, err
		}
		n += len(part)
	}
	return len(p), nil
}

// readBytes reads from the device. The offset is a multiple of the sector. The length need not be: the file may end inside
// a sector.
func (s *FileSystem) readBytes(p []byte, at int64) error {
	rest := len(p) & int(s.sector()-1)
	if whole := p[:len(p)-rest]; len(whole) > 0 {
		if _, err := s.device.io.ReadAt(whole, at); err != nil {
			return linux.EIO
		}
	}
	if rest == 0 {
		return nil
	}
	last := make([]byte, s.sector())
	if _, err := s.device.io.ReadAt(last, at+int64(len(p)-rest)); err != nil {
		return linux.EIO
	}
	copy(p[len(p)-rest:], last)
	return nil
}

// WriteAt implements fs.Handle.
func (h direct) WriteAt(p []byte, offset int64) (int, error) {
	if !h.aligned(len(p), offset) {
		return 0, linux.EINVAL
	}
	pages := h.n.s.pages.Enter(h.n.key())
	defer h.n.s.pages.Leave()
	if pages == nil {
		n, _, err := h.write(p, offset)
		return n, err
	}
	n, _, err := pages.Write(p, func() (int, int64, error) { return h.write(p, offset) })
	return n, err
}

// Append implements fs.Handle.
func (h direct) Append(p []byte) (int, int64, error) {
	if !h.aligned(len(p), h.n.Attr().Size) {
		return 0, 0, linux.EINVAL
	}
	pages := h.n.s.pages.Enter(h.n.key())
	defer h.n.s.pages.Leave()
	if pages == nil {
		return h.append(p)
	}
	return pages.Write(p, func() (int, int64, error) { return h.append(p) })
}

func (h direct) append(p []byte) (int, int64, error) {
	n, end, err := h.handle.write(p, func(i disk.Inode) int64 { return int64(i.Size()) })
	if err == nil {
		err = h.n.writeOut(end-int64(n), end)
	}
	return n, end, err
}

// write writes p at an offset, and returns the end.
func (h direct) write(p []byte, offset int64) (n int, end int64, err error) {
	done, err := h.overwrite(p, offset)
	switch {
	case err != nil:
		return 0, 0, err
	case done:
		return len(p), offset + int64(len(p)), nil
	}
	n, end, err = h.handle.write(p, func(disk.Inode) int64 { return offset })
	if err == nil {
		err = h.n.writeOut(offset, end)
	}
	return n, end, err
}

// overwrite writes p to blocks that the file has, if it has all of them and the cache holds none of them unwritten. If not,
// done is false.
func (h direct) overwrite(p []byte, offset int64) (done bool, err error) {
	s := h.n.s
	if len(p) == 0 {
		return false, nil
	}
	s.mu.RLock()
	runs, done := h.runsToOverwrite(p, offset)
	i, err := h.n.load()
	if done && (s.readOnly != "" || !s.stamped(i)) {
		s.mu.RUnlock()
		if err := h.n.stamp(); err != nil {
			return false, err
		}
		s.mu.RLock()
		runs, done = h.runsToOverwrite(p, offset)
	}
	if done {
		err = s.overwriteRuns(runs, p, uint64(offset))
	}
	s.mu.RUnlock()
	if err == nil && done {
		err = h.written()
	}
	return done, err
}

// stamp updates the times of a file.
func (n node) stamp() error {
	return n.s.update(func(o *op) error {
		i, err := n.load()
		if err == nil {
			err = o.stamp(n.ino, i)
		}
		return err
	})
}

// runsToOverwrite returns the runs that hold len(p) bytes at an offset; false if overwrite does not apply. The caller
// holds mu.
func (h direct) runsToOverwrite(p []byte, offset int64) ([]run, bool) {
	s := h.n.s
	i, err := h.n.load()
	if err != nil || i.Flags()&disk.FlagInlineData != 0 || uint64(offset)+uint64(len(p)) > i.Size() {
		return nil, false
	}
	bits := s.geometry.BlockBits
	var runs []run
	end := (uint64(offset) + uint64(len(p)) + 1<<bits - 1) >> bits
	for at := uint64(offset) >> bits; at < end; {
		r, err := s.locate(h.n.ino, i, at)
		if err != nil || r.zeros() || r.physical&standIn != 0 || !s.geometry.Holds(r.physical, r.length) {
			return nil, false
		}
		r.length = min(r.length, end-at)
		for n := range r.length {
			if b := s.cache.find(r.physical + n); b != nil && (b.dirty || b.tx != nil || b.logged) {
				return nil, false
			}
		}
		runs = append(runs, r)
		at += r.length
	}
	return runs, true
}

// overwriteRuns writes p, which begins at an offset of a file, to the file's runs. The caller holds mu.
func (s *FileSystem) overwriteRuns(runs []run, p []byte, offset uint64) error {
	bits := s.geometry.BlockBits
	s.cache.begin()
	defer func() {
		for _, r := range runs {
			for n := range r.length {
				s.cache.drop(r.physical + n)
			}
		}
		s.unflushed.Store(true)
		s.cache.end()
	}()
	for _, r := range runs {
		within := offset - r.logical<<bits
		part := p[:min(uint64(len(p)), r.length<<bits-within)]
		if _, err := s.device.io.WriteAt(part, int64(r.physical<<bits+within)); err != nil {
			return linux.EIO
		}
		p, offset = p[len(part):], offset+uint64(len(part))
	}
	return nil
}

// writeOut writes unwritten content of a file in [from, to) to the device, and drops it from the cache. The content of a
// failed write stays in the cache.
func (n node) writeOut(from, to int64) error {
	s := n.s
	if err := s.settle(n.ino); err != nil {
		return err
	}
	s.commitMu.Lock() // a commit may be writing older images of the same blocks
	defer s.commitMu.Unlock()
	images := n.takeContents(uint64(from), uint64(to))
	err := s.writeBlocks(images)
	s.unflushed.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range images {
		b := s.cache.find(i.Block)
		if b == nil {
			continue // the file was truncated
		}
		if _, again := s.dirty[b]; again {
			continue
		}
		if err != nil {
			s.dirty[b] = struct{}{}
			continue
		}
		b.dirty = false
		s.cache.settle(b)
		s.cache.drop(i.Block)
	}
	if err != nil {
		return linux.EIO
	}
	return nil
}

// takeContents removes, from the blocks of content that the cache has not written to the disk yet, those between the offsets
// from and to of the file (in bytes), and returns them.
func (n node) takeContents(from, to uint64) (images []journal.Image) {
	s := n.s
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := n.load()
	if err != nil {
		return nil
	}
	bits := s.geometry.BlockBits
	end := (to + 1<<bits - 1) >> bits
	for at := from >> bits; at < end; {
		r, err := s.find(n.ino, i, at)
		if err != nil {
			return images
		}
		if r.length = min(r.length, end-at); !r.zeros() {
			for k := range r.length {
				b := s.cache.find(r.physical + k)
				if b == nil {
					continue
				}
				if _, ok := s.dirty[b]; ok {
					images = append(images, journal.Image{Block: b.number, Data: b.data})
					delete(s.dirty, b)
				}
			}
		}
		at += r.length
	}
	return images
}

var _ fs.Bypass = handle{}
