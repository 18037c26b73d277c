package ext4

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/fs/acl"
	"loam/fs/ext4/disk"
	"loam/fs/ext4/xattr"
)

// Extended attributes are stored in the inode as far as they fit, and in one more block. Linux may
// share such a block between files; a shared block is copied before it is changed.

// attributes returns all attributes of an inode.
func (s *FileSystem) attributes(i disk.Inode) (xattr.List, error) {
	all, err := disk.ReadAttributes(i.AttributeArea(), false)
	if err != nil {
		return nil, errDamaged
	}
	number := i.AttrBlock()
	if number == 0 {
		return all, nil
	}
	b, err := s.image(number, disk.Structure{Kind: disk.KindAttributes})
	if err != nil {
		return nil, err
	}
	more, err := disk.ReadAttributes(b, true)
	if err != nil {
		return nil, errDamaged
	}
	return append(all, more...), nil
}

// setAttributes replaces all attributes of an inode. Errors: ENOSPC.
func (o *op) setAttributes(ino uint32, i disk.Inode, all xattr.List) error {
	outside, size := all.Place(i.AttributeArea())
	switch {
	case size > o.s.geometry.BlockSize-36:
		return linux.ENOSPC
	case len(outside) == 0:
		return o.dropAttributes(i)
	}
	b, err := o.attributeBlock(ino, i)
	if err == nil {
		disk.WriteAttributes(b, true, outside)
	}
	return err
}

// attributeBlock returns the block of an inode's attributes for writing, after making a copy if it was shared.
func (o *op) attributeBlock(ino uint32, i disk.Inode) ([]byte, error) {
	g := o.s.geometry
	number := i.AttrBlock()
	if number != 0 {
		b, err := o.edit(number, disk.Structure{Kind: disk.KindAttributes})
		if err != nil || disk.SharedAttributes(b) <= 1 {
			return b, err
		}
		if err := o.dropAttributes(i); err != nil {
			return nil, err
		}
	}
	var err error
	if number, _, err = o.allocate(o.s.goalOf(ino), 1); err != nil {
		return nil, err
	}
	i.SetAttrBlock(number)
	i.SetSectors(g, i.Sectors(g)+uint64(g.BlockSize/512))
	return o.make(number, disk.Structure{Kind: disk.KindAttributes}), nil
}

// dropAttributes frees the block of an inode's attributes, if there is one.
func (o *op) dropAttributes(i disk.Inode) error {
	g := o.s.geometry
	number := i.AttrBlock()
	if number == 0 {
		return nil
	}
	b, err := o.edit(number, disk.Structure{Kind: disk.KindAttributes})
	if err != nil {
		return err
	}
	i.SetAttrBlock(0)
	i.SetSectors(g, i.Sectors(g)-min(i.Sectors(g), uint64(g.BlockSize/512)))
	if n := disk.SharedAttributes(b); n > 1 {
		disk.SetSharedAttributes(b, n-1)
		return nil
	}
	return o.free(number, 1, true)
}

// stored returns all attributes of a file.
func (n node) stored() (xattr.List, error) {
	n.s.mu.RLock()
	defer n.s.mu.RUnlock()
	i, err := n.load()
	if err != nil {
		return nil, err
	}
	return n.s.attributes(i)
}

// Xattr implements fs.Attributed.
func (n node) Xattr(name string) ([]byte, error) {
	all, err := n.stored()
	if err != nil {
		return nil, err
	}
	return all.Value(name)
}

// Xattrs implements fs.Attributed.
func (n node) Xattrs() []string {
	all, _ := n.stored()
	return all.Names()
}

// SetXattr implements fs.Attributed.
func (n node) SetXattr(name string, value []byte, flags fs.XattrFlags) error {
	return n.changeXattrs(func(all xattr.List) (xattr.List, error) { return all.Set(name, value, flags) })
}

// RemoveXattr implements fs.Attributed.
func (n node) RemoveXattr(name string) error {
	return n.changeXattrs(func(all xattr.List) (xattr.List, error) { return all.Remove(name) })
}

// changeXattrs replaces the attributes of a file by the result of f.
func (n node) changeXattrs(f func(xattr.List) (xattr.List, error)) error {
	return n.s.update(func(o *op) error {
		i, err := n.edit(o)
		if err != nil {
			return err
		}
		o.touch(i, false)
		return o.replaceAttributes(n.ino, i, f)
	})
}

func (o *op) replaceAttributes(ino uint32, i disk.Inode, f func(xattr.List) (xattr.List, error)) error {
	all, err := o.s.attributes(i)
	if err == nil {
		all, err = f(all)
	}
	if err != nil {
		return err
	}
	return o.setAttributes(ino, i, all)
}

// acl returns the access control lists of an inode. With an error, the lists are unreadable.
func (s *FileSystem) acl(i disk.Inode) (acl.Set, error) {
	all, err := s.attributes(i)
	if err != nil {
		return acl.Lists{Access: acl.Unreadable, Default: acl.Unreadable}.Set(), err
	}
	return all.ACL(), nil
}

// setACL replaces the access control lists of an inode. Errors: ENOSPC.
func (o *op) setACL(ino uint32, i disk.Inode, set acl.Set) error {
	return o.replaceAttributes(ino, i, func(all xattr.List) (xattr.List, error) { return all.SetACL(set), nil })
}

// protect sets the mode and the access control lists of an inode as a change demands. Errors: ENOSPC, EIO.
func (o *op) protect(ino uint32, i disk.Inode, c fs.Change) error {
	old, err := o.s.acl(i)
	if err != nil && err != errDamaged {
		return err
	}
	mode, changed := c.Protection(fs.Mode(i.Mode()), old)
	i.SetMode(uint16(mode))
	if changed == old {
		return nil
	}
	return o.setACL(ino, i, changed)
}

// StoresLists implements fs.Controlled.
func (n node) StoresLists() {}
