package fs

import (
	"loam/abi/linux"
	"loam/fs/acl"
)

// POSIX access control lists (acl(5)). A process reads and sets them as extended attributes. Attr has the lists of a file, and
// Change sets them.

// Controlled is a Node whose file system stores access control lists: Change implements SetAccessList and SetDefaultList.
type Controlled interface {
	Attributed
	StoresLists()
}

// Protection returns the permission bits and the lists that a file has after a change, for a file system that stores lists.
// mode is the mode before the change.
func (c Change) Protection(mode Mode, set acl.Set) (Mode, acl.Set) {
	lists := set.Lists()
	old := lists
	switch {
	case c.Fields&SetMode != 0 && c.ClearSetIDs:
		mode = withoutSetIDs(mode, c.KeepSetGID)
	case c.Fields&SetMode != 0:
		mode = mode.Type() | c.Mode&Permissions
		lists.Access = lists.Access.Chmod(uint16(mode & 0o777))
	}
	if c.Fields&SetDefaultList != 0 {
		lists.Default = c.List
	}
	if c.Fields&SetAccessList != 0 {
		lists.Access = c.List
	}
	if c.Fields&SetAccessList != 0 && c.List != "" {
		bits, minimal := c.List.Mode()
		mode = mode&(TypeMask|c.Mode&^0o777) | Mode(bits)
		if minimal {
			lists.Access = ""
		}
	}
	if lists == old {
		return mode, set
	}
	return mode, lists.Set()
}

// list implements getxattr(2) for a list. Errors: ENODATA, EOPNOTSUPP, EIO.
func (v *View) list(p Place, name string) ([]byte, error) {
	if err := controlled(p); err != nil {
		return nil, err
	}
	switch l := p.Node.Attr().ACL.Lists().Named(name); l {
	case "":
		return nil, linux.ENODATA
	case acl.Unreadable:
		return nil, linux.EIO
	default:
		return l.Value(), nil
	}
}

// controlled checks that a file can have lists. Errors: EOPNOTSUPP.
func controlled(p Place) error {
	if _, ok := p.Node.(Controlled); !ok || p.Node.Attr().Mode.Type() == Symlink {
		return linux.EOPNOTSUPP
	}
	return nil
}

// setList implements setxattr(2) for a list. A value without entries removes the list. Errors: EROFS, EOPNOTSUPP, EINVAL; EACCES for
// the default list of another file than a directory; EPERM for a caller that does not own the file.
func (v *View) setList(p Place, name string, value []byte) error {
	if err := p.writable(); err != nil {
		return err
	}
	if err := acl.WellFormed(value); err != nil {
		return err
	}
	if err := controlled(p); err != nil {
		return err
	}
	a := p.Node.Attr()
	l, invalid := acl.Parse(value)
	switch {
	case name == acl.Default && a.Mode.Type() != Dir && l == "" && invalid == nil:
		return nil
	case name == acl.Default && a.Mode.Type() != Dir:
		return linux.EACCES
	case !v.Who.Owns(a):
		return linux.EPERM
	case invalid != nil:
		return invalid
	}
	c := Change{Fields: SetDefaultList, List: l}
	if name == acl.Access {
		c.Fields, c.Mode = SetAccessList, Permissions
		if !v.Who.Has(KeepSetIDs) && !v.Who.inGroup(a.GID) {
			c.Mode &^= SetGID
		}
	}
	if err := p.Node.Change(c); err != nil {
		return err
	}
	v.Tree.notify(p.Node, AttrChanged)
	return nil
}

// removeList implements removexattr(2) for a list. It is no error if there is none.
func (v *View) removeList(p Place, name string) error {
	return v.setList(p, name, acl.List("").Value())
}
