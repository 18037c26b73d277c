package ext4

import (
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
)

// Orphans are inodes without a name. They exist because they are open, or because freeing their
// blocks takes more than one op. They form a linked list on disk, so that recovery finds them: each
// orphan stores the next one in place of its deletion time. On a file system with an orphan file,
// recovery also reads orphans from there. New orphans are always added to the list, which every
// implementation reads ("Orphan file").

// isOrphan reports whether an inode is in the list.
func (s *FileSystem) isOrphan(ino uint32) bool { return slices.Contains(s.orphans, ino) }

// addOrphan inserts an inode at the head of the list.
func (o *op) addOrphan(ino uint32, i disk.Inode) error {
	super, err := o.super()
	if err != nil {
		return err
	}
	i.SetDeletionTime(super.LastOrphan())
	super.SetLastOrphan(ino)
	before := o.s.orphans
	o.s.orphans = slices.Insert(slices.Clone(before), 0, ino)
	o.undo = append(o.undo, func() { o.s.orphans = before })
	return nil
}

// dropOrphan removes an inode from the list, if it is there.
func (o *op) dropOrphan(ino uint32) error {
	at := slices.Index(o.s.orphans, ino)
	if at < 0 {
		return nil
	}
	i, err := o.inode(ino)
	if err != nil {
		return err
	}
	next := i.DeletionTime()
	i.SetDeletionTime(0)
	if at == 0 {
		super, err := o.super()
		if err != nil {
			return err
		}
		super.SetLastOrphan(next)
	} else {
		before, err := o.inode(o.s.orphans[at-1])
		if err != nil {
			return err
		}
		before.SetDeletionTime(next)
	}
	old := o.s.orphans
	o.s.orphans = slices.Delete(slices.Clone(old), at, at+1)
	o.undo = append(o.undo, func() { o.s.orphans = old })
	return nil
}

// unlinked is called in an op when an inode has lost its last name. If the file is small and not open,
// unlinked frees it at once. Otherwise it returns the file, and the caller must call reapLater after the op.
func (o *op) unlinked(ino uint32, i disk.Inode) (reap node, err error) {
	n := node{o.s, ino, i.Generation()}
	if o.s.isOrphan(ino) {
		return n, nil // its blocks are being freed already
	}
	small := i.Flags()&disk.FlagExtents == 0 && !mapped(i) || i.Flags()&disk.FlagExtents != 0 && disk.Extents(i.Area()).Depth() == 0
	if small && o.s.handles.Count(n.key()) == 0 {
		return node{}, o.erase(ino)
	}
	return n, o.addOrphan(ino, i)
}

// mapped reports whether an inode without extents may have blocks mapped one by one.
func mapped(i disk.Inode) bool {
	kind := fs.Mode(i.Mode()).Type()
	return kind == fs.Regular || kind == fs.Dir || kind == fs.Symlink && i.Size() >= disk.BlockArea
}

// erase frees an inode and its blocks in one op. The file has few blocks.
func (o *op) erase(ino uint32) error {
	i, err := o.inode(ino)
	if err != nil {
		return err
	}
	o.dropDelayed(ino, 0)
	if i.Flags()&disk.FlagExtents != 0 || mapped(i) {
		t, err := o.tree(ino)
		if err == nil {
			err = t.remove(0, disk.MaxLogical, t.freeData)
		}
		if err != nil {
			return err
		}
	}
	if err := o.dropAttributes(i); err != nil {
		return err
	}
	if err := o.dropOrphan(ino); err != nil {
		return err
	}
	isDir := fs.Mode(i.Mode()).Type() == fs.Dir
	i.SetLinks(0)
	i.SetSize(0)
	i.SetDeletionTime(uint32(o.s.config.Now().Unix()))
	return o.freeInode(ino, isDir)
}

// exists reports whether the file was not removed. The caller holds mu.
func (n node) exists() (bool, error) {
	_, err := n.load()
	return err == nil, unlessGone(err)
}

func unlessGone(err error) error {
	if err == linux.ENOENT {
		return nil
	}
	return err
}

// reapable reports whether the file has no name, and is not open. It then cannot get a name (linkat(2)) or be opened any more. The
// caller holds mu exclusively. No call of Open succeeds without mu, because such a file has no cached attributes with links.
func (n node) reapable() (bool, error) {
	i, err := n.load()
	if err != nil || i.Links() > 0 || !n.s.isOrphan(n.ino) || n.s.handles.Count(n.key()) > 0 && !n.s.reaping[n.key()] {
		return false, unlessGone(err)
	}
	delete(n.s.nameable, n.ino)
	n.s.reaping[n.key()] = true
	return true, nil
}

// reap frees a file that has no name and is not open, in several ops. Each op checks this again.
func (n node) reap() error {
	if err := n.truncateSteps(0, n.reapable); err != nil {
		return err
	}
	err := n.s.update(func(o *op) error {
		if is, err := n.reapable(); err != nil || !is {
			return err
		}
		return o.erase(n.ino)
	})
	if err == nil {
		n.s.mu.Lock()
		delete(n.s.reaping, n.key())
		n.s.mu.Unlock()
	}
	return err
}

// truncateSteps frees the blocks after a size. It frees one leaf of the extent tree in each op, so that no op is larger than
// a transaction, and ends early if allowed returns false in an op. The inode is an orphan meanwhile.
func (n node) truncateSteps(size uint64, allowed func() (bool, error)) error {
	s := n.s
	end := (size + uint64(s.geometry.BlockSize) - 1) >> s.geometry.BlockBits
	for more := true; more; {
		err := s.update(func(o *op) error {
			if is, err := allowed(); err != nil || !is {
				more = false
				return err
			}
			t, err := o.tree(n.ino)
			if err != nil {
				return err
			}
			var from uint64
			if from, more, err = t.lastLeaf(end); err != nil {
				return err
			}
			o.dropDelayed(n.ino, end)
			return t.remove(from, disk.MaxLogical, t.freeData)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lastLeaf returns the first block of the last leaf of a tree, or end if that is larger. more is
// true if an earlier leaf has blocks after end.
func (t *tree) lastLeaf(end uint64) (from uint64, more bool, err error) {
	x := t.root()
	for x.Depth() > 0 {
		last := x.Count() - 1
		if last > 0 && uint64(x.Key(last)) > end {
			more = true
		}
		from = uint64(x.Key(last))
		if x, err = t.o.s.node(x.Child(last), x.Depth()-1, owner(t.ino, t.i)); err != nil {
			return 0, false, err
		}
	}
	return max(from, end), more && from > end, nil
}

// reapOrphans processes the orphans that a crash, or an unmount with open files, has left. Files
// without a name are freed. Other files are truncated to their size, to complete an interrupted
// truncate.
func (s *FileSystem) reapOrphans() error {
	s.mu.Lock()
	super, err := s.super()
	var list []uint32
	if err == nil {
		list, err = s.orphanList(super)
	}
	s.orphans = list
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, ino := range slices.Clone(list) {
		if err := s.reapOrphan(ino); err != nil {
			return err
		}
	}
	return s.reapOrphanFile(super)
}

// orphanList reads the list from disk. It stops at the first invalid entry.
func (s *FileSystem) orphanList(super disk.Super) ([]uint32, error) {
	var list []uint32
	seen := map[uint32]bool{}
	for ino := super.LastOrphan(); ino != 0; {
		i, err := s.inode(ino)
		if err != nil || seen[ino] || ino < s.geometry.FirstInode {
			return nil, errDamaged
		}
		seen[ino] = true
		list = append(list, ino)
		ino = i.DeletionTime()
	}
	return list, nil
}

func (s *FileSystem) reapOrphan(ino uint32) error {
	s.mu.RLock()
	i, err := s.inode(ino)
	links, size, generation := uint16(0), uint64(0), uint32(0)
	if err == nil {
		links, size, generation = i.Links(), i.Size(), i.Generation()
	}
	s.mu.RUnlock()
	if err != nil {
		return err
	}
	n := node{s, ino, generation}
	if links == 0 {
		return n.reap()
	}
	if err := n.truncateSteps(size, n.exists); err != nil {
		return err
	}
	return s.update(func(o *op) error { return o.dropOrphan(ino) })
}

// reapOrphanFile empties the orphan file after a crash of a system that uses it.
func (s *FileSystem) reapOrphanFile(super disk.Super) error {
	if super.ROCompat()&disk.ROCompatOrphanPresent == 0 {
		return nil
	}
	file := super.OrphanInode()
	for at, end := uint64(0), uint64(1); at < end; at++ {
		var orphans []uint32
		err := s.update(func(o *op) error {
			i, err := s.inode(file)
			if err != nil {
				return err
			}
			end = min(i.Size()>>s.geometry.BlockBits, s.geometry.Blocks)
			r, err := s.find(file, i, at)
			if err != nil || r.zeros() {
				return err
			}
			sums, own := &s.geometry.Sums, owner(file, i)
			b, err := o.edit(r.physical, disk.Structure{Kind: disk.KindContent})
			if err != nil {
				return err
			}
			if orphans, err = sums.Orphans(b, r.physical, own); err != nil {
				return errDamaged
			}
			for _, ino := range orphans { // moved to the list, so that they are found after another crash
				i, err := o.inode(ino)
				if err != nil {
					return err
				}
				if err := o.addOrphan(ino, i); err != nil {
					return err
				}
			}
			sums.ClearOrphans(b, r.physical, own)
			return nil
		})
		if err != nil {
			return err
		}
		for _, ino := range orphans {
			if err := s.reapOrphan(ino); err != nil {
				return err
			}
		}
	}
	return s.update(func(o *op) error {
		super, err := o.super()
		if err == nil {
			super.SetROCompat(super.ROCompat() &^ disk.ROCompatOrphanPresent)
		}
		return err
	})
}
