package file

import (
	"loam/abi/linux"
	"loam/fs"
)

// Permitted is a file outside the file tree whose permission bits can change.
type Permitted interface {
	Chmod(by *fs.Credentials, mode fs.Mode) linux.Errno
}

// Chmod implements fchmod(2) for a file outside the file tree. For a file that is not Permitted, such as a pipe, it has no effect.
// Errors: EPERM.
func Chmod(o *Description, by *fs.Credentials, mode fs.Mode) linux.Errno {
	if o == nil {
		return linux.EBADF
	}
	if f, ok := o.File.(Permitted); ok {
		return f.Chmod(by, mode&fs.Permissions)
	}
	return 0
}
