package fs

import (
	"strings"
	"syscall"
)

// Extended attributes (xattr(7)): of the names that begin with "user.", as of Linux's tmpfs. Others
// are answered as to a process that has no rights to them.

// XattrFlags are those of setxattr(2).
type XattrFlags uint32

// Flags.
const (
	XattrCreate  XattrFlags = 1 << iota // it must not be there
	XattrReplace                        // it must be there
)

// Attributed is a Node that keeps extended attributes. The caller has checked that it may, and
// that names begin with "user.".
type Attributed interface {
	Node
	// Xattr is a value, which the caller does not change. Errors: ENODATA.
	Xattr(name string) ([]byte, error)
	// SetXattr keeps a copy of a value. Errors: EEXIST, ENODATA, ENOSPC; ENOENT of a file that has gone.
	SetXattr(name string, value []byte, flags XattrFlags) error
	// RemoveXattr takes one away. Errors: ENODATA.
	RemoveXattr(name string) error
	// Xattrs are the names, in order.
	Xattrs() []string
}

// Xattr is getxattr(2). Errors: ENODATA, EACCES, EOPNOTSUPP, EINVAL.
func (v *View) Xattr(p Place, name string) ([]byte, error) {
	n, err := v.attributed(p, name, ToRead)
	if err != nil {
		return nil, err
	}
	return n.Xattr(name)
}

// SetXattr is setxattr(2). Errors: EROFS, EPERM, EACCES, EOPNOTSUPP, EINVAL, and those of Attributed.
func (v *View) SetXattr(p Place, name string, value []byte, flags XattrFlags) error {
	return v.changeXattr(p, name, func(n Attributed) error { return n.SetXattr(name, value, flags) })
}

// RemoveXattr is removexattr(2). Errors are those of SetXattr.
func (v *View) RemoveXattr(p Place, name string) error {
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
		v.Tree.tell(p.Node, AttrChanged)
	}
	return err
}

// Xattrs is listxattr(2).
func (v *View) Xattrs(p Place) []string {
	if n, ok := p.Node.(Attributed); ok {
		return n.Xattrs()
	}
	return nil
}

const userXattr = "user."

// attributed finds the node that has an attribute, if v may do with it what it wishes.
func (v *View) attributed(p Place, name string, w Wish) (Attributed, error) {
	a := p.Node.Attr()
	if err := XattrName(a.Mode.Type(), name, w); err != nil {
		return nil, err
	}
	if a.Mode.Type() == Dir && a.Mode&Sticky != 0 && w == ToWrite && !v.Who.owns(a) {
		return nil, syscall.EPERM
	}
	if !v.Who.May(a, w) {
		return nil, syscall.EACCES
	}
	n, ok := p.Node.(Attributed)
	switch {
	case !ok:
		return nil, syscall.EOPNOTSUPP
	case name == userXattr:
		return nil, syscall.EINVAL
	}
	return n, nil
}

// XattrName reports whether a file of a type may have an attribute of a name: regular files and
// directories those of users. Errors: EPERM, or ENODATA to who wishes to read, where a process
// would need rights that none has here, and where there can be none; EOPNOTSUPP.
func XattrName(kind Mode, name string, w Wish) error {
	class, _, found := strings.Cut(name, ".")
	switch {
	case found && class == "user" && (kind == Regular || kind == Dir):
		return nil
	case !found || class != "user" && class != "trusted" && class != "security":
		return syscall.EOPNOTSUPP
	case w == ToWrite:
		return syscall.EPERM
	}
	return syscall.ENODATA
}
