package ext4

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
)

// fallocate(2): allocating and freeing space of files. A long operation is split into several ops;
// after each of them the file system is consistent.

// runsAtOnce is the maximum number of runs of a file that one op changes.
const runsAtOnce = 64

// Allocate implements fs.Allocator.
func (h handle) Allocate(mode fs.AllocateMode, offset, length int64) error {
	s := h.n.s
	end := offset + length
	switch {
	case offset < 0 || length <= 0:
		return linux.EINVAL
	case end < 0 || end > s.maxSize():
		return linux.EFBIG
	}
	change := func() error { return h.allocate(mode, offset, length) }
	size := func() int64 { return h.n.Attr().Size }
	return s.pages.Allocate(h.n.key(), mode, offset, length, change, size)
}

func (h handle) allocate(mode fs.AllocateMode, offset, length int64) error {
	end := offset + length
	if err := h.n.s.settle(h.n.ino); err != nil {
		return err
	}
	switch mode &^ fs.UnshareRange {
	case 0:
		return h.preallocate(offset, end, true)
	case fs.KeepSize:
		return h.preallocate(offset, end, false)
	case fs.PunchHole | fs.KeepSize:
		return h.inRange(offset, end, (*tree).punch, false)
	case fs.ZeroRange:
		return h.inRange(offset, end, (*tree).zero, true)
	case fs.ZeroRange | fs.KeepSize:
		return h.inRange(offset, end, (*tree).zero, false)
	case fs.CollapseRange:
		return h.shift(offset, length, (*tree).collapse)
	case fs.InsertRange:
		return h.shift(offset, length, (*tree).insertHole)
	}
	return linux.EOPNOTSUPP
}

// preallocate allocates the holes of a range. If there is not enough space for all of them, it
// fails before it changes anything.
func (h handle) preallocate(offset, end int64, grow bool) error {
	s := h.n.s
	bits := s.geometry.BlockBits
	first, last := uint64(offset)>>bits, (uint64(end)+1<<bits-1)>>bits
	if err := h.enough(first, last); err != nil {
		return err
	}
	if err := h.steps(first, last, (*tree).fillRun); err != nil {
		return err
	}
	return h.ended(end, grow)
}

// enough returns ENOSPC if the holes of a range need more blocks than are free.
func (h handle) enough(first, last uint64) error {
	s := h.n.s
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, err := h.n.load()
	if err != nil {
		return err
	}
	for need := uint64(0); first < last; {
		r, err := s.find(h.n.ino, i, first)
		if err != nil {
			return err
		}
		r.length = min(r.length, last-first)
		if r.physical == 0 {
			if need += r.length; need > s.freeBlocks-min(s.freeBlocks, s.reserved) {
				return linux.ENOSPC
			}
		}
		first += r.length
	}
	return nil
}

// ended updates the size and the times of the file after an operation on a range.
func (h handle) ended(end int64, grow bool) error {
	return h.n.s.update(func(o *op) error {
		i, err := h.n.edit(o)
		if err != nil {
			return err
		}
		if grow && uint64(end) > i.Size() {
			i.SetSize(uint64(end))
		}
		o.touch(i, true)
		return nil
	})
}

// steps calls f for each run in a range of blocks, for at most runsAtOnce runs in each op. f
// returns the number of blocks that it has processed.
func (h handle) steps(first, last uint64, f func(*tree, run) (uint64, error)) error {
	for first < last {
		at := first
		err := h.n.s.update(func(o *op) error {
			at = first
			t, err := h.placed(o)
			if err != nil {
				return err
			}
			for range runsAtOnce {
				if at >= last {
					break
				}
				r, err := o.s.find(t.ino, t.i, at)
				if err != nil {
					return err
				}
				r.length = min(r.length, last-at)
				n, err := f(t, r)
				if err != nil {
					return err
				}
				at += n
			}
			return nil
		})
		if err != nil {
			return err
		}
		first = at
	}
	return nil
}

// placed places the file's delayed content, and returns the extents of the file for writing.
func (h handle) placed(o *op) (*tree, error) {
	if _, err := h.n.edit(o); err != nil {
		return nil, err
	}
	if err := o.place(h.n.ino, disk.MaxLogical); err != nil {
		return nil, err
	}
	return o.tree(h.n.ino)
}

// fillRun allocates unwritten blocks if a run is a hole. It returns the number of blocks of the run
// that it has processed.
func (t *tree) fillRun(r run) (uint64, error) {
	if r.physical != 0 {
		return r.length, nil
	}
	_, n, err := t.fill(r.logical, r.length, true)
	return n, err
}

// punch frees the blocks of a run, which becomes a hole.
func (t *tree) punch(r run) (uint64, error) {
	if r.physical == 0 {
		return r.length, nil
	}
	return r.length, t.remove(r.logical, r.logical+r.length, t.freeData)
}

// zero makes a run read as zeros, with its blocks allocated.
func (t *tree) zero(r run) (uint64, error) {
	switch {
	case r.physical == 0:
		return t.fillRun(r)
	case r.unwritten:
		return r.length, nil
	}
	return r.length, t.mark(r, true)
}

// inRange clears the partial blocks at the ends of a range, and calls f for the whole blocks
// between them.
func (h handle) inRange(offset, end int64, f func(*tree, run) (uint64, error), grow bool) error {
	s := h.n.s
	size, bits := int64(s.geometry.BlockSize), s.geometry.BlockBits
	first, last := (offset+size-1)>>bits, end>>bits
	err := s.update(func(o *op) error {
		t, err := h.placed(o)
		if err != nil {
			return err
		}
		if first > last { // the range begins and ends within the same block
			return t.clear(uint64(last), int(offset&(size-1)), int(end&(size-1)))
		}
		if from := int(offset & (size - 1)); from > 0 {
			if err := t.clear(uint64(first-1), from, int(size)); err != nil {
				return err
			}
		}
		if to := int(end & (size - 1)); to > 0 {
			return t.clear(uint64(last), 0, to)
		}
		return nil
	})
	if err == nil && first < last {
		err = h.steps(uint64(first), uint64(last), f)
	}
	if err != nil {
		return err
	}
	return h.ended(end, grow)
}

// shift runs f, which moves the content after an offset, in one op. offset and length must be
// multiples of the block size.
func (h handle) shift(offset, length int64, f func(*tree, uint64, uint64) error) error {
	s := h.n.s
	size, bits := int64(s.geometry.BlockSize), s.geometry.BlockBits
	if (offset|length)&(size-1) != 0 {
		return linux.EINVAL
	}
	return s.update(func(o *op) error {
		t, err := h.placed(o)
		if err != nil {
			return err
		}
		if err := f(t, uint64(offset)>>bits, uint64(length)>>bits); err != nil {
			return err
		}
		o.touch(t.i, true)
		return nil
	})
}

// collapse removes n blocks from the file, and moves the content after them forward. Errors: EINVAL
// if the range reaches the end of the file.
func (t *tree) collapse(from, n uint64) error {
	bits := t.o.s.geometry.BlockBits
	if (from+n)<<bits >= t.i.Size() {
		return linux.EINVAL
	}
	if err := t.remove(from, from+n, t.freeData); err != nil {
		return err
	}
	rest, err := t.takeRest(from + n)
	if err != nil {
		return err
	}
	t.i.SetSize(t.i.Size() - n<<bits)
	return t.putRest(rest, func(logical uint32) uint32 { return logical - uint32(n) })
}

// insertHole inserts a hole of n blocks before block at. Errors: EINVAL if at is not inside the
// file; EFBIG.
func (t *tree) insertHole(at, n uint64) error {
	s := t.o.s
	bits := s.geometry.BlockBits
	switch {
	case at<<bits >= t.i.Size():
		return linux.EINVAL
	case t.i.Size()+n<<bits > uint64(s.maxSize()):
		return linux.EFBIG
	}
	rest, err := t.takeRest(at)
	if err != nil {
		return err
	}
	if len(rest) > 0 && rest[len(rest)-1].End()+n > disk.MaxLogical {
		return linux.EFBIG
	}
	t.i.SetSize(t.i.Size() + n<<bits)
	return t.putRest(rest, func(logical uint32) uint32 { return logical + uint32(n) })
}

// takeRest removes all extents from a block to the end of the file from the tree, and returns them.
func (t *tree) takeRest(from uint64) ([]disk.Extent, error) {
	var rest []disk.Extent
	for at := from; at < disk.MaxLogical; {
		r, err := t.o.s.find(t.ino, t.i, at)
		if err != nil {
			return nil, err
		}
		if r.physical != 0 {
			rest = append(rest, disk.Extent{
				Logical: uint32(r.logical), Length: uint32(r.length), Physical: r.physical, Unwritten: r.unwritten,
			})
		}
		at += r.length
	}
	return rest, t.remove(from, disk.MaxLogical, nil)
}

func (t *tree) putRest(rest []disk.Extent, move func(uint32) uint32) error {
	for _, e := range rest {
		e.Logical = move(e.Logical)
		if err := t.insert(e); err != nil {
			return err
		}
	}
	return nil
}

var _ fs.Allocator = handle{}
