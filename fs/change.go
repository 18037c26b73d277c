package fs

import "syscall"

// Access is faccessat(2) with the IDs of v.
func (v *View) Access(p Place, w Wish) error {
	a := p.Node.Attr()
	if kind := a.Mode.Type(); w&ToWrite != 0 && (kind == Regular || kind == Dir) {
		if err := p.writable(); err != nil {
			return err
		}
	}
	if !v.Who.May(a, w) {
		return syscall.EACCES
	}
	return nil
}

// Change changes attributes of a file after checking that v may: mode and times
// its owner, the owner user 0, the group its owner to one of its own groups, the
// size whoever may write, and the times to now as well.
// now tells that times are those of the present moment (UTIME_NOW).
func (v *View) Change(p Place, c Change, now bool) error {
	if err := p.writable(); err != nil {
		return err
	}
	a := p.Node.Attr()
	if err := v.mayChange(a, c, now); err != nil {
		return err
	}
	if c.Fields&SetMode != 0 {
		c.Mode &= Permissions
		if v.Who.UID != 0 && !v.Who.inGroup(a.GID) {
			c.Mode &^= SetGID
		}
	} else if c.Fields&(SetOwner|SetGroup) != 0 && a.Mode.Type() == Regular {
		c.Fields |= SetMode // chown(2): a program that runs as its owner no longer does
		c.Mode = a.Mode & Permissions &^ SetUID
		if a.Mode&0o010 != 0 {
			c.Mode &^= SetGID
		}
	}
	if err := p.Node.Change(c); err != nil {
		return err
	}
	if c.Fields&SetSize != 0 {
		v.Tree.tell(p.Node, Modified)
	}
	if c.Fields&^SetSize != 0 {
		v.Tree.tell(p.Node, AttrChanged)
	}
	return nil
}

func (v *View) mayChange(a Attr, c Change, now bool) error {
	owns := v.Who.owns(a)
	times := c.Fields&(SetAccess|SetModify) != 0
	switch {
	case c.Fields&SetMode != 0 && !owns:
		return syscall.EPERM
	case c.Fields&SetOwner != 0 && v.Who.UID != 0 && !(owns && c.UID == a.UID):
		return syscall.EPERM
	case c.Fields&SetGroup != 0 && v.Who.UID != 0 && !(owns && v.Who.inGroup(c.GID)):
		return syscall.EPERM
	case c.Fields&SetSize != 0 && a.Mode.Type() == Dir:
		return syscall.EISDIR
	case c.Fields&SetSize != 0 && (a.Mode.Type() != Regular || c.Size < 0):
		return syscall.EINVAL
	case c.Fields&SetSize != 0 && !v.Who.May(a, ToWrite):
		return syscall.EACCES
	case times && !owns && !now:
		return syscall.EPERM
	case times && !owns && !v.Who.May(a, ToWrite):
		return syscall.EACCES
	}
	return nil
}
