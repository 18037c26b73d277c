package ext4

import (
	"errors"
	"slices"

	"loam/abi/linux"
	"loam/fs/ext4/disk"
)

// op is one atomic change of the file system: it happens completely or not at all. While it runs, it holds FileSystem.mu.
//
// An op changes the images of blocks in place, and saves each part before it changes it. If the op fails, the saved parts
// are restored. A block whose image belongs to an earlier transaction, or to none, is copied first: a commit may be writing
// that image.
//
// Each FileSystem has one op, so that its slices are used again.
type op struct {
	s       *FileSystem
	touched []touch  // blocks whose state in the cache changed
	saved   []saved  // parts of images that the op may change
	old     []byte   // contents of the saved parts
	undo    []func() // further actions of a rollback, the newest last
	dropped []uint64 // blocks that the operation has freed
	content []change // content to write to the cache when the op has succeeded
	named   []naming // names to add to the cache of names when the op has succeeded
	placing bool     // the operation may allocate blocks that are reserved for delayed content

	freeBlocks uint64 // FileSystem.freeBlocks at the beginning
	freeInodes uint32 // FileSystem.freeInodes at the beginning
}

// touch is the state of a block before the op changed it.
type touch struct {
	b      *buffer
	data   []byte
	holds  disk.Structure
	tx     *transaction
	create bool // the op added the block to the cache
}

// saved is a part of an image that may be changed.
type saved struct {
	part []byte
	at   int // offset of the old content in op.old; -1: none is needed, because the op has made the image
}

// naming is a new result for lookups of a name.
type naming struct {
	in   fileKey
	name string
	ino  uint32 // 0: the name does not exist
}

// errCrowded is the error of an op that does not fit into the running transaction. It may fit into
// the next one.
var errCrowded = errors.New("ext4: no room in the transaction")

// beginOp returns the op of the file system, empty. The caller holds mu.
func (s *FileSystem) beginOp() *op {
	o := &s.op
	clear(o.touched)
	clear(o.saved)
	clear(o.undo)
	clear(o.content)
	clear(o.named)
	*o = op{
		s: s, touched: o.touched[:0], saved: o.saved[:0], old: o.old[:0], undo: o.undo[:0], dropped: o.dropped[:0],
		content: o.content[:0], named: o.named[:0], freeBlocks: s.freeBlocks, freeInodes: s.freeInodes,
	}
	return o
}

// update runs f as an op. It waits for a commit if the transaction is full.
func (s *FileSystem) update(f func(*op) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tries := 0; ; tries++ {
		for s.running.full(s) && s.readOnly == "" {
			if err := s.commitUnlocked(); err != nil {
				return err
			}
		}
		if s.readOnly != "" {
			return linux.EROFS
		}
		o := s.beginOp()
		err := f(o)
		if err == nil {
			err = o.finish()
		}
		if err == nil {
			return nil
		}
		o.rollback()
		// Freed blocks, and room that delayed content does not need, become available with the next commit.
		switch {
		case err == errCrowded && tries > 0:
			return linux.ENOSPC
		case err == errCrowded:
		case err != linux.ENOSPC || tries > 0 || len(s.running.freed) == 0 && s.committing == nil && len(s.delayed) == 0:
			return err
		}
		if err := s.commitUnlocked(); err != nil {
			return err
		}
	}
}

// commitUnlocked commits without mu. The caller holds mu, which is released during the commit.
func (s *FileSystem) commitUnlocked() error {
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.commit()
}

// edit returns the image of a block for writing.
func (o *op) edit(number uint64, w disk.Structure) ([]byte, error) {
	b, err := o.join(number, w)
	if err != nil {
		return nil, err
	}
	o.save(b.data)
	return b.data, nil
}

// editPart is like edit, but returns only a part of a block, of size bytes at an offset.
func (o *op) editPart(number uint64, at, size int, w disk.Structure) ([]byte, error) {
	b, err := o.join(number, w)
	if err != nil {
		return nil, err
	}
	o.save(b.data[at : at+size])
	return b.data[at : at+size], nil
}

// join adds a block to the running transaction. Its image may then be changed, after it was saved.
func (o *op) join(number uint64, w disk.Structure) (*buffer, error) {
	b, err := o.s.buffer(number, w)
	if err == nil && b.tx != o.s.running {
		o.take(b, slices.Clone(b.data))
	}
	return b, err
}

// make returns a cleared image for a newly allocated block.
func (o *op) make(number uint64, w disk.Structure) []byte {
	b := o.s.cache.find(number)
	create := b == nil
	if create {
		b = o.s.cache.add(&buffer{number: number})
	}
	o.take(b, make([]byte, o.s.geometry.BlockSize))
	o.touched[len(o.touched)-1].create = create
	b.set(w)
	return b.data
}

// take adds a block with a new image to the running transaction.
func (o *op) take(b *buffer, data []byte) {
	o.record(b)
	o.saved = append(o.saved, saved{data, -1})
	b.data, b.tx = data, o.s.running
	o.s.running.blocks[b.number] = b
	o.s.cache.settle(b)
}

// record records the state of a block before it changes.
func (o *op) record(b *buffer) {
	o.touched = append(o.touched, touch{b: b, data: b.data, holds: b.structure(), tx: b.tx})
}

// save records the content of a part of an image, unless the same part is saved already.
func (o *op) save(part []byte) {
	for _, s := range o.saved {
		if &s.part[0] == &part[0] && len(s.part) == len(part) {
			return
		}
	}
	o.saved = append(o.saved, saved{part, len(o.old)})
	o.old = append(o.old, part...)
}

// finish completes the op.
func (o *op) finish() error {
	s := o.s
	if len(s.running.blocks) > s.transactionLimit() {
		return errCrowded
	}
	for _, number := range o.dropped {
		if b := s.cache.find(number); b != nil {
			delete(s.dirty, b)
			s.cache.drop(number, 1)
		}
	}
	for _, c := range o.content {
		s.changeContent(c)
	}
	for _, n := range o.named {
		s.publish(n)
	}
	return nil
}

// publish adds a changed name, and the attributes of its file, to the cache for lookups.
func (s *FileSystem) publish(n naming) {
	if n.ino == 0 {
		s.known.AddName(n.in, n.name, nil)
		return
	}
	i, err := s.inode(n.ino)
	if err != nil {
		s.known.ForgetName(n.in, n.name)
		return
	}
	s.known.AddName(n.in, n.name, s.nodeOf(n.ino, i))
	s.attr(n.ino, i)
}

// rollback restores the state before the op.
func (o *op) rollback() {
	s := o.s
	for _, undo := range slices.Backward(o.undo) {
		undo()
	}
	for _, p := range slices.Backward(o.saved) {
		if p.at >= 0 {
			copy(p.part, o.old[p.at:])
		}
	}
	for _, t := range slices.Backward(o.touched) {
		if t.tx != s.running {
			delete(s.running.blocks, t.b.number)
		} else {
			s.running.blocks[t.b.number] = t.b
		}
		t.b.data, t.b.tx = t.data, t.tx
		t.b.set(t.holds)
		if t.create {
			s.cache.drop(t.b.number, 1)
		} else {
			s.cache.settle(t.b)
		}
	}
	s.freeBlocks, s.freeInodes = o.freeBlocks, o.freeInodes
}

// inode returns an inode for writing. Until the next commit, fsync(2) and fdatasync(2) of the file commit.
func (o *op) inode(ino uint32) (disk.Inode, error) { return o.inodeFor(ino, true) }

// attributesOf returns an inode for writing, for changes of attributes that fdatasync(2) need not make durable.
func (o *op) attributesOf(ino uint32) (disk.Inode, error) { return o.inodeFor(ino, false) }

func (o *op) inodeFor(ino uint32, data bool) (disk.Inode, error) {
	if _, err := o.s.inode(ino); err != nil {
		return nil, err
	}
	o.s.known.ForgetAttr(ino)
	o.s.running.inodes[ino] = data || o.s.running.inodes[ino]
	number, at, err := o.s.inodePlace(ino)
	if err != nil {
		return nil, err
	}
	return o.editPart(number, at, o.s.geometry.InodeSize, o.s.geometry.InodesFrom(ino, at))
}

// trust records that an inode of a block needs no check, because the op writes all of it.
func (o *op) trust(number uint64, slot int) {
	if b := o.s.cache.find(number); !b.trusted(slot) {
		b.trust(slot)
		o.undo = append(o.undo, func() { b.distrust(slot) })
	}
}

// super returns the superblock for writing.
func (o *op) super() (disk.Super, error) {
	number, at := o.s.superPlace()
	return o.editPart(number, at, disk.SuperSize, disk.Structure{Kind: disk.KindSuper})
}

// descriptor returns a group's descriptor for writing.
func (o *op) descriptor(group uint32) (disk.Group, error) {
	number, at := o.s.geometry.DescriptorBlock(group)
	return o.editPart(number, at, o.s.geometry.DescSize, o.s.geometry.GroupsFrom(group, at))
}

// stamp updates the times of a file whose content is written. It does nothing if the times are the present ones.
func (o *op) stamp(ino uint32, i disk.Inode) error {
	if o.s.stamped(i) {
		return nil
	}
	i, err := o.attributesOf(ino)
	if err == nil {
		o.touch(i, true)
	}
	return err
}

// stamped reports whether a write does not change the times of a file.
func (s *FileSystem) stamped(i disk.Inode) bool {
	now := s.now()
	return timeOf(i, disk.StatusTime) == now && timeOf(i, disk.ModifyTime) == now
}

// touch updates the change time of an inode, and with modified also the modification time.
func (o *op) touch(i disk.Inode, modified bool) {
	now := o.s.now()
	setTime(i, disk.StatusTime, now)
	if modified {
		setTime(i, disk.ModifyTime, now)
	}
}
