package fs

import (
	"slices"
	"strings"

	"loam/abi/linux"
	"loam/fs/acl"
)

// Extended attributes (xattr(7)) of the classes "user", "trusted" and "security", and access control lists: see acl.go.

// XattrFlags are the flags of setxattr(2).
type XattrFlags uint32

// Flags of SetXattr.
const (
	XattrCreate  XattrFlags = 1 << iota // the attribute must not exist
	XattrReplace                        // the attribute must exist
)

// Attributed is a Node that stores extended attributes. The caller has checked permissions and names. A file system that
// cannot store a class returns EOPNOTSUPP. Access control lists are no attributes here: see Controlled.
type Attributed interface {
	Node
	// Xattr returns a value, which the caller must not modify. Errors: ENODATA.
	Xattr(name string) ([]byte, error)
	// SetXattr stores a copy of value. Errors: EEXIST, ENODATA, ENOSPC; ENOENT for a removed file.
	SetXattr(name string, value []byte, flags XattrFlags) error
	// RemoveXattr removes an attribute. Errors: ENODATA.
	RemoveXattr(name string) error
	// Xattrs returns the names, sorted.
	Xattrs() []string
}

// Xattr implements getxattr(2). Errors: ENODATA, EACCES, EOPNOTSUPP, EINVAL.
func (v *View) Xattr(p Place, name string) ([]byte, error) {
	if acl.Is(name) {
		return v.list(p, name)
	}
	n, err := v.attributed(p, name, ToRead)
	if err != nil {
		return nil, err
	}
	return n.Xattr(name)
}

// SetXattr implements setxattr(2). Errors: EROFS, EPERM, EACCES, EOPNOTSUPP, EINVAL, and those of
// Attributed.
func (v *View) SetXattr(p Place, name string, value []byte, flags XattrFlags) error {
	if acl.Is(name) {
		return v.setList(p, name, value)
	}
	if name == CapabilityXattr && p.writable() == nil && !linux.ValidVfsCapData(value) {
		return linux.EINVAL
	}
	return v.changeXattr(p, name, func(n Attributed) error {
		err := n.SetXattr(name, value, flags)
		if name == CapabilityXattr {
			v.Tree.capabilitySets.Add(1)
		}
		return err
	})
}

// RemoveXattr implements removexattr(2). Errors: those of SetXattr.
func (v *View) RemoveXattr(p Place, name string) error {
	if acl.Is(name) {
		return v.removeList(p, name)
	}
	return v.changeXattr(p, name, func(n Attributed) error { return n.RemoveXattr(name) })
}

func (v *View) changeXattr(p Place, name string, change func(Attributed) error) error {
	if err := p.writable(); err != nil {
		return err
	}
	n, err := v.attributed(p, name, ToWrite)
	if err == nil {
		err = change(n)
	}
	if err == nil {
		v.Tree.notify(p.Node, AttrChanged)
	}
	return err
}

// Xattrs implements listxattr(2). Only an administrator sees names of class "trusted".
func (v *View) Xattrs(p Place) []string {
	n, ok := p.Node.(Attributed)
	if !ok {
		return nil
	}
	list := n.Xattrs()
	if !v.Who.Has(Administer) {
		list = slices.DeleteFunc(list, func(name string) bool { return strings.HasPrefix(name, trustedXattr) })
	}
	return append(p.Node.Attr().ACL.Lists().Names(), list...)
}

// Classes of extended attributes. The name of an attribute begins with its class.
const (
	userXattr     = "user."
	trustedXattr  = "trusted."
	securityXattr = "security."
)

// CapabilityXattr is the attribute with the capabilities of a program file (capabilities(7)).
const CapabilityXattr = securityXattr + "capability"

// attributed returns the node that stores the extended attributes of a file, if the name is valid and v has the access w.
// Errors: those of XattrName, EACCES, EOPNOTSUPP.
func (v *View) attributed(p Place, name string, w Wish) (Attributed, error) {
	a := p.Node.Attr()
	if err := v.Who.XattrName(a.Mode.Type(), name, w); err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, userXattr) { // permission bits guard no other class
		if a.Mode.Type() == Dir && a.Mode&Sticky != 0 && w == ToWrite && !v.Who.Owns(a) {
			return nil, linux.EPERM
		}
		if !v.Who.May(a, w) {
			return nil, linux.EACCES
		}
	}
	n, ok := p.Node.(Attributed)
	switch {
	case !ok:
		return nil, linux.EOPNOTSUPP
	case name == userXattr || name == trustedXattr || name == securityXattr:
		return nil, linux.EINVAL
	}
	return n, nil
}

// XattrName checks whether a thread with the credentials c may use the attribute called name of a file whose type is kind. Only regular files and directories
// can have attributes of class "user". Files of all types can have attributes of the other classes: of class "trusted", which only an
// administrator may use, and of class "security", which all may read. Errors: EOPNOTSUPP for an unknown class. A class or a file type that is not allowed fails with
// EPERM for writing and ENODATA for reading.
func (c *Credentials) XattrName(kind Mode, name string, w Wish) error {
	class, _, found := strings.Cut(name, ".")
	switch {
	case found && class == "user" && (kind == Regular || kind == Dir):
		return nil
	case found && class == "trusted" && c.Has(Administer):
		return nil
	case found && class == "security" && (w == ToRead || c.Has(securityRight(name))):
		return nil
	case !found || class != "user" && class != "trusted" && class != "security":
		return linux.EOPNOTSUPP
	case w == ToWrite:
		return linux.EPERM
	}
	return linux.ENODATA
}

// securityRight returns the right that a change of an attribute of class "security" needs.
func securityRight(name string) Rights {
	if name == CapabilityXattr {
		return SetCapabilities
	}
	return Administer
}
