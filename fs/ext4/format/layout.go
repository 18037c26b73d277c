package format

import (
	"errors"
	"fmt"

	"loam/block"
	"loam/fs/ext4/disk"
)

// extent is a run of blocks.
type extent struct{ start, length uint64 }

// group is a block group.
type group struct {
	used        []extent // blocks in use, not including the copies of the superblock and descriptors
	blockBitmap uint64
	inodeBitmap uint64
	table       uint64
}

// writer makes one file system.
type writer struct {
	config   Config
	io       *block.IO
	super    disk.Super
	geometry *disk.Geometry
	groups   []group
	cursor   uint64 // block at which the next allocation begins to search

	journal  []extent
	root     uint64
	lost     extent
	indirect uint64 // number of the indirect block of the resize inode
}

var errSmall = errors.New("the device is too small for so many inodes or so long a journal")

// newWriter decides the position of all structures.
func newWriter(d block.Device, c Config) (*writer, error) {
	w := &writer{config: c, io: block.NewIO(d), super: make(disk.Super, disk.SuperSize)}
	blocks := uint64(d.Size()) / uint64(c.BlockSize)
	for { // this loop omits the last group if the group would hold almost nothing
		if err := w.describe(blocks); err != nil {
			return nil, err
		}
		g := w.geometry
		last := g.Groups - 1
		need := uint64(g.Overhead(last)) + 2 + g.TableBlocks() + 50
		if last == 0 || uint64(g.GroupBlocks(last)) >= need {
			break
		}
		blocks = g.GroupStart(last)
	}
	return w, w.place()
}

// describe fills in the superblock for a number of blocks.
func (w *writer) describe(blocks uint64) error {
	c, s := &w.config, w.super
	clear(s)
	perGroup := uint64(min(8*c.BlockSize, 1<<16-8)) // e2fsprogs counts the blocks of a group in 16 bits
	first := uint64(0)
	if c.BlockSize == 1024 {
		first = 1
	}
	groups := (blocks - first + perGroup - 1) / perGroup
	inodes := max(blocks*uint64(c.BlockSize)/uint64(c.InodeRatio), uint64(c.Inodes), 16)
	perBlock := uint64(c.BlockSize / inodeSize)
	perTable := max((inodes+groups-1)/groups, 16)
	perTable = (perTable + max(perBlock, 8) - 1) / max(perBlock, 8) * max(perBlock, 8)
	if perTable > min(perGroup, 1<<16-perBlock) || perTable*groups > 1<<32-1 {
		return fmt.Errorf("%d inodes are too many for %d blocks of %d bytes", inodes, blocks, c.BlockSize)
	}
	w.describeSizes(blocks, first, perGroup, groups, perTable)
	w.describeRest()
	g, err := disk.ParseSuper(s)
	w.geometry = g
	return err
}

// place decides the positions of bitmaps, tables and the first files.
func (w *writer) place() error {
	g := w.geometry
	w.groups = make([]group, g.Groups)
	journal := w.config.journalBlocks(g.Blocks, uint64(g.BlocksPerGroup))
	const together = 1 << flexShift
	for first := uint32(0); first < g.Groups; first += together {
		end := min(first+together, g.Groups)
		w.cursor = g.GroupStart(first)
		for i := first; i < end; i++ {
			w.groups[i].blockBitmap = w.take(1)
		}
		for i := first; i < end; i++ {
			w.groups[i].inodeBitmap = w.take(1)
		}
		for i := first; i < end; i++ {
			if w.groups[i].table = w.take(g.TableBlocks()); w.groups[i].table == 0 {
				return errSmall
			}
		}
		if first == 0 {
			w.placeFiles(journal)
		}
	}
	if w.root == 0 || w.lost.start == 0 || w.indirect == 0 || w.journal == nil {
		return errSmall
	}
	return nil
}

// placeFiles decides the positions of the first files.
func (w *writer) placeFiles(journal uint64) {
	w.root = w.take(1)
	n := max(1, uint64(16<<10/w.config.BlockSize))
	w.lost = extent{w.take(n), n}
	w.indirect = w.take(1)
	for journal > 0 {
		n := min(journal, w.room(), disk.MaxExtent)
		if n == 0 || len(w.journal) == disk.RootEntries {
			w.journal = nil
			return
		}
		w.journal = append(w.journal, extent{w.take(n), n})
		journal -= n
	}
}

// room returns the number of free blocks at the cursor. If the cursor is at a group's copies of the
// superblock, room moves it behind them first. It returns 0 at the end of the device.
func (w *writer) room() uint64 {
	g := w.geometry
	for w.cursor < g.Blocks {
		n, bit := g.GroupOf(w.cursor)
		if over := g.Overhead(n); bit < over {
			w.cursor += uint64(over - bit)
			continue
		}
		return uint64(g.GroupBlocks(n) - bit)
	}
	return 0
}

// take allocates n adjacent blocks in one group. It returns 0 if there are none.
func (w *writer) take(n uint64) uint64 {
	g := w.geometry
	for {
		room := w.room()
		if room == 0 {
			return 0
		}
		if room >= n {
			break
		}
		w.cursor += room
	}
	at := w.cursor
	number, _ := g.GroupOf(at)
	w.groups[number].used = append(w.groups[number].used, extent{at, n})
	w.cursor += n
	return at
}
