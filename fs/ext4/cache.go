package ext4

import (
	"sync"
	"sync/atomic"

	"loam/block"
	"loam/fs/ext4/blockmap"
	"loam/fs/ext4/disk"
)

// The cache of blocks, which holds metadata and file contents. A page cache could replace it for file
// contents: file.go accesses cached contents only through content, contentRun and changeContent.

// buffer is the newest image of a block. Its fields are guarded by FileSystem.mu. A reader of the file
// system holds mu shared, and may change only the fields above number and the order of the cache's list.
type buffer struct {
	kind  atomic.Uint32    // the kind of structure: see structure
	owner disk.Owner       // see structure; set together with kind
	index uint32           // see structure; set together with kind
	valid [8]atomic.Uint64 // of an inode table, a bit for each inode: the image is newer than the checksum, or has passed its check
	used  atomic.Bool      // the buffer was found since it was last at the end of the cache's list

	number uint64
	data   []byte // modified only by ops while tx is the running transaction. Content is modified while owns returns true

	tx     *transaction // the uncommitted transaction that contains this image; nil: none
	logged bool         // the buffer was committed to the journal, and is not yet written to its own block
	dirty  bool         // the buffer has content of a file that is not yet written
	late   bool         // the buffer is dirty, and its block already belonged to the file: the next commit may skip the buffer
	inode  uint32       // the inode number of the file whose content the buffer has

	listed     bool // in the list of buffers that may be dropped
	next, prev *buffer
}

// structure returns the structure that the block holds. The caller holds mu of the file system.
func (b *buffer) structure() disk.Structure {
	return disk.Structure{Kind: disk.Kind(b.kind.Load()), Owner: b.owner, Index: b.index}
}

// set sets the structure that the block holds. The caller holds mu of the file system exclusively, or mu of the cache.
func (b *buffer) set(w disk.Structure) {
	b.owner, b.index = w.Owner, w.Index
	b.kind.Store(uint32(w.Kind))
}

// trusted reports whether an inode of a table needs no check of its checksum.
func (b *buffer) trusted(slot int) bool { return b.valid[slot/64].Load()>>(slot%64)&1 != 0 }

func (b *buffer) trust(slot int)    { b.valid[slot/64].Or(1 << (slot % 64)) }
func (b *buffer) distrust(slot int) { b.valid[slot/64].And(^(uint64(1) << (slot % 64))) }

// cache holds buffers by block number. The list has the buffers that may be dropped. A new buffer is at its start. The
// buffer at its end is dropped, or moves to the start if it was used meanwhile. A buffer is never dropped by its own addition.
type cache struct {
	mu     sync.RWMutex
	blocks blockmap.Map[buffer]
	head   buffer // head of the list of buffers, which is a ring
	count  int    // number of buffers in the list
	limit  int

	begun  uint64 // number of direct writes that have begun since the file system was opened
	active int    // number of direct writes that have begun and not ended
}

func newCache(limit int) *cache {
	c := &cache{limit: limit}
	c.head.next, c.head.prev = &c.head, &c.head
	return c
}

// find returns the buffer of a block, or nil if it is not cached.
func (c *cache) find(number uint64) *buffer {
	c.mu.RLock()
	b := c.blocks.Get(number)
	c.mu.RUnlock()
	if b != nil && !b.used.Load() {
		b.used.Store(true)
	}
	return b
}

// classify sets the structure of a buffer that a reader has checked.
func (c *cache) classify(b *buffer, w disk.Structure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.kind.Load() != uint32(w.Kind) {
		b.set(w)
	}
}

// add inserts a buffer, and returns it. If another goroutine has inserted one for the same block,
// add returns that one.
func (c *cache) add(b *buffer) *buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.blocks.Get(b.number); old != nil {
		return old
	}
	c.blocks.Set(b.number, b)
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
	if old := c.blocks.Get(b.number); old != nil {
		return old
	}
	if mark == c.begun {
		c.blocks.Set(b.number, b)
		c.settleLocked(b)
	}
	return b
}

// settle inserts a buffer into the list if it may be dropped, and removes it if not.
func (c *cache) settle(b *buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks.Get(b.number) == b {
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
	for tries := 2 * c.limit; c.count > c.limit; tries-- {
		last := c.head.prev
		if last == b || tries > 0 && last.used.Swap(false) {
			last.unlink()
			last.link(&c.head)
			continue
		}
		c.dropLocked(last)
	}
}

// unwritten reports whether the cache holds one of n blocks with content that its own block on the device does not have yet.
// The caller holds mu of the file system.
func (c *cache) unwritten(number, n uint64) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for b := range c.blocks.In(number, n) {
		if b.dirty || b.tx != nil || b.logged {
			return true
		}
	}
	return false
}

// drop removes n blocks from the cache.
func (c *cache) drop(number, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for b := range c.blocks.In(number, n) {
		c.dropLocked(b)
	}
}

func (c *cache) dropLocked(b *buffer) {
	if b.listed {
		b.unlink()
		b.listed = false
		c.count--
	}
	c.blocks.Delete(b.number)
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
