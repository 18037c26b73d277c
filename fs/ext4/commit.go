package ext4

import (
	"errors"
	"slices"
	"time"

	"loam/abi/linux"
	"loam/block"
	"loam/fs/ext4/disk"
	"loam/fs/ext4/journal"
)

// transaction holds the changes since the last commit.
type transaction struct {
	number  uint64
	blocks  map[uint64]*buffer
	revoked map[uint64]struct{}
	inodes  map[uint32]bool   // inodes that changed; false: only in attributes that fdatasync(2) need not make durable
	freed   map[uint32][]byte // for each group, a bitmap of the blocks that become free when the transaction is committed

	freedBlocks uint64 // number of blocks in the field freed
}

func newTransaction(number uint64) *transaction {
	return &transaction{
		number: number, blocks: map[uint64]*buffer{}, revoked: map[uint64]struct{}{}, inodes: map[uint32]bool{}, freed: map[uint32][]byte{},
	}
}

// transactionLimit is the maximum number of blocks of a transaction.
func (s *FileSystem) transactionLimit() int {
	if s.journal == nil {
		return 1 << 14
	}
	return s.journal.Capacity() / 2
}

// full reports whether ops must wait for a commit: the transaction is so large that the next op
// might not fit, or there is much unwritten content.
func (t *transaction) full(s *FileSystem) bool {
	place := s.spans/32 + len(s.delayed)/8 // estimated number of blocks that change when delayed content is placed
	return len(t.blocks)+len(t.revoked)+place > s.transactionLimit()/2 || len(s.dirty) > s.cache.limit/2
}

// loop commits once per Config.Interval, until Close.
func (s *FileSystem) loop() {
	defer close(s.ended)
	t := time.NewTicker(s.config.Interval)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
		s.commit() // after an error the file system is read-only
	}
}

// commit makes everything durable that was changed before the call.
func (s *FileSystem) commit() error {
	s.mu.RLock()
	want := s.running.number
	s.mu.RUnlock()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.RLock()
	done := s.running.number > want && len(s.dirty) == 0
	s.mu.RUnlock()
	if done {
		return s.clean(nil) // an earlier commit has included all changes
	}
	return s.commitAll(0, false)
}

// commitFile makes the content of a file durable, and the changes of its inode or, with dataOnly, those that are needed to read
// the content.
func (s *FileSystem) commitFile(ino uint32, dataOnly bool) error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	return s.commitAll(ino, dataOnly)
}

// commitAll commits until nothing that the caller waits for is left. Its arguments are those of freeze. The caller holds commitMu.
func (s *FileSystem) commitAll(ino uint32, dataOnly bool) error {
	for more := true; more; {
		var err error
		if more, err = s.commitOnce(ino, dataOnly); err != nil {
			return err
		}
	}
	return nil
}

// commitOnce commits at most one transaction. more is true if it had no room for all delayed content. The caller
// holds commitMu.
func (s *FileSystem) commitOnce(ino uint32, dataOnly bool) (more bool, err error) {
	flush := s.unflushed.Swap(false)
	t, images, contents, more, err := s.freeze(ino, dataOnly)
	switch {
	case err != nil:
	case t != nil:
		err = s.writeTransaction(t, images, contents)
	case flush || len(contents) > 0:
		err = s.writeDurably(contents)
	}
	if err != nil {
		s.fail(err)
		return false, linux.EIO
	}
	err = s.clean(contents) // before thaw, which may write a checkpoint: the transaction is durable even if that fails
	if t != nil {
		if s.config.Discard {
			s.discard(t)
		}
		s.thaw(t)
	}
	return more, err
}

// discard discards the blocks that a transaction freed. They are not reused before thaw. Errors are
// ignored, because a discard is only a hint.
func (s *FileSystem) discard(t *transaction) {
	bits := s.geometry.BlockBits
	for group, freed := range t.freed {
		s.mu.RLock()
		start, end := s.geometry.GroupStart(group), s.geometry.GroupBlocks(group)
		s.mu.RUnlock()
		for i := disk.NextSet(freed, 0, end); i < end; {
			n := disk.NextClear(freed, i, end) - i
			s.device.io.Discard(int64(start+uint64(i))<<bits, int64(n)<<bits)
			i = disk.NextSet(freed, i+n, end)
		}
	}
}

// clean records that content was written. It returns EIO if the device has failed earlier.
func (s *FileSystem) clean(contents []journal.Image) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range contents {
		if b := s.cache.find(i.Block); b != nil {
			if _, again := s.dirty[b]; !again {
				b.dirty = false
				s.cache.settle(b)
			}
		}
	}
	if s.failed {
		return linux.EIO
	}
	return nil
}

// freeze chooses blocks for delayed content, ends the running transaction and starts the next one. It returns the ended
// transaction t, the images of the blocks that t has changed, and the content that must be written. t is nil if
// there is nothing to commit, also if a file is given (ino) and needs only its content written. more is true if the transaction
// has no room for all delayed content.
func (s *FileSystem) freeze(ino uint32, dataOnly bool) (t *transaction, images, contents []journal.Image, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t = s.running
	if s.readOnly != "" || len(t.blocks) == 0 && len(s.dirty) == 0 && len(t.revoked) == 0 {
		clear(t.inodes) // only ops that failed have added inodes
		return nil, nil, nil, false, nil
	}
	data, changed := t.inodes[ino]
	if ino != 0 && !data && (!changed || dataOnly) && len(s.delayed[ino]) == 0 {
		return nil, nil, s.takeDirty(ino, false), false, nil
	}
	if more, err = s.placeAll(); err != nil {
		return nil, nil, nil, false, err
	}
	if len(t.blocks) > 0 {
		s.countSuper()
	}
	if err := s.seal(); err != nil {
		return nil, nil, nil, false, err
	}
	for number, b := range t.blocks {
		images = append(images, journal.Image{Block: number, Data: b.data})
	}
	s.committing, s.running = t, newTransaction(t.number+1)
	journal.Sort(images)
	return t, images, s.takeDirty(ino, true), more, nil
}

// takeDirty removes the content of a file from the unwritten content and returns it. If ino is 0, it takes that of all files.
// With fresh, it also takes all content in newly allocated blocks.
func (s *FileSystem) takeDirty(ino uint32, fresh bool) (contents []journal.Image) {
	for b := range s.dirty {
		if b.number&standIn == 0 && (ino == 0 || b.inode == ino || fresh && !b.late) {
			contents = append(contents, journal.Image{Block: b.number, Data: b.data})
			delete(s.dirty, b)
		}
	}
	if len(s.dirty) == 0 {
		s.dirty = map[*buffer]struct{}{} // a loop over a map takes as long as when the map was largest
	}
	return contents
}

// seal writes the checksums in the blocks of the running transaction. Checksums of bitmaps are in descriptors, so descriptors
// come last.
func (s *FileSystem) seal() error {
	g := s.geometry
	var last []*buffer
	for _, b := range s.running.blocks {
		w := b.structure()
		switch w.Kind {
		case disk.KindDescriptors:
			last = append(last, b)
			continue
		case disk.KindInodeTable:
			for slot := range g.BlockSize / g.InodeSize {
				if b.trusted(slot) {
					g.Sums.SealInode(b.data[slot*g.InodeSize:(slot+1)*g.InodeSize], w.Index+uint32(slot))
				}
			}
			continue
		}
		d, err := s.groupOf(w)
		if err != nil {
			return err
		}
		g.Seal(b.data, b.number, w, d)
	}
	for _, b := range last {
		g.Seal(b.data, b.number, b.structure(), nil)
	}
	return nil
}

// countSuper writes the numbers of free blocks and inodes into the superblock, if they have changed. Ops do not update
// them there.
func (s *FileSystem) countSuper() {
	super, err := s.super()
	if err == nil && super.FreeBlocks() == s.freeBlocks && super.FreeInodes() == s.freeInodes {
		return
	}
	if super, err = s.beginOp().super(); err != nil {
		return // the counts in the superblock stay old: e2fsck recomputes them
	}
	super.SetFreeBlocks(s.freeBlocks)
	super.SetFreeInodes(s.freeInodes)
	super.SetWriteTime(uint32(s.config.Now().Unix()))
}

// writeBlocks writes blocks of the device, in any order.
func (s *FileSystem) writeBlocks(images []journal.Image) error {
	journal.Sort(images)
	pieces := make([]block.Piece, len(images))
	for k, i := range images {
		pieces[k] = block.Piece{Offset: int64(i.Block) << s.geometry.BlockBits, Data: i.Data}
	}
	return s.device.io.WritePieces(pieces)
}

// writeDurably writes blocks of the device, in any order, and flushes it.
func (s *FileSystem) writeDurably(images []journal.Image) error {
	if err := s.writeBlocks(images); err != nil {
		return err
	}
	return s.device.io.Flush()
}

// writeTransaction makes a transaction and contents of files durable. The contents are written together with the journal's
// blocks: the flush before the transaction's commit block covers both.
func (s *FileSystem) writeTransaction(t *transaction, images, contents []journal.Image) error {
	if s.journal == nil || len(images) == 0 && len(t.revoked) == 0 {
		return s.writeDurably(slices.Concat(contents, images))
	}
	now := s.config.Now()
	jt := &journal.Transaction{Images: images, Seconds: uint64(now.Unix()), Nanoseconds: uint32(now.Nanosecond())}
	for number := range t.revoked {
		jt.Revoked = append(jt.Revoked, number)
	}
	slices.Sort(jt.Revoked)
	if !s.journal.Fits(jt) {
		if err := s.checkpoint(); err != nil {
			return err
		}
	}
	steps, err := s.journal.Commit(jt)
	if err != nil {
		return err
	}
	return s.carryOut(steps, contents)
}

// carryOut executes the steps that the journal returned. It writes contents of files together with the steps before the first
// flush.
func (s *FileSystem) carryOut(steps []journal.Step, contents []journal.Image) error {
	batch := slices.Clone(contents)
	for _, step := range steps {
		switch step.Kind {
		case journal.WriteLog:
			number, err := s.logBlock(uint32(step.Block))
			if err != nil {
				return err
			}
			batch = append(batch, journal.Image{Block: number, Data: step.Data})
		case journal.WriteHome:
			batch = append(batch, journal.Image{Block: step.Block, Data: step.Data})
		case journal.Flush:
			if err := s.writeDurably(batch); err != nil {
				return err
			}
			batch = nil
		}
	}
	return s.writeBlocks(batch)
}

// checkpoint writes all committed images to their own blocks and empties the journal. After an error of the device it only
// returns EIO: the journal may hold images of a transaction whose commit has failed. commitMu is held.
func (s *FileSystem) checkpoint() error {
	s.mu.RLock()
	failed := s.failed
	s.mu.RUnlock()
	if failed {
		return linux.EIO
	}
	if err := s.carryOut(s.journal.Checkpoint(), nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	for b := range s.cache.blocks.All() {
		if b.logged {
			b.logged = false
			s.cache.settleLocked(b)
		}
	}
	return nil
}

// thaw records that a transaction is committed.
func (s *FileSystem) thaw(t *transaction) {
	s.mu.Lock()
	for _, b := range t.blocks {
		b.logged = s.journal != nil
		if b.tx == t {
			b.tx = nil
		}
		s.cache.settle(b)
	}
	s.committing = nil
	s.mu.Unlock()
	if s.journal != nil && s.journal.Used() > 50 {
		if err := s.checkpoint(); err != nil {
			s.fail(err)
		}
	}
}

// fail makes the file system read-only after an error of its device.
func (s *FileSystem) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly == "" {
		s.failed = true
		s.readOnly = "its device failed: " + err.Error()
		s.report("the file system is read-only from now on: %v", err)
	}
}

// begin marks the file system on the device as in use: until Close it needs recovery or a check.
func (s *FileSystem) begin() error {
	super, err := s.super()
	if err != nil {
		return err
	}
	super = slices.Clone(super)
	now := uint32(s.config.Now().Unix())
	super.SetMountTime(now)
	super.SetWriteTime(now)
	super.SetMounts(super.Mounts() + 1)
	if s.journal != nil {
		super.SetIncompat(super.Incompat() | disk.IncompatRecover)
	} else {
		super.SetState(super.State() &^ disk.StateValid)
	}
	return s.writeSuper(super)
}

// writeSuper writes the superblock directly to its block. No transaction may contain the superblock
// at that time.
func (s *FileSystem) writeSuper(super disk.Super) error {
	super.Seal()
	number, at := s.superPlace()
	b, err := s.buffer(number, disk.Structure{Kind: disk.KindSuper})
	if err != nil {
		return err
	}
	b.data = slices.Clone(b.data)
	copy(b.data[at:], super)
	if err := s.device.write(number, b.data); err != nil {
		return err
	}
	return s.device.io.Flush()
}

// Close makes everything durable and marks the file system as clean. The caller must have stopped
// using it; open handles become invalid.
func (s *FileSystem) Close() error {
	flushed := s.pages.Flush()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	writable := s.readOnly == ""
	s.handles.Clear()
	s.mu.Unlock()
	if !writable {
		select {
		case <-s.ended:
		default:
			close(s.stop)
			<-s.ended
		}
		return nil
	}
	err := s.reapOrphans()
	close(s.stop)
	<-s.ended
	return errors.Join(flushed, err, s.commit(), s.end())
}

// end writes all committed blocks to their places on the device and marks the file system as clean.
func (s *FileSystem) end() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.journal != nil {
		if err := s.checkpoint(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly != "" {
		return linux.EIO
	}
	super, err := s.super()
	if err != nil {
		return err
	}
	super = slices.Clone(super)
	super.SetFreeBlocks(s.freeBlocks)
	super.SetFreeInodes(s.freeInodes)
	super.SetIncompat(super.Incompat() &^ disk.IncompatRecover)
	super.SetState(super.State() | disk.StateValid)
	s.readOnly = "it was closed"
	return s.writeSuper(super)
}
