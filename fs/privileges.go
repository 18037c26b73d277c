package fs

import "loam/abi/linux"

// Privileges that a file gives to its program: the set-user-ID and set-group-ID bits, and file capabilities. Changes of the file
// remove them (write(2), chown(2), inode(7)). A caller with CAP_FSETID keeps the bits, except at chown(2). A member of the group
// keeps the set-group-ID bit of a file that the group may not execute. Nobody keeps the capabilities.

// CapabilityRemover is a Node whose file system itself removes CapabilityXattr when the file changes.
type CapabilityRemover interface {
	Node
	RemovesCapabilities()
}

// withoutSetIDs returns a mode without the bits that give a program another user or group. If keepGroup is set, the
// set-group-ID bit stays in the mode of a file that its group may not execute.
func withoutSetIDs(m Mode, keepGroup bool) Mode {
	const groupExecute = 0o010
	m &^= SetUID
	if m&groupExecute != 0 || !keepGroup {
		m &^= SetGID
	}
	return m
}

// keepsGroup reports whether a file with attributes a keeps the set-group-ID bit when c changes the file and the group may not
// execute it.
func (c *Credentials) keepsGroup(a Attr) bool { return c.Has(KeepSetIDs) || c.inGroup(a.GID) }

// ClearSetIDs removes the set-user-ID and set-group-ID bits that a file loses when who writes to it. An error is ignored: a file
// system that rejects this change also rejects the change of the content that follows.
func (f *File) ClearSetIDs(who *Credentials) {
	a := f.place.Node.Attr()
	keep := who.keepsGroup(a)
	if mode := withoutSetIDs(a.Mode, keep); mode != a.Mode && a.Mode.Type() == Regular {
		f.place.Node.Change(Change{Fields: SetMode, Mode: mode & Permissions, ClearSetIDs: true, KeepSetGID: keep})
	}
}

// RemoveCapabilities removes the capabilities of the file. It is called before n bytes of the content change. To make writes
// cheap, it looks for capabilities only if some file of the tree has got capabilities since the last call.
func (f *File) RemoveCapabilities(n int) error {
	if n == 0 || f.checkedAt.Load() == f.tree.capabilitySets.Load() {
		return nil
	}
	return f.lookForCapabilities()
}

// lookForCapabilities removes the capabilities of the file, and records in checkedAt that it has none.
func (f *File) lookForCapabilities() error {
	sets := f.tree.capabilitySets.Load()
	if f.place.Node.Attr().Mode.Type() == Regular {
		if err := removeCapabilities(f.place.Node); err != nil {
			return err
		}
	}
	f.checkedAt.Store(sets)
	return nil
}

// removeCapabilities removes the capabilities of a file, if it has any.
func removeCapabilities(n Node) error {
	if _, ok := n.(CapabilityRemover); ok {
		return nil
	}
	x, ok := n.(Attributed)
	if !ok {
		return nil
	}
	if _, err := x.Xattr(CapabilityXattr); err != nil {
		return nil
	}
	if err := x.RemoveXattr(CapabilityXattr); err != linux.ENODATA {
		return err
	}
	return nil
}

// removePrivileges removes the capabilities of a file before its size or owner changes. It also returns the change with the
// mode that the file gets. A change without fields is chown(2) with two IDs of -1.
func (v *View) removePrivileges(n Node, a Attr, c Change) (Change, error) {
	owner, same := c.Fields&(SetOwner|SetGroup) != 0, c.Fields == 0
	if a.Mode.Type() == Dir || !owner && !same && c.Fields&SetSize == 0 {
		return c, nil
	}
	keep, regular := v.Who.keepsGroup(a), a.Mode.Type() == Regular
	mode := withoutSetIDs(a.Mode, keep)
	switch {
	case same && !v.Who.Owns(a):
		if mode != a.Mode {
			return c, linux.EPERM
		}
		return c, nil
	case c.Fields&SetMode == 0 && (regular && owner || mode != a.Mode && (owner || same || regular && !v.Who.Has(KeepSetIDs))):
		c.Fields |= SetMode
		c.Mode, c.ClearSetIDs, c.KeepSetGID = mode&Permissions, true, keep
	}
	return c, removeCapabilities(n)
}
