package ext4

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
	"loam/fs/ext4/lookup"
)

// node is a file of any type. The generation distinguishes it from a later file with the same inode
// number.
type node struct {
	s          *FileSystem
	ino        uint32
	generation uint32
}

// fileKey identifies a file.
type fileKey = lookup.File

func (n node) key() fileKey { return fileKey{Inode: n.ino, Generation: n.generation} }

// Files of other types than directories. Values are comparable: equal values are the same file.
type (
	regular struct{ node }
	link    struct{ node }
	special struct{ node }
)

// nodeOf returns the node of an inode, of the Go type for its file type.
func (s *FileSystem) nodeOf(ino uint32, i disk.Inode) fs.Node {
	n := node{s, ino, i.Generation()}
	switch fs.Mode(i.Mode()).Type() {
	case fs.Dir:
		return directory{n}
	case fs.Regular:
		return regular{n}
	case fs.Symlink:
		return link{n}
	}
	return special{n}
}

// load returns the inode for reading. Errors: ENOENT if the file was removed.
func (n node) load() (disk.Inode, error) {
	i, err := n.s.inode(n.ino)
	if err == nil && (i.Generation() != n.generation || i.Mode() == 0 || i.Links() == 0 && n.ino >= n.s.geometry.FirstInode && !n.s.isOrphan(n.ino)) {
		return nil, linux.ENOENT
	}
	return i, err
}

// edit returns the inode for writing.
func (n node) edit(o *op) (disk.Inode, error) {
	if _, err := n.load(); err != nil {
		return nil, err
	}
	return o.inode(n.ino)
}

// Attr implements fs.Node. A removed file has zero links.
func (n node) Attr() fs.Attr { return n.attr(0) }

func (n node) attr(kind fs.Mode) fs.Attr {
	if a, known := n.s.known.Attr(n.key()); known {
		return a
	}
	n.s.mu.RLock()
	defer n.s.mu.RUnlock()
	i, err := n.load()
	if err != nil {
		return fs.Attr{Inode: uint64(n.ino), Mode: kind}
	}
	return n.s.attr(n.ino, i)
}

// Attr implements fs.Node.
func (d directory) Attr() fs.Attr { return d.attr(fs.Dir) }
func (r regular) Attr() fs.Attr   { return r.attr(fs.Regular) }
func (l link) Attr() fs.Attr      { return l.attr(fs.Symlink) }

// Open implements fs.Node.
func (r regular) Open(flags fs.Flags) (fs.Handle, error) {
	h := handle{n: r.node, sync: flags & linux.O_SYNC}
	if r.s.handles.Open(r.key(), &r.s.known) {
		return h, nil
	}
	r.s.mu.RLock()
	_, err := r.load()
	if r.s.reaping[r.key()] {
		err = linux.ENOENT
	}
	r.s.mu.RUnlock()
	if err != nil {
		r.s.handles.Add(r.key(), -1)
		return nil, err
	}
	return h, nil
}
func (d directory) Open(fs.Flags) (fs.Handle, error) { return nil, linux.EISDIR }
func (l link) Open(fs.Flags) (fs.Handle, error)      { return nil, linux.ELOOP }
func (s special) Open(fs.Flags) (fs.Handle, error)   { return nil, linux.ENXIO }

// InUse implements fs.Lasting.
func (r regular) InUse() bool { return r.s.handles.Count(r.key()) > 0 }

// Change implements fs.Node.
func (n node) Change(c fs.Change) error {
	if c.Fields&fs.SetSize != 0 {
		return linux.EINVAL
	}
	return n.s.update(func(o *op) error {
		_, err := n.load()
		if err != nil {
			return err
		}
		i, err := o.attributesOf(n.ino)
		if err == nil {
			err = o.change(n.ino, i, c)
		}
		return err
	})
}

// Change implements fs.Node.
func (r regular) Change(c fs.Change) error {
	if c.Fields&fs.SetSize == 0 {
		return r.node.Change(c)
	}
	switch {
	case c.Size < 0:
		return linux.EINVAL
	case c.Size > r.s.maxSize():
		return linux.EFBIG
	}
	return r.s.pages.Resize(r.key(), c.Size, func() error { return r.resize(c) })
}

// resize changes attributes and the size.
func (r regular) resize(c fs.Change) error {
	steps := false
	err := r.s.update(func(o *op) error {
		i, err := r.edit(o)
		if err != nil {
			return err
		}
		if steps, err = o.resize(r.ino, i, uint64(c.Size)); err != nil {
			return err
		}
		o.touch(i, true)
		return o.change(r.ino, i, c)
	})
	if err != nil || !steps {
		return err
	}
	if err := r.truncateSteps(uint64(c.Size), r.exists); err != nil {
		return err
	}
	return r.s.update(func(o *op) error {
		if is, err := r.exists(); err != nil || !is {
			return err
		}
		i, err := r.edit(o)
		if err != nil || i.Links() == 0 {
			return err
		}
		return o.dropOrphan(r.ino)
	})
}

// resize changes the size of a file. If steps is true, blocks remain to be freed: the inode is an
// orphan, and the caller must call truncateSteps.
func (o *op) resize(ino uint32, i disk.Inode, size uint64) (steps bool, err error) {
	s := o.s
	old := i.Size()
	i.SetSize(size)
	if size >= old {
		return false, nil
	}
	t, err := o.tree(ino)
	if err != nil {
		return false, err
	}
	if err := t.clearRest(size); err != nil {
		return false, err
	}
	end := (size + uint64(s.geometry.BlockSize) - 1) >> s.geometry.BlockBits
	o.dropDelayed(ino, end)
	if t.root().Depth() > 0 {
		if s.isOrphan(ino) {
			return true, nil // the file has no name and is open
		}
		return true, o.addOrphan(ino, i)
	}
	return false, t.remove(end, disk.MaxLogical, t.freeData)
}

// clearRest clears the part of the last block after an offset, so that it reads as zeros if the
// file grows again.
func (t *tree) clearRest(offset uint64) error {
	s := t.o.s
	within := int(offset & uint64(s.geometry.BlockSize-1))
	if within == 0 {
		return nil
	}
	return t.clear(offset>>s.geometry.BlockBits, within, s.geometry.BlockSize)
}

// clear writes zeros to part of a block.
func (t *tree) clear(logical uint64, from, to int) error {
	r, err := t.o.s.locate(t.ino, t.i, logical)
	if err != nil || r.zeros() {
		return err
	}
	b, err := t.o.s.content(r.physical)
	if err != nil {
		return err
	}
	t.o.content = append(t.o.content, change{number: r.physical, inode: t.ino, at: from, data: make([]byte, to-from), b: b})
	return nil
}

// change changes attributes other than the size. Errors: ENOSPC.
func (o *op) change(ino uint32, i disk.Inode, c fs.Change) error {
	if c.Fields&(fs.SetMode|fs.SetAccessList|fs.SetDefaultList) != 0 {
		if err := o.protect(ino, i, c); err != nil {
			return err
		}
	}
	if c.Fields&fs.SetOwner != 0 {
		i.SetUID(c.UID)
	}
	if c.Fields&fs.SetGroup != 0 {
		i.SetGID(c.GID)
	}
	set := func(field fs.Fields, f disk.TimeField, t fs.Time) {
		if c.Now&field != 0 {
			t = o.s.now()
		}
		if c.Fields&field != 0 {
			setTime(i, f, t)
		}
	}
	set(fs.SetAccess, disk.AccessTime, c.Access)
	set(fs.SetModify, disk.ModifyTime, c.Modify)
	o.touch(i, false)
	return nil
}

// Target implements fs.Link.
func (l link) Target() (string, error) {
	s := l.s
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, err := l.load()
	if err != nil {
		return "", err
	}
	switch {
	case i.Flags()&disk.FlagInlineData != 0:
		b, err := i.InlineData()
		if err != nil {
			return "", errDamaged
		}
		return string(b), nil
	case i.FastLink(s.geometry):
		return string(i.Area()[:i.Size()]), nil
	case i.Size() > uint64(s.geometry.BlockSize):
		return "", errDamaged
	}
	r, err := s.find(l.ino, i, 0)
	if err != nil {
		return "", err
	}
	if r.zeros() {
		return "", errDamaged
	}
	b, err := s.content(r.physical)
	if err != nil {
		return "", err
	}
	return string(b.data[:i.Size()]), nil
}
