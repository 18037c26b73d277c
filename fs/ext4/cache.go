package ext4

import (
	"sync"

	"loam/block"
)

// The cache of blocks, of metadata and of content alike. It is where a page cache
// will take over the content of files: file.go uses nothing of it but content,
// contentRun and change.

// kind is the kind that a block was checked for.
type kind uint8

const (
	unchecked kind = iota
	content
	superBlock
	descriptors
	blockBitmap
	inodeBitmap
	inodeTable
	extentNode
	directoryLeaf
	indexRoot
	indexNode
	attributeBlock
	blockMap
)

// buffer is the newest image of a block. Its fields are guarded by
// FileSystem.mu; a reader, which holds it shared, changes only kind and the list.
type buffer struct {
	number uint64
	data   []byte // never changed once an op has ended, except in place by one that owns it
	kind   kind

	tx     *transaction // that has this image, not yet committed; nil: none
	logged bool         // committed, and not at home
	dirty  bool         // content that is not written
	late   bool         // dirty, in a block that the file had before: a commit may leave it for later
	inode  uint32       // whose content it is

	listed     bool // in the list of those that may go
	next, prev *buffer
}

// cache finds buffers. The list holds those that may be dropped, the newest first.
type cache struct {
	mu     sync.Mutex
	blocks map[uint64]*buffer
	head   buffer // of the ring
	count  int    // in the ring
	limit  int
}

func newCache(limit int) *cache {
	c := &cache{blocks: map[uint64]*buffer{}, limit: limit}
	c.head.next, c.head.prev = &c.head, &c.head
	return c
}

// find returns a buffer if it is there.
func (c *cache) find(number uint64) *buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.blocks[number]
	if b != nil && b.listed {
		b.unlink()
		b.link(&c.head)
	}
	return b
}

// add enters a buffer, unless another was faster: then it returns that one.
func (c *cache) add(b *buffer) *buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.blocks[b.number]; old != nil {
		return old
	}
	c.blocks[b.number] = b
	c.settleLocked(b)
	return b
}

// settle puts a buffer into the list or takes it out, by whether it may go.
func (c *cache) settle(b *buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks[b.number] == b {
		c.settleLocked(b)
	}
}

func (c *cache) settleLocked(b *buffer) {
	mayGo := b.tx == nil && !b.logged && !b.dirty
	switch {
	case mayGo && !b.listed:
		b.link(&c.head)
		b.listed = true
		c.count++
	case !mayGo && b.listed:
		b.unlink()
		b.listed = false
		c.count--
	}
	for c.count > c.limit {
		c.dropLocked(c.head.prev)
	}
}

// drop forgets a block.
func (c *cache) drop(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.blocks[number]; b != nil {
		c.dropLocked(b)
	}
}

func (c *cache) dropLocked(b *buffer) {
	if b.listed {
		b.unlink()
		b.listed = false
		c.count--
	}
	delete(c.blocks, b.number)
}

func (b *buffer) link(after *buffer) {
	b.prev, b.next = after, after.next
	after.next.prev, after.next = b, b
}

func (b *buffer) unlink() {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
}

// device is the storage in blocks of the file system.
type device struct {
	io   *block.IO
	bits uint
}

func (d *device) read(number uint64, p []byte) error {
	_, err := d.io.ReadAt(p, int64(number)<<d.bits)
	return err
}

func (d *device) write(number uint64, p []byte) error {
	_, err := d.io.WriteAt(p, int64(number)<<d.bits)
	return err
}
