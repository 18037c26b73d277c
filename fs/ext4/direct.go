package ext4

import (
	"errors"

	"loam/abi/linux"
	"loam/block"
	"loam/fs"
	"loam/fs/ext4/disk"
	"loam/fs/ext4/journal"
)

// Direct I/O (O_DIRECT, open(2)): content moves between the caller and the device, and the cache keeps none of it.
//
// A block that the cache holds unwritten is newer than the device. A direct read of a run with such a block goes through the
// cache. A direct write to blocks that the file already has goes to the device while mu is held shared, so that the blocks cannot
// be freed meanwhile, and then drops them from the cache. Any other direct write goes through the cache like write(2), and
// is then written out: so holes, new blocks and the size of the file follow the same rules.
//
// The device reads and writes the memory of a program itself (fs.InPlace), if no content of the transfer comes from or goes
// through the cache or the pages of mappings.
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
	return (n|int(offset))&(h.n.s.device.io.Sector()-1) == 0
}

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

// readRunDirect is like readRun, but reads the run from the device, unless the cache has newer content of it.
func (s *FileSystem) readRunDirect(ino uint32, i disk.Inode, p []byte, offset uint64) (int, error) {
	bits := s.geometry.BlockBits
	within := offset & (1<<bits - 1)
	r, err := s.locate(ino, i, offset>>bits)
	p = p[:min(uint64(len(p)), r.length<<bits-within)]
	r.length = (within + uint64(len(p)) + 1<<bits - 1) >> bits
	if err != nil || !s.onDevice(r) {
		return s.readRun(ino, i, p, offset)
	}
	if err := s.device.io.ReadPart(p, int64(r.physical<<bits+within)); err != nil {
		return 0, linux.EIO
	}
	return len(p), nil
}

// onDevice reports whether the device has the newest content of a run of a file. The caller holds mu.
func (s *FileSystem) onDevice(r run) bool {
	return !r.zeros() && r.physical&standIn == 0 && s.geometry.Holds(r.physical, r.length) && !s.cache.unwritten(r.physical, r.length)
}

// Transfer implements fs.InPlace. It applies if the device has the newest content of the whole range.
func (h direct) Transfer(p *fs.Pieces, offset int64, write bool) (int, error) {
	s, v := h.n.s, block.Vector(p.List)
	n := v.Len()
	if n == 0 || !h.aligned(n, offset) || !v.Fits(s.device.io.Sector()) || s.pages.Get(h.n.key()) != nil {
		return 0, fs.ErrCopy
	}
	done, err := false, error(nil)
	if write {
		pages := s.pages.Enter(h.n.key())
		defer s.pages.Leave()
		if pages == nil {
			done, err = h.overwrite(p, offset)
		}
	} else {
		s.mu.RLock()
		defer s.mu.RUnlock()
		var few [fewRuns]run
		var runs []run
		if runs, done = h.runsOnDevice(few[:0], n, offset); done {
			err = s.transferRuns(block.Read, runs, p, offset)
		}
	}
	switch {
	case err != nil:
		return 0, err
	case !done:
		return 0, fs.ErrCopy
	}
	return n, nil
}

// MayTransfer implements fs.InPlace.
func (h direct) MayTransfer(n int, offset int64) bool {
	return h.aligned(n, offset) && offset+int64(n) <= h.n.Attr().Size && h.n.s.pages.Get(h.n.key()) == nil
}

// WriteAt implements fs.Handle.
func (h direct) WriteAt(p []byte, offset int64) (int, error) {
	if !h.aligned(len(p), offset) {
		return 0, linux.EINVAL
	}
	n, _, err := h.n.s.pages.Write(h.n.key(), p, func() (int, int64, error) { return h.write(p, offset) })
	return n, err
}

// Append implements fs.Handle.
func (h direct) Append(p []byte) (int, int64, error) {
	if !h.aligned(len(p), h.n.Attr().Size) {
		return 0, 0, linux.EINVAL
	}
	return h.n.s.pages.Write(h.n.key(), p, func() (int, int64, error) { return h.append(p) })
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
	done, err := h.overwrite(&fs.Pieces{List: [][]byte{p}}, offset)
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
func (h direct) overwrite(p *fs.Pieces, offset int64) (done bool, err error) {
	s, n := h.n.s, block.Vector(p.List).Len()
	if n == 0 {
		return false, nil
	}
	var few [fewRuns]run
	s.mu.RLock()
	runs, done := h.runsOnDevice(few[:0], n, offset)
	i, err := h.n.load()
	if done && (s.readOnly != "" || !s.stamped(i)) {
		s.mu.RUnlock()
		if err := h.n.stamp(); err != nil {
			return false, err
		}
		s.mu.RLock()
		runs, done = h.runsOnDevice(few[:0], n, offset)
	}
	if done {
		err = s.overwriteRuns(runs, p, offset)
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

// fewRuns is the number of runs for which a transfer allocates no memory.
const fewRuns = 4

// runsOnDevice appends to runs the runs that hold n bytes at an offset. It returns false unless the device has the newest content
// of all of them. The caller holds mu.
func (h direct) runsOnDevice(runs []run, n int, offset int64) ([]run, bool) {
	s := h.n.s
	i, err := h.n.load()
	if err != nil || i.Flags()&disk.FlagInlineData != 0 || uint64(offset)+uint64(n) > i.Size() {
		return nil, false
	}
	bits := s.geometry.BlockBits
	end := (uint64(offset) + uint64(n) + 1<<bits - 1) >> bits
	for at := uint64(offset) >> bits; at < end; {
		r, err := s.locate(h.n.ino, i, at)
		if r.length = min(r.length, end-at); err != nil || !s.onDevice(r) {
			return nil, false
		}
		runs = append(runs, r)
		at += r.length
	}
	return runs, true
}

// overwriteRuns writes p, which begins at an offset of a file, to the file's runs. The caller holds mu.
func (s *FileSystem) overwriteRuns(runs []run, p *fs.Pieces, offset int64) error {
	s.cache.begin()
	defer func() {
		for _, r := range runs {
			s.cache.drop(r.physical, r.length)
		}
		s.unflushed.Store(true)
		s.cache.end()
	}()
	return s.transferRuns(block.Write, runs, p, offset)
}

// transferRuns moves content between p, which begins at an offset of a file, and the file's runs. The caller holds mu.
func (s *FileSystem) transferRuns(op block.Op, runs []run, p *fs.Pieces, offset int64) error {
	bits, rest := s.geometry.BlockBits, block.Vector(p.List)
	for _, r := range runs {
		within := offset - int64(r.logical<<bits)
		part, after := rest.Cut(int(r.length<<bits) - int(within))
		if _, err := s.device.io.Transfer(op, part, int64(r.physical<<bits)+within); err != nil {
			p.Lost = errors.Is(err, block.ErrHeld)
			return linux.EIO
		}
		offset, rest = offset+int64(part.Len()), after
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
		s.cache.drop(i.Block, 1)
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

var (
	_ fs.Bypass  = handle{}
	_ fs.InPlace = direct{}
)
