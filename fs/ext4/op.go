package ext4

import (
	"errors"
	"slices"

	"loam/abi/linux"
	"loam/fs/ext4/disk"
)

// op is one atomic change of the file system: it happens completely or not at all. While it runs,
// it holds FileSystem.mu. It changes copies of blocks. If it fails, the previous images are
// restored.
//
// Checksums of changed blocks are written once, at the end of the op.
type op struct {
	s       *FileSystem
	touched []touch
	undo    []func()           // further actions of a rollback, the newest last
	inodes  []uint32           // numbers of the changed inodes, whose checksums must be written
	bitmaps map[uint32][2]bool // groups whose block bitmap or inode bitmap changed
	dropped []uint64           // blocks that the operation has freed
	content []change           // content to write to the cache when the op has succeeded
	placing bool               // the operation may allocate blocks that are reserved for delayed content
}

// touch is the state of a block before the op changed it.
type touch struct {
	b      *buffer
	data   []byte
	kind   kind
	tx     *transaction
	seal   func([]byte)
	isNew  bool // the op added the block to the transaction
	create bool // the op added the block to the cache
}

// errCrowded is the error of an op that does not fit into the running transaction. It may fit into
// the next one.
var errCrowded = errors.New("ext4: no room in the transaction")

// has reports whether the op has changed an inode; a nil op has changed nothing.
func (o *op) has(ino uint32) bool { return o != nil && slices.Contains(o.inodes, ino) }

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
		o := &op{s: s, bitmaps: map[uint32][2]bool{}}
		s.op = o
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

// edit returns the image of a block for writing. When the op ends, seal is called to write the
// block's checksum; seal may be nil.
func (o *op) edit(number uint64, k kind, check func([]byte) bool, seal func([]byte)) ([]byte, error) {
	if b := o.find(number); b != nil {
		if b.b.kind != k {
			return nil, errDamaged
		}
		return b.b.data, nil
	}
	b, err := o.s.buffer(number, k, check)
	if err != nil {
		return nil, err
	}
	o.take(b, slices.Clone(b.data), seal)
	return b.data, nil
}

// make returns a cleared image for a newly allocated block.
func (o *op) make(number uint64, k kind, seal func([]byte)) []byte {
	b := o.s.cache.find(number)
	create := b == nil
	if create {
		b = o.s.cache.add(&buffer{number: number})
	}
	o.take(b, make([]byte, o.s.geometry.BlockSize), seal)
	o.touched[len(o.touched)-1].create = create
	b.kind = k
	return b.data
}

func (o *op) find(number uint64) *touch {
	for i := len(o.touched) - 1; i >= 0; i-- {
		if o.touched[i].b.number == number {
			return &o.touched[i]
		}
	}
	return nil
}

// take adds a block with a new image to the running transaction.
func (o *op) take(b *buffer, data []byte, seal func([]byte)) {
	r := o.s.running
	o.touched = append(o.touched, touch{b: b, data: b.data, kind: b.kind, tx: b.tx, seal: seal, isNew: b.tx != r})
	b.data, b.tx = data, r
	r.blocks[b.number] = b
	o.s.cache.settle(b)
}

// finish writes the checksums of changed structures and completes the op.
func (o *op) finish() error {
	s, g := o.s, o.s.geometry
	if len(s.running.blocks) > s.transactionLimit() {
		return errCrowded
	}
	for group, which := range o.bitmaps {
		d, err := s.descriptor(group)
		if err != nil {
			return err
		}
		if which[0] {
			g.Sums.SealBlockBitmap(d, o.find(d.BlockBitmap()).b.data[:g.BlocksPerGroup/8])
		}
		if which[1] {
			g.Sums.SealInodeBitmap(d, o.find(d.InodeBitmap()).b.data[:g.InodesPerGroup/8])
		}
		g.Sums.SealGroup(d, group)
	}
	for _, ino := range o.inodes {
		number, at, _ := s.inodePlace(ino)
		g.Sums.SealInode(disk.Inode(o.find(number).b.data[at:at+g.InodeSize]), ino)
	}
	for _, t := range o.touched {
		if t.seal != nil && t.b.tx == s.running {
			t.seal(t.b.data)
		}
	}
	for _, number := range o.dropped {
		if b := s.cache.find(number); b != nil {
			delete(s.dirty, b)
			s.cache.drop(number)
		}
	}
	for _, c := range o.content {
		s.changeContent(c)
	}
	s.op = nil
	return nil
}

// rollback restores the state before the op.
func (o *op) rollback() {
	s := o.s
	for _, undo := range slices.Backward(o.undo) {
		undo()
	}
	for _, t := range slices.Backward(o.touched) {
		if t.isNew {
			delete(s.running.blocks, t.b.number)
		} else {
			s.running.blocks[t.b.number] = t.b
		}
		t.b.data, t.b.kind, t.b.tx = t.data, t.kind, t.tx
		if t.create {
			s.cache.drop(t.b.number)
		} else {
			s.cache.settle(t.b)
		}
	}
	s.op = nil
}

// inode returns an inode for writing.
func (o *op) inode(ino uint32) (disk.Inode, error) {
	if _, err := o.s.inode(ino); err != nil {
		return nil, err
	}
	o.s.known.ForgetAttr(ino)
	number, at, err := o.s.inodePlace(ino)
	if err != nil {
		return nil, err
	}
	b, err := o.edit(number, inodeTable, func([]byte) bool { return true }, nil)
	if err != nil {
		return nil, err
	}
	if !o.has(ino) {
		o.inodes = append(o.inodes, ino)
	}
	return disk.Inode(b[at : at+o.s.geometry.InodeSize]), nil
}

// super returns the superblock for writing.
func (o *op) super() (disk.Super, error) {
	number, at := o.s.superPlace()
	b, err := o.edit(number, superBlock, func([]byte) bool { return true }, func(b []byte) { disk.Super(b[at : at+disk.SuperSize]).Seal() })
	if err != nil {
		return nil, err
	}
	return disk.Super(b[at : at+disk.SuperSize]), nil
}

// descriptor returns a group's descriptor for writing.
func (o *op) descriptor(group uint32) (disk.Group, error) {
	number, at := o.s.geometry.DescriptorBlock(group)
	b, err := o.edit(number, descriptors, func([]byte) bool { return true }, nil)
	if err != nil {
		return nil, err
	}
	if _, ok := o.bitmaps[group]; !ok {
		o.bitmaps[group] = [2]bool{}
	}
	return disk.Group(b[at : at+o.s.geometry.DescSize]), nil
}

// touch updates the change time of an inode, and with modified also the modification time.
func (o *op) touch(i disk.Inode, modified bool) {
	now := o.s.now()
	setTime(i, disk.StatusTime, now)
	if modified {
		setTime(i, disk.ModifyTime, now)
	}
}
