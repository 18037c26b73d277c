package memfs

import (
	"loam/abi/linux"
	"loam/fs"
)

// Rename implements fs.Directory.
func (d *directory) Rename(name string, to fs.Directory, newName string, flags fs.RenameFlags) error {
	return d.rename(name, to, newName, flags, nil)
}

// RenameWhiteout implements fs.Whiteouter.
func (d *directory) RenameWhiteout(name string, to fs.Directory, newName string, flags fs.RenameFlags, owner fs.Owner) error {
	return d.rename(name, to, newName, flags, &owner)
}

// rename renames a file. With an owner, it creates a whiteout of this owner at the old name.
func (d *directory) rename(name string, to fs.Directory, newName string, flags fs.RenameFlags, whiteout *fs.Owner) error {
	into, ok := to.(*directory)
	if !ok || into.system != d.system {
		return linux.EXDEV
	}
	d.system.names.Lock()
	defer d.system.names.Unlock()
	from, ok := d.index[name]
	if !ok || into.gone {
		return linux.ENOENT
	}
	old := into.index[newName]
	if err := mayRename(d, from, into, old, flags); err != nil {
		return err
	}
	if old != nil && old.file == from.file {
		return nil // both are names of the same file: rename(2) keeps both names
	}
	if whiteout != nil {
		if err := d.system.takeFile(); err != nil {
			return err
		}
	}
	if flags&fs.RenameExchange != 0 {
		from.file, old.file = old.file, from.file
		from.file.moved(into, d, from.name)
		old.file.moved(d, into, old.name)
		from.file.common().in, from.file.common().as = d, from.name
		old.file.common().in, old.file.common().as = into, old.name
	} else {
		if old != nil {
			into.drop(old)
		}
		f := from.file
		d.leave(from)
		into.enter(newName, f)
		f.moved(d, into, newName)
	}
	if whiteout != nil {
		w := new(special)
		w.init(d.system, fs.CharDevice, *whiteout)
		w.links = 1
		d.enter(name, w)
	}
	d.touch(true)
	into.touch(true)
	return nil
}

// mayRename checks the rules of rename(2). old is nil if the new name does not exist.
func mayRename(d *directory, from *entry, into *directory, old *entry, flags fs.RenameFlags) error {
	dir, isDir := from.file.(*directory)
	if isDir && dir.contains(into) {
		return linux.EINVAL
	}
	exchange := flags&fs.RenameExchange != 0
	if old == nil {
		if exchange {
			return linux.ENOENT
		}
		return nil
	}
	oldDir, oldIsDir := old.file.(*directory)
	switch {
	case flags&fs.RenameNoReplace != 0:
		return linux.EEXIST
	case exchange && oldIsDir && oldDir.contains(d):
		return linux.EINVAL
	case exchange:
		return nil
	case oldIsDir && oldDir.contains(d):
		return linux.ENOTEMPTY // Linux returns this error for directories and other files alike
	case isDir && !oldIsDir:
		return linux.ENOTDIR
	case !isDir && oldIsDir:
		return linux.EISDIR
	case oldIsDir && len(oldDir.index) > 0 && oldDir != dir:
		return linux.ENOTEMPTY
	}
	return nil
}

// contains reports whether sub is d or below it.
func (d *directory) contains(sub *directory) bool {
	for ; sub != d; sub = sub.parent {
		if sub == sub.parent {
			return false
		}
	}
	return true
}

// moved implements inode.
func (n *node) moved(_, _ *directory, _ string) { n.touch(false) }

func (d *directory) moved(from, to *directory, name string) {
	from.links--
	to.links++
	d.parent, d.name = to, name
	d.touch(false)
}
