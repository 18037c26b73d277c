// Package xattr has the extended attributes of a file on ext4 as a list: finding and changing them, and the access control lists
// among them. It does no I/O.
package xattr

import (
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/acl"
	"loam/fs/ext4/disk"
)

// List has all attributes of a file, in the order in which they are stored.
type List []disk.Attribute

func (l List) index(name string) int {
	return slices.IndexFunc(l, func(a disk.Attribute) bool { return a.Name == name })
}

// visible reports whether a program may use an attribute. The others are internal to the format, or access control lists: see ACL.
func visible(name string) bool { return name != "" && name != "system.data" && !acl.Is(name) }

// Value returns the value of an attribute. Errors: ENODATA.
func (l List) Value(name string) ([]byte, error) {
	if at := l.index(name); at >= 0 && visible(name) {
		return l[at].Value, nil
	}
	return nil, linux.ENODATA
}

// Names returns the names of the attributes that programs may use, sorted.
func (l List) Names() []string {
	var names []string
	for _, a := range l {
		if visible(a.Name) {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return names
}

func valid(name string) bool { return visible(name) && len(name) <= fs.MaxName+len("user.") }

// Set returns the list with another value of an attribute. It may modify l. Errors: EINVAL for the name; EEXIST and ENODATA as flags
// demand; ENOSPC for a value that is too long.
func (l List) Set(name string, value []byte, flags fs.XattrFlags) (List, error) {
	at := l.index(name)
	switch {
	case !valid(name):
		return nil, linux.EINVAL
	case len(value) > disk.MaxAttribute:
		return nil, linux.ENOSPC
	case at >= 0 && flags&fs.XattrCreate != 0:
		return nil, linux.EEXIST
	case at < 0 && flags&fs.XattrReplace != 0:
		return nil, linux.ENODATA
	case at >= 0:
		l = slices.Delete(l, at, at+1)
	}
	return append(l, disk.Attribute{Name: name, Value: value}), nil
}

// Remove returns the list without an attribute. It may modify l. Errors: EINVAL for the name; ENODATA.
func (l List) Remove(name string) (List, error) {
	at := l.index(name)
	switch {
	case !valid(name):
		return nil, linux.EINVAL
	case at < 0:
		return nil, linux.ENODATA
	}
	return slices.Delete(l, at, at+1), nil
}

// ACL returns the access control lists.
func (l List) ACL() acl.Set {
	var lists acl.Lists
	for _, a := range l {
		switch a.Name {
		case acl.Access:
			lists.Access = acl.FromDisk(a.Value)
		case acl.Default:
			lists.Default = acl.FromDisk(a.Value)
		}
	}
	return lists.Set()
}

// SetACL returns the list with other access control lists. A list that is unreadable stays as it is stored. SetACL may modify l.
func (l List) SetACL(set acl.Set) List {
	for _, name := range [...]string{acl.Access, acl.Default} {
		list, at := set.Lists().Named(name), l.index(name)
		switch {
		case list == acl.Unreadable:
		case list == "" && at >= 0:
			l = slices.Delete(l, at, at+1)
		case list != "" && at >= 0:
			l[at].Value = list.Disk()
		case list != "":
			l = append(l, disk.Attribute{Name: name, Value: list.Disk()})
		}
	}
	return l
}

// Place stores the first attributes that fit in the area of an inode, which may be nil. It returns the others, and the number of
// bytes that they take in a block.
func (l List) Place(area []byte) (outside List, size int) {
	var inside List
	room := 0
	if area != nil {
		room = disk.AttributeRoom(area, false)
	}
	for _, a := range l {
		if n := disk.AttributeSize(a); n <= room {
			inside, room = append(inside, a), room-n
		} else {
			outside, size = append(outside, a), size+n
		}
	}
	if area != nil {
		disk.WriteAttributes(area, false, inside)
	}
	return outside, size
}
