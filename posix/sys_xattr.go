package posix

import (
	"syscall"

	"loam/fs"
)

// Extended attributes: setxattr(2) and its kin.

// Bounds in bytes, as on Linux.
const (
	MaxXattrName = 255
	MaxXattr     = 64 << 10 // of a value, and of a list of names
)

// XattrFile says which file a call is about: that of a path, or of a descriptor.
type XattrFile struct {
	Path   string
	Follow bool // of a path: symbolic links in the last place are followed
	ByFD   bool
	FD     int
}

// xattrFile finds it. The place is nowhere for what is no file of the tree.
func (p *Process) xattrFile(file XattrFile) (v *fs.View, place fs.Place, kind fs.Mode, errno Errno) {
	if !file.ByFD {
		v, place, errno = p.lookup(atFDCWD, file.Path, file.Follow, false)
		return v, place, 0, errno
	}
	o, errno := p.get(file.FD)
	if errno != 0 {
		return nil, place, 0, errno
	}
	v = p.view.Load()
	if f, ok := o.file.(*treeFile); ok {
		if f.Flags()&fs.PathOnly != 0 {
			return v, place, 0, syscall.EBADF
		}
		return v, f.Place(), 0, 0
	}
	return v, place, fs.Mode(o.mode()).Type(), 0
}

// checkXattrName checks the length of a name. Errors: ERANGE.
func checkXattrName(name string) Errno {
	if name == "" || len(name) > MaxXattrName {
		return syscall.ERANGE
	}
	return 0
}

// GetXattr is getxattr(2), lgetxattr(2) and fgetxattr(2). Nobody changes the value.
func (p *Process) GetXattr(file XattrFile, name string) ([]byte, Errno) {
	if errno := checkXattrName(name); errno != 0 {
		return nil, errno
	}
	v, place, kind, errno := p.xattrFile(file)
	switch {
	case errno != 0:
		return nil, errno
	case place.Node == nil:
		return nil, noXattr(kind, name, fs.ToRead)
	}
	value, err := v.Xattr(place, name)
	return value, toErrno(err)
}

// noXattr is the answer for what is on no file system.
func noXattr(kind fs.Mode, name string, w fs.Wish) Errno {
	if err := fs.XattrName(kind, name, w); err != nil {
		return toErrno(err)
	}
	return syscall.EOPNOTSUPP
}

// ListXattr is listxattr(2), llistxattr(2) and flistxattr(2): names with a NUL behind each.
// Errors: E2BIG.
func (p *Process) ListXattr(file XattrFile) ([]byte, Errno) {
	v, place, _, errno := p.xattrFile(file)
	if errno != 0 || place.Node == nil {
		return nil, errno
	}
	var list []byte
	for _, name := range v.Xattrs(place) {
		list = append(append(list, name...), 0)
	}
	if len(list) > MaxXattr {
		return nil, syscall.E2BIG
	}
	return list, 0
}

// SetXattr is setxattr(2), lsetxattr(2) and fsetxattr(2). Errors beyond those of the tree: EINVAL for
// flags, ERANGE for a name, E2BIG for a value.
func (p *Process) SetXattr(file XattrFile, name string, value []byte, flags int) Errno {
	if flags&^int(fs.XattrCreate|fs.XattrReplace) != 0 {
		return syscall.EINVAL
	}
	if errno := checkXattrName(name); errno != 0 {
		return errno
	}
	if len(value) > MaxXattr {
		return syscall.E2BIG
	}
	return p.changeXattr(file, name, func(v *fs.View, place fs.Place) error {
		return v.SetXattr(place, name, value, fs.XattrFlags(flags))
	})
}

// RemoveXattr is removexattr(2), lremovexattr(2) and fremovexattr(2).
func (p *Process) RemoveXattr(file XattrFile, name string) Errno {
	if errno := checkXattrName(name); errno != 0 {
		return errno
	}
	return p.changeXattr(file, name, func(v *fs.View, place fs.Place) error { return v.RemoveXattr(place, name) })
}

func (p *Process) changeXattr(file XattrFile, name string, change func(*fs.View, fs.Place) error) Errno {
	v, place, kind, errno := p.xattrFile(file)
	switch {
	case errno != 0:
		return errno
	case place.Node == nil:
		return noXattr(kind, name, fs.ToWrite)
	}
	return toErrno(change(v, place))
}
