package memfs

import (
	"slices"
	"sort"

	"loam/abi/linux"
	"loam/fs"
)

// directory contains names. Everything except the attributes of the embedded node is guarded by
// system.names.
type directory struct {
	node
	parent *directory
	name   string // name of the directory in parent, for NameOf
	gone   bool   // the directory was removed: no name can be added
	index  map[string]*entry
	list   []*entry // entries, by ascending cursor
	holes  int      // entries of list whose file is nil
	cursor uint64   // cursor of the newest entry
}

type entry struct {
	name   string
	file   inode // the file; nil after the entry was removed
	cursor uint64
}

func newDirectory(m *FileSystem, mode fs.Mode, owner fs.Owner) *directory {
	d := &directory{index: map[string]*entry{}}
	d.init(m, fs.Dir|mode, owner)
	d.links = 2
	m.files.Add(1)
	return d
}

// Open implements fs.Node. A directory can be listed, but not read.
func (d *directory) Open(fs.Flags) (fs.Handle, error) { return nil, linux.EISDIR }

// Lookup implements fs.Directory.
func (d *directory) Lookup(name string) (fs.Node, error) {
	d.system.names.RLock()
	var file inode
	if e, ok := d.index[name]; ok {
		file = e.file
	}
	d.system.names.RUnlock()
	if file == nil {
		return nil, linux.ENOENT
	}
	return file, nil
}

// Parent implements fs.Directory.
func (d *directory) Parent() fs.Directory {
	d.system.names.RLock()
	defer d.system.names.RUnlock()
	return d.parent
}

// NameOf implements fs.Directory.
func (d *directory) NameOf(child fs.Directory) (string, bool) {
	d.system.names.RLock()
	defer d.system.names.RUnlock()
	c, ok := child.(*directory)
	if !ok || c.parent != d || c.gone || c == d {
		return "", false
	}
	return c.name, true
}

// Name implements fs.Named.
func (n *node) Name() (fs.Directory, string) {
	n.system.names.RLock()
	defer n.system.names.RUnlock()
	if n.in == nil {
		return nil, ""
	}
	return n.in, n.as
}

// Read implements fs.Directory. It collects entries in batches and calls yield without holding a lock.
func (d *directory) Read(cursor uint64, yield func(fs.Entry) bool) error {
	const batch = 256
	entries := make([]fs.Entry, 0, batch)
	for {
		entries = d.after(cursor, entries[:0])
		for _, e := range entries {
			if !yield(e) {
				return nil
			}
			cursor = e.Cursor
		}
		if len(entries) < batch {
			return nil
		}
	}
}

// after fills entries, up to its capacity, with those that follow cursor.
func (d *directory) after(cursor uint64, entries []fs.Entry) []fs.Entry {
	d.system.names.RLock()
	defer d.system.names.RUnlock()
	i := sort.Search(len(d.list), func(i int) bool { return d.list[i].cursor > cursor })
	for _, e := range d.list[i:] {
		if len(entries) == cap(entries) {
			break
		}
		if e.file != nil {
			n := e.file.common()
			entries = append(entries, fs.Entry{Name: e.name, Inode: n.attr.Inode, Type: n.kind(), Cursor: e.cursor})
		}
	}
	return entries
}

// kind returns the type of a file.
func (n *node) kind() fs.Mode {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.attr.Mode.Type()
}

// Make implements fs.Directory.
func (d *directory) Make(name string, mode fs.Mode, owner fs.Owner, device fs.Device) (fs.Node, error) {
	switch mode.Type() {
	case fs.Dir:
		return d.add(name, func() inode { return newDirectory(d.system, mode&fs.Permissions, owner) })
	case fs.Regular:
		return d.add(name, func() inode {
			f := &file{seals: fs.SealSeals} // no seal can be added to a file with a name, as on Linux's tmpfs
			f.init(d.system, mode, owner)
			return f
		})
	}
	return d.add(name, func() inode {
		s := new(special)
		s.init(d.system, mode, owner)
		s.attr.Device = device
		return s
	})
}

// Symlink implements fs.Directory.
func (d *directory) Symlink(name, target string, owner fs.Owner) (fs.Node, error) {
	return d.add(name, func() inode {
		l := &symlink{target: target}
		l.init(d.system, fs.Symlink|0o777, owner)
		l.attr.Size = int64(len(target))
		return l
	})
}

// add creates a file with the function make and enters it under name. Errors: ENOENT, EEXIST, ENOSPC.
func (d *directory) add(name string, make func() inode) (fs.Node, error) {
	m := d.system
	m.names.Lock()
	defer m.names.Unlock()
	if err := d.vacant(name); err != nil {
		return nil, err
	}
	if err := m.takeFile(); err != nil {
		return nil, err
	}
	f := make()
	if sub, ok := f.(*directory); ok {
		m.files.Add(-1) // takeFile and newDirectory have both counted the new directory
		sub.parent, sub.name = d, name
		d.links++
	} else {
		f.common().links = 1
	}
	d.enter(name, f)
	d.touch(true)
	return f, nil
}

func (d *directory) vacant(name string) error {
	if d.gone {
		return linux.ENOENT
	}
	if _, ok := d.index[name]; ok {
		return linux.EEXIST
	}
	return nil
}

// enter adds an entry. The caller holds system.names.
func (d *directory) enter(name string, f inode) {
	d.cursor++
	e := &entry{name, f, d.cursor}
	d.index[name] = e
	d.list = append(d.list, e)
	f.common().in, f.common().as = d, name
}

// leave removes an entry from index and list. The caller holds system.names.
func (d *directory) leave(e *entry) {
	delete(d.index, e.name)
	e.file = nil
	d.holes++
	if d.holes > 16 && d.holes > len(d.list)/2 {
		d.list = slices.DeleteFunc(d.list, func(e *entry) bool { return e.file == nil })
		d.list = slices.Clip(d.list)
		d.holes = 0
	}
}

// Link implements fs.Directory.
func (d *directory) Link(name string, to fs.Node) error {
	f, ok := to.(inode)
	if !ok || f.common().system != d.system {
		return linux.EXDEV
	}
	d.system.names.Lock()
	defer d.system.names.Unlock()
	if err := d.vacant(name); err != nil {
		return err
	}
	n := f.common()
	switch {
	case n.links == 0 && !f.takesName():
		return linux.ENOENT
	case n.links == 1<<32-1:
		return linux.EMLINK
	}
	n.links++
	n.touch(false)
	d.enter(name, f)
	d.touch(true)
	return nil
}

// Unlink implements fs.Directory.
func (d *directory) Unlink(name string) error {
	d.system.names.Lock()
	defer d.system.names.Unlock()
	e, ok := d.index[name]
	if !ok {
		return linux.ENOENT
	}
	if _, ok := e.file.(*directory); ok {
		return linux.EISDIR
	}
	d.drop(e)
	d.touch(true)
	return nil
}

// Rmdir implements fs.Directory.
func (d *directory) Rmdir(name string) error {
	d.system.names.Lock()
	defer d.system.names.Unlock()
	e, ok := d.index[name]
	if !ok {
		return linux.ENOENT
	}
	sub, ok := e.file.(*directory)
	switch {
	case !ok:
		return linux.ENOTDIR
	case len(sub.index) > 0:
		return linux.ENOTEMPTY
	}
	d.drop(e)
	d.touch(true)
	return nil
}

// drop removes an entry and a link of its file. A directory has no links left after that.
func (d *directory) drop(e *entry) {
	f := e.file
	d.leave(e)
	n := f.common()
	if n.in == d && n.as == e.name {
		n.in = nil
	}
	if sub, ok := f.(*directory); ok {
		sub.gone = true
		n.links = 0
		d.links--
	} else {
		n.links--
	}
	n.touch(false)
	if n.links == 0 {
		f.unlinked()
	}
}
