package ext4

import (
	"sync"

	"loam/block"
)

// The cache of blocks, which holds metadata and file contents. A page cache could replace it for file
// contents: file.go accesses cached contents only through content, contentRun and changeContent.

// kind is the kind of structure in a block. It is set after the block has passed the check for that
// structure.
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

// buffer is the newest image of a block. Its fields are guarded by FileSystem.mu. A reader of the file
// system holds mu shared, and may change only the field kind and the order of the cache's list.
type buffer struct {
	number uint64
	data   []byte // modified only during the operation that made the image, or later if owns returns true
	kind   kind

	tx     *transaction // the uncommitted transaction that contains this image; nil: none
	logged bool         // the buffer was committed to the journal, and is not yet written to its own block
	dirty  bool         // the buffer has content of a file that is not yet written
	late   bool         // the buffer is dirty, and its block already belonged to the file: the next commit may skip the buffer
	inode  uint32       // the inode number of the file whose content the buffer has

	listed     bool // in the list of buffers that may be dropped
	next, prev *buffer
}

// cache holds buffers by block number. The list has the buffers that may be dropped, the most
// recently used first.
type cache struct {
	mu     sync.Mutex
	blocks map[uint64]*buffer
	head   buffer // head of the list of buffers, which is a ring
	count  int    // number of buffers in the list
	limit  int

	begun  uint64 // number of direct writes that have begun since the file system was opened
	active int    // number of direct writes that have begun and not ended
}

func newCache(limit int) *cache {
	c := &cache{blocks: map[uint64]*buffer{}, limit: limit}
	c.head.next, c.head.prev = &c.head, &c.head
	return c
}

// find returns the buffer of a block, or nil if it is not cached.
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

// add inserts a buffer, and returns it. If another goroutine has inserted one for the same block,
// add returns that one.
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

// begin and end enclose a direct write, which changes the device and not the cache. Before end, the writer drops the blocks
// from the cache. A read from the device that overlaps with a direct write does not fill the cache: see addRead.
func (c *cache) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
	c.active++
}

func (c *cache) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active--
}

// mark returns a value for addRead, before a read from the device.
func (c *cache) mark() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active > 0 {
		return c.begun - 1 // the read overlaps already
	}
	return c.begun
}

// addRead is like add, but for a buffer that was read from the device. If the read overlapped with a direct write,
// addRead returns b and leaves the cache as it is. Ops exclude direct writes, so their buffers are always added.
func (c *cache) addRead(b *buffer, mark uint64) *buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.blocks[b.number]; old != nil {
		return old
	}
	if mark == c.begun {
		c.blocks[b.number] = b
		c.settleLocked(b)
	}
	return b
}

// settle inserts a buffer into the list if it may be dropped, and removes it if not.
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

// drop removes a block from the cache.
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

// device reads and writes blocks of the file system.
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
