package ext4

import (
	"cmp"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
	"loam/fs/ext4/lookup"
)

// directory is a node that contains names.
type directory struct{ node }

// read returns the names for reading.
func (d directory) read() (*names, error) {
	i, err := d.load()
	if err == nil && i.Links() == 0 {
		err = linux.ENOENT
	}
	if err != nil {
		return nil, err
	}
	return &names{s: d.s, ino: d.ino, i: i}, nil
}

// editNames returns the names for writing. Errors: ENOENT for a directory that has been removed.
func (d directory) editNames(o *op) (*names, error) {
	i, err := d.edit(o)
	if err == nil && i.Links() == 0 {
		err = linux.ENOENT
	}
	if err != nil {
		return nil, err
	}
	return &names{s: d.s, o: o, ino: d.ino, i: i}, nil
}

// Lookup implements fs.Directory.
func (d directory) Lookup(name string) (fs.Node, error) {
	if found, err := d.s.known.Name(d.key(), name); err != lookup.ErrUnknown {
		return found, err
	}
	d.s.mu.RLock()
	defer d.s.mu.RUnlock()
	found, err := d.find(name)
	if name != "." && name != ".." && (err == nil || err == linux.ENOENT) {
		d.s.known.AddName(d.key(), name, found)
	}
	return found, err
}

// find looks a name up in the blocks of the directory. The caller holds mu.
func (d directory) find(name string) (fs.Node, error) {
	n, err := d.read()
	if err != nil {
		return nil, err
	}
	f, err := n.find(name)
	if err != nil {
		return nil, err
	}
	i, err := d.s.inode(f.entry.Inode)
	if err != nil {
		return nil, err
	}
	if i.Links() == 0 {
		return nil, errDamaged
	}
	return d.s.nodeOf(f.entry.Inode, i), nil
}

// Parent implements fs.Directory.
func (d directory) Parent() fs.Directory {
	if d.ino == disk.RootInode {
		return d
	}
	if parent, err := d.Lookup(".."); err == nil {
		if parent, ok := parent.(directory); ok {
			return parent
		}
	}
	return d.s.Root()
}

// NameOf implements fs.Directory.
func (d directory) NameOf(child fs.Directory) (string, bool) {
	c, ok := child.(directory)
	if !ok || c.s != d.s || c == d {
		return "", false
	}
	d.s.mu.RLock()
	defer d.s.mu.RUnlock()
	n, err := d.read()
	if err != nil {
		return "", false
	}
	if _, err := c.load(); err != nil {
		return "", false
	}
	name := ""
	match := func(e disk.DirEntry) {
		if e.Inode == c.ino && string(e.Name) != "." && string(e.Name) != ".." {
			name = string(e.Name)
		}
	}
	if n.i.Flags()&disk.FlagInlineData != 0 {
		all, _ := n.inline()
		for _, e := range all {
			match(e)
		}
	} else if n.each(match) != nil {
		return "", false
	}
	return name, name != ""
}

// Read implements fs.Directory. The entries are collected first, without a lock during yield, so
// yield may call any method of the file system.
func (d directory) Read(cursor uint64, yield func(fs.Entry) bool) error {
	for more := true; more; {
		var entries []fs.Entry
		err := func() (err error) {
			d.s.mu.RLock()
			defer d.s.mu.RUnlock()
			n, err := d.read()
			if err == nil {
				entries, more, err = n.list(cursor)
			}
			return err
		}()
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !yield(e) {
				return nil
			}
			cursor = e.Cursor
		}
	}
	return nil
}

// Make implements fs.Directory.
func (d directory) Make(name string, mode fs.Mode, owner fs.Owner, device fs.Device) (fs.Node, error) {
	return d.make(name, mode, owner, func(o *op, ino uint32, i disk.Inode) error {
		switch mode.Type() {
		case fs.Dir:
			return o.fillDirectory(ino, i, d.ino)
		case fs.CharDevice, fs.BlockDevice:
			i.SetDevice(device.Major, device.Minor)
		}
		return nil
	})
}

// make creates a file and enters its name. The function fill does the part that depends on the type of file.
func (d directory) make(name string, mode fs.Mode, owner fs.Owner, fill func(*op, uint32, disk.Inode) error) (made fs.Node, err error) {
	err = d.s.update(func(o *op) error {
		n, err := d.editNames(o)
		if err != nil {
			return err
		}
		if err := n.vacant(name); err != nil {
			return err
		}
		ino, i, err := o.newInode(d.ino, mode, owner)
		if err != nil {
			return err
		}
		i.SetLinks(1)
		if mode.Type() == fs.Dir {
			i.SetLinks(2)
			n.addLink()
		}
		if err := fill(o, ino, i); err != nil {
			return err
		}
		made = d.s.nodeOf(ino, i)
		o.touch(n.i, true)
		return n.add(name, ino, disk.TypeOf(uint16(mode)))
	})
	return made, err
}

// vacant returns EEXIST if the name exists. No op has changed the name since the cache of names learned about it.
func (n *names) vacant(name string) error {
	_, err := n.s.known.Name(n.key(), name)
	if err == lookup.ErrUnknown {
		_, err = n.find(name)
	}
	switch err {
	case linux.ENOENT:
		return nil
	case nil:
		return linux.EEXIST
	default:
		return err
	}
}

// addLink adds a link to the directory's count, for a new subdirectory. If the count exceeds the
// maximum of an inode, it becomes 1.
func (n *names) addLink() {
	switch links := n.i.Links(); {
	case links == 1:
	case links >= disk.MaxLinks-1:
		n.i.SetLinks(1)
	default:
		n.i.SetLinks(links + 1)
	}
}

// dropLink subtracts a link.
func (n *names) dropLink() {
	if links := n.i.Links(); links > 2 {
		n.i.SetLinks(links - 1)
	}
}

// fillDirectory writes the first block of a directory.
func (o *op) fillDirectory(ino uint32, i disk.Inode, parent uint32) error {
	n := &names{s: o.s, o: o, ino: ino, i: i}
	_, b, err := n.grow(disk.KindDirectory)
	if err == nil {
		o.s.geometry.InitFirst(b, ino, parent)
	}
	return err
}

// Symlink implements fs.Directory.
func (d directory) Symlink(name, target string, owner fs.Owner) (fs.Node, error) {
	if len(target) >= d.s.geometry.BlockSize {
		return nil, linux.ENAMETOOLONG
	}
	return d.make(name, fs.Symlink|0o777, owner, func(o *op, ino uint32, i disk.Inode) error {
		i.SetSize(uint64(len(target)))
		if len(target) < disk.BlockArea {
			copy(i.Area(), target)
			return nil
		}
		i.SetFlags(i.Flags() | disk.FlagExtents)
		disk.InitExtents(i.Area(), 0)
		t, err := o.tree(ino)
		if err != nil {
			return err
		}
		number, _, err := t.fill(0, 1, false)
		if err == nil {
			copy(o.make(number, disk.Structure{Kind: disk.KindContent}), target)
		}
		return err
	})
}

// Link implements fs.Directory.
func (d directory) Link(name string, to fs.Node) error {
	target, ok := nodeIn(to)
	if !ok || target.s != d.s {
		return linux.EXDEV
	}
	return d.s.update(func(o *op) error {
		n, err := d.editNames(o)
		if err != nil {
			return err
		}
		if err := n.vacant(name); err != nil {
			return err
		}
		i, err := target.edit(o)
		if err != nil {
			return err
		}
		switch {
		case i.Links() == 0 && !d.s.nameable[target.ino]:
			return linux.ENOENT
		case i.Links() >= disk.MaxLinks:
			return linux.EMLINK
		case i.Links() == 0:
			if err := o.dropOrphan(target.ino); err != nil {
				return err
			}
			delete(d.s.nameable, target.ino)
			o.undo = append(o.undo, func() { d.s.nameable[target.ino] = true })
		}
		i.SetLinks(i.Links() + 1)
		o.touch(i, false)
		o.touch(n.i, true)
		return n.add(name, target.ino, disk.TypeOf(i.Mode()))
	})
}

// nodeIn returns the node of a file in this package that is not a directory.
func nodeIn(n fs.Node) (node, bool) {
	switch n := n.(type) {
	case regular:
		return n.node, true
	case link:
		return n.node, true
	case special:
		return n.node, true
	}
	return node{}, false
}

// drop removes a name. f reduces the link count of its inode, and returns the file if reapLater
// must be called for it.
func (d directory) drop(name string, f func(o *op, n *names, ino uint32) (reap node, err error)) error {
	reap := node{}
	err := d.s.update(func(o *op) error {
		n, err := d.editNames(o)
		if err != nil {
			return err
		}
		at, err := n.find(name)
		if err != nil {
			return err
		}
		if err := n.remove(at); err != nil {
			return err
		}
		o.touch(n.i, true)
		reap, err = f(o, n, at.entry.Inode)
		return err
	})
	return reap.reapLater(err)
}

// Unlink implements fs.Directory.
func (d directory) Unlink(name string) error {
	return d.drop(name, func(o *op, _ *names, ino uint32) (node, error) {
		i, err := o.inode(ino)
		if err == nil && isDir(i) {
			err = linux.EISDIR
		}
		if err != nil {
			return node{}, err
		}
		return o.dropName(ino, i)
	})
}

// Rmdir implements fs.Directory.
func (d directory) Rmdir(name string) error {
	return d.drop(name, func(_ *op, n *names, ino uint32) (node, error) { return n.dropDirectory(ino) })
}

// dropName reduces the link count of an inode by one. It returns the file if reapLater must be
// called after the op.
func (o *op) dropName(ino uint32, i disk.Inode) (reap node, err error) {
	if i.Links() == 0 {
		return node{}, errDamaged
	}
	i.SetLinks(i.Links() - 1)
	o.touch(i, false)
	if i.Links() > 0 {
		return node{}, nil
	}
	return o.unlinked(ino, i)
}

// reapLater frees a file that a successful op left without a name, unless it is open. The zero node is none.
func (n node) reapLater(err error) error {
	if err != nil || n.s == nil || n.s.handles.Count(n.key()) > 0 {
		return err
	}
	return n.reap()
}

// dropDirectory removes an empty directory after its name was removed here. Errors: ENOTDIR,
// ENOTEMPTY.
func (n *names) dropDirectory(ino uint32) (reap node, err error) {
	i, err := n.o.inode(ino)
	if err != nil {
		return node{}, err
	}
	if fs.Mode(i.Mode()).Type() != fs.Dir {
		return node{}, linux.ENOTDIR
	}
	sub := &names{s: n.s, o: n.o, ino: ino, i: i}
	if empty, err := sub.empty(); err != nil || !empty {
		return node{}, cmp.Or[error](err, linux.ENOTEMPTY)
	}
	n.dropLink()
	i.SetLinks(0)
	n.o.touch(i, false)
	return n.o.unlinked(ino, i)
}
