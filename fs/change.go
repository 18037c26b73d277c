package fs

import "loam/abi/linux"

// Access implements faccessat(2) with the credentials of v.
func (v *View) Access(p Place, w Wish) error {
	a := p.Node.Attr()
	if kind := a.Mode.Type(); w&ToWrite != 0 && (kind == Regular || kind == Dir) {
		if err := p.writable(); err != nil {
			return err
		}
	}
	if !v.may(p.Node, &a, w) || w&ToExecute != 0 && a.Mode.Type() == Regular && p.On(NoExecute) {
		return linux.EACCES
	}
	return nil
}

// Change changes attributes of a file after a permission check. The owner may set the mode and the
// times, and set the group to one of the caller's own groups. Only user 0 may change the owner. Write
// permission suffices to set the size, and to set both times to the present time (UTIME_NOW). A change without fields is chown(2)
// with two IDs of -1: it removes privileges, and needs to own the file only if there are some.
func (v *View) Change(p Place, c Change) error {
	if err := p.writable(); err != nil {
		return err
	}
	a := p.Node.Attr()
	if err := v.mayChange(p.Node, a, c); err != nil {
		return err
	}
	if c.Fields&SetMode != 0 {
		c.Mode &= Permissions
		if !v.Who.Has(KeepSetIDs) && !v.Who.inGroup(a.GID) {
			c.Mode &^= SetGID
		}
	}
	c, err := v.removePrivileges(p.Node, a, c)
	if err != nil {
		return err
	}
	if c.Fields&SetSize != 0 {
		if err := v.Tree.mayUse(p.Node, WriteOnly); err != nil {
			return err
		}
	}
	if err := p.Node.Change(c); err != nil {
		return err
	}
	if c.Fields&SetSize != 0 {
		v.Tree.notify(p.Node, Modified)
	}
	if c.Fields&^SetSize != 0 {
		v.Tree.notify(p.Node, AttrChanged)
	}
	return nil
}

// mayChange checks permissions for a change (chmod(2), chown(2), truncate(2), utimensat(2)).
func (v *View) mayChange(n Node, a Attr, c Change) error {
	owns := v.Who.Owns(a)
	times := c.Fields&(SetAccess|SetModify) != 0
	switch {
	case c.Fields&SetMode != 0 && !owns:
		return linux.EPERM
	case c.Fields&SetOwner != 0 && !v.Who.Has(ChangeOwner) && !(v.Who.UID == a.UID && c.UID == a.UID):
		return linux.EPERM
	case c.Fields&SetGroup != 0 && !v.Who.Has(ChangeOwner) && !(v.Who.UID == a.UID && v.Who.inGroup(c.GID)):
		return linux.EPERM
	case c.Fields&SetSize != 0 && a.Mode.Type() == Dir:
		return linux.EISDIR
	case c.Fields&SetSize != 0 && (a.Mode.Type() != Regular || c.Size < 0):
		return linux.EINVAL
	case c.Fields&SetSize != 0 && !v.may(n, &a, ToWrite):
		return linux.EACCES
	case times && !owns && c.Now != SetAccess|SetModify:
		return linux.EPERM
	case times && !owns && !v.Who.May(a, ToWrite):
		return linux.EACCES
	}
	return nil
}
