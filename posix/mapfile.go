package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Mapped is a file of the file tree that is opened for mmap(2) or execve(2). Its handle is a new one, which the receiver of
// the Mapped closes.
type Mapped struct {
	Node   fs.Node
	Place  fs.Place // location of the file; set for execve(2) only
	NoExec bool     // the file is on a mount that forbids executing
	Handle fs.Handle
	Flags  fs.Flags // access mode of the descriptor
	Attr   fs.Attr
	Device fs.Device // device of the file system that contains the file
	Path   string
}

// zeroDevice is the number of /dev/zero (null(4)).
var zeroDevice = fs.Device{Major: 1, Minor: 5}

// ForMapping opens the file of a descriptor for mmap(2). For /dev/zero the result has no node. Errors: EBADF, EACCES; ENODEV for
// other files that are not regular.
func (p *Process) ForMapping(fd int) (Mapped, Errno) {
	f, errno := p.real(fd, linux.ENODEV)
	if errno != 0 {
		return Mapped{}, errno
	}
	a := f.Attr()
	switch {
	case a.Mode.Type() == fs.CharDevice && a.Device == zeroDevice:
		return Mapped{Flags: f.Flags(), Attr: a}, 0
	case a.Mode.Type() != fs.Regular:
		return Mapped{}, linux.ENODEV
	}
	node := f.Place().Node
	flags := f.Flags()
	open := fs.Flags(linux.O_RDONLY)
	if flags.MayWrite() {
		open = linux.O_RDWR
	}
	handle, err := node.Open(open)
	if err != nil {
		return Mapped{}, file.ToErrno(err)
	}
	return Mapped{Node: node, Handle: handle, Flags: flags, Attr: a, Device: f.Place().Device(),
		NoExec: f.Place().On(fs.NoExecute), Path: p.pathOf(f)}, 0
}

// OpenExecutable opens a file for execve(2). path is relative to a directory descriptor or AT_FDCWD; an empty path means the
// file of the descriptor itself. Errors: those of open(2); EACCES if it is no regular file or has no execute permission.
func (p *Process) OpenExecutable(dirfd int, path string) (Mapped, Errno) {
	fd := dirfd
	if path != "" {
		var errno Errno
		if fd, errno = p.OpenAt(dirfd, path, linux.O_PATH|linux.O_CLOEXEC, 0); errno != 0 {
			return Mapped{}, errno
		}
		defer p.Close(fd)
	}
	_, f, errno := p.tree(fd, linux.EACCES)
	if errno != 0 {
		return Mapped{}, errno
	}
	a := f.Attr()
	v := p.sight()
	if a.Mode.Type() != fs.Regular || !v.Who.May(a, fs.ToExecute) || f.Place().On(fs.NoExecute) {
		return Mapped{}, linux.EACCES
	}
	handle, err := f.Place().Node.Open(fs.Flags(linux.O_RDONLY))
	if err != nil {
		return Mapped{}, file.ToErrno(err)
	}
	return Mapped{Node: f.Place().Node, Place: f.Place(), Handle: handle, Attr: a, Device: f.Place().Device(), Path: p.pathOf(f)}, 0
}
