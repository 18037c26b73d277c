package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/mqueue"
)

// treeFile is an open file of the file tree (package fs): a regular file, a directory or a device. It is always ready. It
// cannot be added to an epoll set (epoll(7)) unless it reports changes.
type treeFile struct {
	fs.File
	about file.Description // the open file description: the two are one object, so that an open allocates once
	p     *Process
	q     file.Queue
	from  fs.Place // the directory to which path is relative
	path  string   // path passed to open(2), shown by proc(5)
}

func (f *treeFile) Events() Events     { return file.TreeEvents(&f.File) }
func (f *treeFile) Queue() *file.Queue { return &f.q }
func (f *treeFile) Mode() uint32       { return uint32(f.Attr().Mode) }

func (f *treeFile) Close() {
	f.p.locks.Release(f.Tree(), f)
	f.File.Close()
}

func (f *treeFile) Read(b []byte) (int, Errno) {
	n, err := f.File.Read(b)
	return n, file.ToErrno(err)
}

func (f *treeFile) Write(b []byte) (int, Errno) {
	n, err := f.File.Write(b)
	return n, file.ToErrno(err)
}

// Stat implements file.Described.
func (f *treeFile) Stat() Stat { return statOf(f.Place()) }

// tree returns the file of the file tree behind fd. Errors: EBADF; the errno other for a file outside the tree.
func (p *Process) tree(fd int, other Errno) (*file.Description, *treeFile, Errno) {
	o := p.fds.Get(fd)
	if o == nil {
		return nil, nil, linux.EBADF
	}
	f, ok := o.File.(*treeFile)
	if !ok {
		return nil, nil, other
	}
	return o, f, 0
}

// real returns the file of the file tree behind fd, for calls that reject an O_PATH descriptor with EBADF. For a file
// outside the tree it returns the errno other, or nil if other is 0.
func (p *Process) real(fd int, other Errno) (*treeFile, Errno) {
	_, f, errno := p.tree(fd, other)
	if errno == 0 && f != nil && f.Flags()&fs.PathOnly != 0 {
		return nil, linux.EBADF
	}
	return f, errno
}

// Node returns the file of the tree behind fd. Errors: EBADF, also for another kind of file and for O_PATH.
func (p *Process) Node(fd int) (fs.Node, Errno) {
	f, errno := p.real(fd, linux.EBADF)
	if errno != 0 {
		return nil, errno
	}
	return f.Place().Node, 0
}

func statOf(p fs.Place) Stat { return Stat{Attr: p.Node.Attr(), On: p.Device()} }

// Fstat implements fstat(2). For a file without attributes it returns only the type, the permissions
// and a number.
func (p *Process) Fstat(fd int) (Stat, Errno) {
	o, errno := p.getAny(fd)
	if errno != 0 {
		return Stat{}, errno
	}
	if d, ok := o.File.(file.Described); ok {
		return d.Stat(), 0
	}
	if f, ok := o.File.(*mqueue.File); ok {
		a := f.Attr()
		a.Inode = o.Number(&p.serial)
		return Stat{Attr: a}, 0
	}
	return Stat{Attr: fs.Attr{Inode: o.Number(&p.serial), Mode: fs.Mode(o.Mode()), Links: 1, BlockSize: 4096}}, 0
}
