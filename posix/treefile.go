package posix

import (
	"math"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/mqueue"
)

// treeFile is a file of the tree (package fs): a regular file, a directory or a device. It is always
// ready, and cannot be added to an epoll set (epoll(7)).
type treeFile struct {
	*fs.File
	p    *Process
	q    file.Queue
	from fs.Place // the directory where path begins
	path string   // as passed to open, for proc(5)
}

func (f *treeFile) Events() Events     { return PollIn | PollOut }
func (f *treeFile) Queue() *file.Queue { return &f.q }
func (f *treeFile) Mode() uint32       { return uint32(f.Attr().Mode) }

func (f *treeFile) Close() {
	all := held{owner: f, last: math.MaxInt64}
	f.p.ranges.release(f.Place().Node, all)
	f.p.flocks.release(f.Place().Node, all)
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

// stat implements described.
func (f *treeFile) stat() Stat { return statOf(f.Place()) }

// tree returns the file of the tree behind fd. Errors: EBADF; other for another kind of file.
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

// real is tree for calls that reject O_PATH descriptors with EBADF. If other is 0, it returns nil for
// another kind of file.
func (p *Process) real(fd int, other Errno) (*treeFile, Errno) {
	_, f, errno := p.tree(fd, other)
	if errno == 0 && f != nil && f.Flags()&fs.PathOnly != 0 {
		return nil, linux.EBADF
	}
	return f, errno
}

// Stat is the result of stat(2) and statx(2).
type Stat struct {
	fs.Attr
	On fs.Device // the device of the file system
}

func statOf(p fs.Place) Stat { return Stat{p.Node.Attr(), p.Device()} }

// described is a file that has attributes of its own.
type described interface{ stat() Stat }

// Fstat implements fstat(2). For a file without attributes it returns only the type, the permissions
// and a number.
func (p *Process) Fstat(fd int) (Stat, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return Stat{}, errno
	}
	if d, ok := o.File.(described); ok {
		return d.stat(), 0
	}
	if f, ok := o.File.(*mqueue.File); ok {
		a := f.Attr()
		a.Inode = o.Number(&p.serial)
		return Stat{Attr: a}, 0
	}
	return Stat{Attr: fs.Attr{Inode: o.Number(&p.serial), Mode: fs.Mode(o.Mode()), Links: 1, BlockSize: 4096}}, 0
}
