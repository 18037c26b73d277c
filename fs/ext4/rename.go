package ext4

import (
	"cmp"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
)

// moving is the state of a rename: the old name, and the target that it may replace.
type moving struct {
	o          *op
	from, into *names
	name, new  string
	old        found // location of the old name
	target     found // location of the new name
	there      bool  // the new name exists
	i          disk.Inode
	thereI     disk.Inode
}

// Rename implements fs.Directory.
func (d directory) Rename(name string, to fs.Directory, newName string, flags fs.RenameFlags) error {
	return d.rename(name, to, newName, flags, nil)
}

// RenameWhiteout implements fs.Whiteouter.
func (d directory) RenameWhiteout(name string, to fs.Directory, newName string, flags fs.RenameFlags, owner fs.Owner) error {
	return d.rename(name, to, newName, flags, &owner)
}

// rename renames a file. With an owner, it creates a whiteout of this owner at the old name.
func (d directory) rename(name string, to fs.Directory, newName string, flags fs.RenameFlags, whiteout *fs.Owner) error {
	into, ok := to.(directory)
	if !ok || into.s != d.s {
		return linux.EXDEV
	}
	reap := node{}
	err := d.s.update(func(o *op) error {
		reap = node{}
		m, err := o.moving(d, name, into, newName)
		if err != nil {
			return err
		}
		if err := m.allowed(flags); err != nil {
			return err
		}
		if m.there && m.target.entry.Inode == m.old.entry.Inode {
			return nil // both names refer to the same file: rename(2) leaves both names
		}
		if flags&fs.RenameExchange != 0 {
			err = m.exchange()
		} else {
			reap, err = m.move(whiteout)
		}
		o.touch(m.from.i, true)
		o.touch(m.into.i, true)
		return err
	})
	return reap.reapLater(err)
}

func (o *op) moving(d directory, name string, into directory, newName string) (*moving, error) {
	m := &moving{o: o, name: name, new: newName}
	var err error
	if m.from, err = d.editNames(o); err != nil {
		return nil, err
	}
	m.into = m.from
	if into != d {
		if m.into, err = into.editNames(o); err != nil {
			return nil, err
		}
	}
	if m.old, err = m.from.find(name); err != nil {
		return nil, err
	}
	if m.i, err = o.inode(m.old.entry.Inode); err != nil {
		return nil, err
	}
	switch m.target, err = m.into.find(newName); err {
	case linux.ENOENT:
		return m, nil
	case nil:
		m.there = true
		m.thereI, err = o.inode(m.target.entry.Inode)
	}
	return m, err
}

func isDir(i disk.Inode) bool { return fs.Mode(i.Mode()).Type() == fs.Dir }

// allowed returns an error if rename(2) forbids the operation.
func (m *moving) allowed(flags fs.RenameFlags) error {
	moves := isDir(m.i)
	if moves {
		if inside, err := m.contains(m.old.entry.Inode, m.into.ino); err != nil || inside {
			return cmp.Or[error](err, linux.EINVAL)
		}
	}
	exchange := flags&fs.RenameExchange != 0
	if !m.there {
		if exchange {
			return linux.ENOENT
		}
		return nil
	}
	replaces := isDir(m.thereI)
	above := false
	if replaces {
		var err error
		if above, err = m.contains(m.target.entry.Inode, m.from.ino); err != nil {
			return err
		}
	}
	switch {
	case flags&fs.RenameNoReplace != 0:
		return linux.EEXIST
	case exchange && above:
		return linux.EINVAL
	case exchange:
		return nil
	case above:
		return linux.ENOTEMPTY // Linux returns this error for directories and other files alike
	case moves && !replaces:
		return linux.ENOTDIR
	case !moves && replaces:
		return linux.EISDIR
	}
	return nil
}

// contains reports whether directory sub is dir or below it.
func (m *moving) contains(dir, sub uint32) (bool, error) {
	for range 1 << 16 { // the tree may be damaged and have cycles
		if sub == dir {
			return true, nil
		}
		if sub == disk.RootInode {
			return false, nil
		}
		i, err := m.o.s.inode(sub)
		if err != nil {
			return false, err
		}
		f, err := (&names{s: m.o.s, ino: sub, i: i}).find("..")
		if err != nil {
			return false, err
		}
		sub = f.entry.Inode
	}
	return false, errDamaged
}

// reparent makes the ".." of a moved directory refer to its new parent.
func (m *moving) reparent(ino uint32, i disk.Inode, from, to *names) error {
	if from == to || !isDir(i) {
		return nil
	}
	n := &names{s: m.o.s, o: m.o, ino: ino, i: i}
	f, err := n.find("..")
	if err != nil {
		return err
	}
	from.dropLink()
	to.addLink()
	return n.relink(f, to.ino, disk.TypeDirectory)
}

func (m *moving) exchange() error {
	a, b := m.old.entry.Inode, m.target.entry.Inode
	if err := m.from.relink(m.old, b, disk.TypeOf(m.thereI.Mode())); err != nil {
		return err
	}
	if err := m.into.relink(m.target, a, disk.TypeOf(m.i.Mode())); err != nil {
		return err
	}
	m.o.touch(m.i, false)
	m.o.touch(m.thereI, false)
	if err := m.reparent(a, m.i, m.from, m.into); err != nil {
		return err
	}
	return m.reparent(b, m.thereI, m.into, m.from)
}

// move enters the new name, or changes its inode, and removes the old name or makes it the name of a new whiteout.
func (m *moving) move(whiteout *fs.Owner) (reap node, err error) {
	kind := disk.TypeOf(m.i.Mode())
	if m.there {
		if err := m.into.relink(m.target, m.old.entry.Inode, kind); err != nil {
			return node{}, err
		}
		if isDir(m.thereI) {
			reap, err = m.into.dropDirectory(m.target.entry.Inode)
		} else {
			reap, err = m.o.dropName(m.target.entry.Inode, m.thereI)
		}
	} else {
		err = m.into.add(m.new, m.old.entry.Inode, kind)
	}
	if err != nil {
		return node{}, err
	}
	m.o.touch(m.i, false)
	if m.old, err = m.from.find(m.name); err != nil { // the name may have moved when a block was split
		return node{}, err
	}
	if whiteout != nil {
		err = m.hide(*whiteout)
	} else {
		err = m.from.remove(m.old)
	}
	if err != nil {
		return node{}, err
	}
	return reap, m.reparent(m.old.entry.Inode, m.i, m.from, m.into)
}

// hide makes the old name the name of a new whiteout.
func (m *moving) hide(owner fs.Owner) error {
	ino, i, err := m.o.newInode(m.from.ino, fs.CharDevice, owner)
	if err != nil {
		return err
	}
	i.SetLinks(1)
	return m.from.relink(m.old, ino, disk.TypeOf(i.Mode()))
}
