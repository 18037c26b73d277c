package posix

import (
	"math"
	"syscall"

	"loam/fs"
)

// treeFile is a file of the tree (package fs): a regular file, a directory, a
// device. It is always ready, as epoll(7) has it of such files.
type treeFile struct {
	*fs.File
	p    *Process
	q    waitQueue
	from fs.Place // where path begins
	path string   // as it was opened, for proc(5)
}

func (f *treeFile) events() Events    { return PollIn | PollOut }
func (f *treeFile) queue() *waitQueue { return &f.q }
func (f *treeFile) mode() uint32      { return uint32(f.Attr().Mode) }

func (f *treeFile) close() {
	all := held{owner: f, last: math.MaxInt64}
	f.p.ranges.release(f.Place().Node, all)
	f.p.flocks.release(f.Place().Node, all)
	f.File.Close()
}

func (f *treeFile) read(b []byte) (int, Errno) {
	n, err := f.File.Read(b)
	return n, toErrno(err)
}

func (f *treeFile) write(b []byte) (int, Errno) {
	n, err := f.File.Write(b)
	return n, toErrno(err)
}

// stat implements described.
func (f *treeFile) stat() Stat { return statOf(f.Place()) }

// tree finds an open file of the tree. Errors: EBADF, and other for a file of
// another kind.
func (p *Process) tree(fd int, other Errno) (*open, *treeFile, Errno) {
	o := p.fds.get(fd)
	if o == nil {
		return nil, nil, syscall.EBADF
	}
	f, ok := o.file.(*treeFile)
	if !ok {
		return nil, nil, other
	}
	return o, f, 0
}

// real is tree for calls that O_PATH forbids; nil is a file of another kind, where other is no error.
func (p *Process) real(fd int, other Errno) (*treeFile, Errno) {
	_, f, errno := p.tree(fd, other)
	if errno == 0 && f != nil && f.Flags()&fs.PathOnly != 0 {
		return nil, syscall.EBADF
	}
	return f, errno
}

// Stat is what stat(2) and statx(2) tell of a file.
type Stat struct {
	fs.Attr
	On fs.Device // the file system
}

func statOf(p fs.Place) Stat { return Stat{p.Node.Attr(), p.Device()} }

// described is a file that has more to tell than a type.
type described interface{ stat() Stat }

// Fstat is fstat(2). Of what is no file of the tree it tells the type, and a
// number.
func (p *Process) Fstat(fd int) (Stat, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return Stat{}, errno
	}
	if d, ok := o.file.(described); ok {
		return d.stat(), 0
	}
	return Stat{Attr: fs.Attr{Inode: uint64(fd), Mode: fs.Mode(o.mode()), Links: 1, BlockSize: 4096}}, 0
}
