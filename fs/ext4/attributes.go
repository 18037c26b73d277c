package ext4

import (
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/acl"
	"loam/fs/ext4/disk"
)

// Extended attributes are stored in the inode as far as they fit, and in one more block. Linux may
// share such a block between files; a shared block is copied before it is changed.

// attributes returns all attributes of an inode.
func (s *FileSystem) attributes(i disk.Inode) ([]disk.Attribute, error) {
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
func (o *op) setAttributes(ino uint32, i disk.Inode, all []disk.Attribute) error {
	g := o.s.geometry
	area := i.AttributeArea()
	var inside, outside []disk.Attribute
	room := 0
	if area != nil {
		room = disk.AttributeRoom(area, false)
	}
	for _, a := range all {
		if size := disk.AttributeSize(a); size <= room {
			inside, room = append(inside, a), room-size
		} else {
			outside = append(outside, a)
		}
	}
	if area != nil {
		disk.WriteAttributes(area, false, inside)
	}
	size := 0
	for _, a := range outside {
		size += disk.AttributeSize(a)
	}
	switch {
	case size > g.BlockSize-36:
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

// attributeBlock returns the block of an inode's attributes for writing, after making a copy if it
// was shared.
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

// listed reports whether Xattrs returns an attribute. Internal attributes of the format are not listed.
func listed(name string) bool { return name != "system.data" && name != "" }

// Xattr implements fs.Attributed.
func (n node) Xattr(name string) ([]byte, error) {
	n.s.mu.RLock()
	defer n.s.mu.RUnlock()
	i, err := n.load()
	if err != nil {
		return nil, err
	}
	all, err := n.s.attributes(i)
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(all, func(a disk.Attribute) bool { return a.Name == name }); at >= 0 && name != "system.data" {
		return acl.Decode(name, all[at].Value)
	}
	return nil, linux.ENODATA
}

// Xattrs implements fs.Attributed.
func (n node) Xattrs() []string {
	n.s.mu.RLock()
	defer n.s.mu.RUnlock()
	i, err := n.load()
	if err != nil {
		return nil
	}
	all, err := n.s.attributes(i)
	if err != nil {
		return nil
	}
	var list []string
	for _, a := range all {
		if listed(a.Name) {
			list = append(list, a.Name)
		}
	}
	slices.Sort(list)
	return list
}

// SetXattr implements fs.Attributed.
func (n node) SetXattr(name string, value []byte, flags fs.XattrFlags) error {
	value, err := acl.Encode(name, value)
	if err != nil {
		return err
	}
	if len(value) > disk.MaxAttribute {
		return linux.ENOSPC
	}
	return n.changeXattrs(func(all []disk.Attribute, at int) ([]disk.Attribute, error) {
		switch {
		case at >= 0 && flags&fs.XattrCreate != 0:
			return nil, linux.EEXIST
		case at < 0 && flags&fs.XattrReplace != 0:
			return nil, linux.ENODATA
		case at >= 0:
			all = slices.Delete(all, at, at+1)
		}
		return append(all, disk.Attribute{Name: name, Value: value}), nil
	}, name)
}

// RemoveXattr implements fs.Attributed.
func (n node) RemoveXattr(name string) error {
	return n.changeXattrs(func(all []disk.Attribute, at int) ([]disk.Attribute, error) {
		if at < 0 {
			return nil, linux.ENODATA
		}
		return slices.Delete(all, at, at+1), nil
	}, name)
}

// changeXattrs replaces the attributes of a file by the result of f. f gets the list, and the index
// of name in it or -1.
func (n node) changeXattrs(f func([]disk.Attribute, int) ([]disk.Attribute, error), name string) error {
	if name == "" || len(name) > fs.MaxName+len("user.") || name == "system.data" {
		return linux.EINVAL
	}
	return n.s.update(func(o *op) error {
		i, err := n.edit(o)
		if err != nil {
			return err
		}
		all, err := n.s.attributes(i)
		if err != nil {
			return err
		}
		all, err = f(all, slices.IndexFunc(all, func(a disk.Attribute) bool { return a.Name == name }))
		if err != nil {
			return err
		}
		o.touch(i, false)
		return o.setAttributes(n.ino, i, all)
	})
}

// inherit copies the default ACL of a directory to a new file in it. A new directory also gets it
// as its own default ACL.
func (o *op) inherit(parent, i disk.Inode) error {
	all, err := o.s.attributes(parent)
	kind := fs.Mode(i.Mode()).Type()
	at := slices.IndexFunc(all, func(a disk.Attribute) bool { return a.Name == acl.Default })
	if err != nil || at < 0 || kind == fs.Symlink {
		return err
	}
	list, err := acl.Parse(all[at].Value)
	if err != nil {
		return errDamaged
	}
	i.SetMode(list.Restrict(i.Mode()))
	given := []disk.Attribute{{Name: acl.Access, Value: list.Bytes()}}
	if kind == fs.Dir {
		given = append(given, all[at])
	}
	return o.setAttributes(0, i, given)
}

// changeMode updates the ACL after chmod(2).
func (o *op) changeMode(i disk.Inode) {
	all, err := o.s.attributes(i)
	at := slices.IndexFunc(all, func(a disk.Attribute) bool { return a.Name == acl.Access })
	if err != nil || at < 0 {
		return
	}
	if list, err := acl.Parse(all[at].Value); err == nil {
		list.SetMode(i.Mode())
		all[at].Value = list.Bytes()
		o.setAttributes(0, i, all) // this cannot fail, because the length of the attributes is unchanged
	}
}
