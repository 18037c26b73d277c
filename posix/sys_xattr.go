package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Extended attributes: setxattr(2) and its variants.

// XattrFile identifies the file of a call, by a path or by a descriptor.
type XattrFile struct {
	Path   string
	Follow bool // for a path: follow a symbolic link in the last component
	ByFD   bool
	FD     int
}

// xattrFile finds the file that target identifies. For a descriptor of a file
// outside the file tree, place.Node is nil and kind is the type of the file.
func (p *Process) xattrFile(target XattrFile) (v *fs.View, place fs.Place, kind fs.Mode, errno Errno) {
	if !target.ByFD {
		v, place, errno = p.lookup(linux.AT_FDCWD, target.Path, target.Follow, false)
		return v, place, 0, errno
	}
	o, errno := p.get(target.FD)
	if errno != 0 {
		return nil, place, 0, errno
	}
	v = p.sight()
	if f, ok := o.File.(*treeFile); ok {
		if f.Flags()&fs.PathOnly != 0 {
			return v, place, 0, linux.EBADF
		}
		return v, f.Place(), 0, 0
	}
	return v, place, fs.Mode(o.Mode()).Type(), 0
}

// checkXattrName checks the length of a name. Errors: ERANGE.
func checkXattrName(name string) Errno {
	if name == "" || len(name) > linux.XATTR_NAME_MAX {
		return linux.ERANGE
	}
	return 0
}

// GetXattr implements getxattr(2), lgetxattr(2) and fgetxattr(2). The caller must not modify the value.
func (p *Process) GetXattr(of XattrFile, name string) ([]byte, Errno) {
	if errno := checkXattrName(name); errno != 0 {
		return nil, errno
	}
	v, place, kind, errno := p.xattrFile(of)
	switch {
	case errno != 0:
		return nil, errno
	case place.Node == nil:
		return nil, noXattr(v, kind, name, fs.ToRead)
	}
	value, err := v.Xattr(place, name)
	return value, file.ToErrno(err)
}

// noXattr returns the error for a file outside the file tree, such as a pipe.
func noXattr(v *fs.View, kind fs.Mode, name string, w fs.Wish) Errno {
	if err := v.Who.XattrName(kind, name, w); err != nil {
		return file.ToErrno(err)
	}
	return linux.EOPNOTSUPP
}

// ListXattr implements listxattr(2), llistxattr(2) and flistxattr(2). Every name ends with a NUL.
// Errors: E2BIG.
func (p *Process) ListXattr(of XattrFile) ([]byte, Errno) {
	v, place, _, errno := p.xattrFile(of)
	if errno != 0 || place.Node == nil {
		return nil, errno
	}
	var list []byte
	for _, name := range v.Xattrs(place) {
		list = append(append(list, name...), 0)
	}
	if len(list) > linux.XATTR_SIZE_MAX {
		return nil, linux.E2BIG
	}
	return list, 0
}

// SetXattr implements setxattr(2), lsetxattr(2) and fsetxattr(2). Errors: EINVAL for unknown flags,
// ERANGE for the length of the name, E2BIG for the value, and the errors of fs.View.SetXattr.
func (p *Process) SetXattr(of XattrFile, name string, value []byte, flags int) Errno {
	if flags&^int(fs.XattrCreate|fs.XattrReplace) != 0 {
		return linux.EINVAL
	}
	switch errno := checkXattrName(name); {
	case errno != 0:
		return errno
	case len(value) > linux.XATTR_SIZE_MAX:
		return linux.E2BIG
	}
	return p.changeXattr(of, name, func(v *fs.View, place fs.Place) error {
		return v.SetXattr(place, name, value, fs.XattrFlags(flags))
	})
}

// RemoveXattr implements removexattr(2), lremovexattr(2) and fremovexattr(2).
func (p *Process) RemoveXattr(of XattrFile, name string) Errno {
	if errno := checkXattrName(name); errno != 0 {
		return errno
	}
	return p.changeXattr(of, name, func(v *fs.View, place fs.Place) error { return v.RemoveXattr(place, name) })
}

func (p *Process) changeXattr(of XattrFile, name string, change func(*fs.View, fs.Place) error) Errno {
	v, place, kind, errno := p.xattrFile(of)
	switch {
	case errno != 0:
		return errno
	case place.Node == nil:
		return noXattr(v, kind, name, fs.ToWrite)
	}
	return file.ToErrno(change(v, place))
}
