package ext4

import (
	"maps"
	"slices"

	"loam/fs/ext4/disk"
	"loam/fs/ext4/span"
)

// Delayed allocation. A write to a hole of a regular file reserves blocks, and does not choose them. The
// content waits in the cache under a stand-in number. A commit, or an operation that needs the blocks,
// places it: it allocates as few runs as possible, and gives the buffers their real numbers. So files
// that grow at the same time do not mix, and a file that is removed before the commit never touches a
// bitmap.
//
// Every commit places all delayed content before it freezes its transaction. Promises after a crash are
// therefore the same as without delay: the size of a file and its content become durable together.
//
// Invariants: delayed blocks are holes in the extent tree. The device has room for them and for the extent
// nodes that they may need: [FileSystem.spare] does not count that room. If there is not enough room to
// reserve, blocks are allocated at once, so a full disk returns ENOSPC from write(2).

// standIn marks the number of a buffer as a stand-in for a block that is not chosen yet.
const standIn = 1 << 63

// standInFor returns the number of a delayed block of a file.
func standInFor(ino uint32, logical uint64) uint64 { return standIn | uint64(ino)<<32 | logical }

// mostSpans is the maximum number of delayed ranges of a file. In a file that has this number, a write to a
// hole allocates its blocks at once.
const mostSpans = 256

// runsAtPlace is the maximum number of runs that one op allocates for delayed content.
const runsAtPlace = 64

// locate returns the run that begins at block logical of a file, as find does. A run of delayed blocks has
// the stand-in numbers under which their content is cached.
func (s *FileSystem) locate(ino uint32, i disk.Inode, logical uint64) (run, error) {
	r, err := s.find(ino, i, logical)
	if err != nil || r.physical != 0 {
		return r, err
	}
	in, length := s.delayed[ino].Find(logical)
	if in {
		r.physical = standInFor(ino, logical)
	}
	if length > 0 {
		r.length = min(r.length, length)
	}
	return r, nil
}

// setDelayed replaces the delayed blocks of a file.
func (o *op) setDelayed(ino uint32, blocks span.Set) {
	s := o.s
	old := s.delayed[ino]
	set := func(was, blocks span.Set) {
		s.reserved += blocks.Blocks() - was.Blocks()
		s.spans += len(blocks) - len(was)
		if s.delayed[ino] = blocks; len(blocks) == 0 {
			delete(s.delayed, ino)
		}
	}
	set(old, blocks)
	o.undo = append(o.undo, func() { set(blocks, old) })
}

// delay reserves blocks of a hole, if they may be delayed.
func (t *tree) delay(logical, length uint64) bool {
	s := t.o.s
	spans := s.delayed[t.ino]
	const margin = 64 // number of blocks that stay free for metadata
	if uint64(t.ino)<<32 >= standIn || len(spans) >= mostSpans || s.spare() < length+s.nodesFor(length, 1)+margin {
		return false
	}
	t.o.setDelayed(t.ino, spans.Add(span.Span{From: logical, To: logical + length}))
	return true
}

// nodesFor returns an upper limit of the extent nodes for delayed blocks of a number of files. Each block
// may be a run of its own, and nodes may be half full.
func (s *FileSystem) nodesFor(blocks, files uint64) uint64 {
	entries := uint64(s.geometry.BlockSize/12 - 2)
	return 2*files + blocks*4/entries
}

// spare returns the number of blocks that can be allocated now and are not reserved.
func (s *FileSystem) spare() uint64 {
	held := s.reserved + s.pending()
	if len(s.delayed) > 0 {
		held += s.nodesFor(s.reserved, uint64(len(s.delayed)))
	}
	return s.freeBlocks - min(s.freeBlocks, held)
}

// pending returns the number of free blocks that cannot be allocated before a commit.
func (s *FileSystem) pending() uint64 {
	n := s.running.freedBlocks
	if s.committing != nil {
		n += s.committing.freedBlocks
	}
	return n
}

// dropDelayed drops the delayed content of a file from a block on.
func (o *op) dropDelayed(ino uint32, from uint64) {
	kept, rest := o.s.delayed[ino].Split(from)
	if len(rest) == 0 {
		return
	}
	for _, p := range rest {
		for l := p.From; l < p.To; l++ {
			o.dropped = append(o.dropped, standInFor(ino, l))
		}
	}
	o.setDelayed(ino, kept)
}

// place allocates blocks for delayed content of a file. The parameter most limits the number of contiguous runs of
// blocks. The op must not have written content before.
func (o *op) place(ino uint32, most int) error {
	s := o.s
	if len(s.delayed[ino]) == 0 {
		return nil
	}
	t, err := o.tree(ino)
	if err != nil {
		return err
	}
	o.placing = true
	defer func() { o.placing = false }()
	for ; most > 0 && len(s.delayed[ino]) > 0; most-- {
		first := s.delayed[ino][0]
		physical, n, err := t.fill(first.From, first.To-first.From, false)
		if err != nil {
			return err
		}
		_, rest := s.delayed[ino].Split(first.From + n)
		o.setDelayed(ino, rest)
		for k := range n {
			o.renumber(standInFor(ino, first.From+k), physical+k)
		}
	}
	return nil
}

// renumber gives a buffer the number of its block.
func (o *op) renumber(from, to uint64) {
	s := o.s
	if old := s.cache.find(to); old != nil { // the buffer holds what the block contained before it was freed
		delete(s.dirty, old)
		s.cache.drop(to, 1)
	}
	s.cache.move(from, to)
	o.undo = append(o.undo, func() { s.cache.move(to, from) })
}

// move changes the block number of a buffer.
func (c *cache) move(from, to uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.blocks.Get(from)
	c.blocks.Delete(from)
	b.number = to
	c.blocks.Set(to, b)
}

// placeAll places the delayed content of all files, as far as the transaction has room. more is true if some
// remains. The caller holds mu.
func (s *FileSystem) placeAll() (more bool, err error) {
	for _, ino := range slices.Sorted(maps.Keys(s.delayed)) {
		for len(s.delayed[ino]) > 0 {
			o := s.beginOp()
			if err = o.place(ino, runsAtPlace); err == nil {
				err = o.finish()
			}
			if err == nil {
				continue
			}
			o.rollback()
			if err == errCrowded && len(s.running.blocks) > 0 {
				return true, nil
			}
			return false, err
		}
	}
	return false, nil
}

// settle places the delayed content of a file, for operations that change its blocks. A write by another
// goroutine may delay blocks again, so the operation calls place, too.
func (s *FileSystem) settle(ino uint32) error {
	for more := true; more; {
		s.mu.RLock()
		more = len(s.delayed[ino]) > 0
		s.mu.RUnlock()
		if !more {
			break
		}
		if err := s.update(func(o *op) error { return o.place(ino, runsAtPlace) }); err != nil {
			return err
		}
	}
	return nil
}

// delayedSectors returns the size of the delayed content of a file in sectors of 512 bytes.
func (s *FileSystem) delayedSectors(ino uint32) int64 {
	return int64(s.delayed[ino].Blocks() << (s.geometry.BlockBits - 9))
}
