package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/socket"
)

// The state of a process that /proc shows to other processes: open descriptors, root and working directory (proc(5)).

// Description describes an open descriptor of a process.
type Description struct {
	Name   string   // "/path", "socket:[5]", "pipe:[7]", ...
	Place  fs.Place // location of the file; for a file outside the file tree, such as a socket, it has only a node for stat(2)
	Flags  int      // status flags and access mode, and O_CLOEXEC of the descriptor
	Offset int64
	Inode  uint64
	Extra  func() string // lines of fdinfo that depend on the kind of the file; nil: none
}

// Describe describes the file of a descriptor. It returns false if the descriptor is not open.
func (p *Process) Describe(fd int) (d Description, ok bool) {
	o := p.fds.Get(fd)
	if o == nil {
		return d, false
	}
	d.Name, _ = p.nameOf(fd)
	d.Flags = int(o.Flags.Load())
	if p.fds.Cloexec(fd) {
		d.Flags |= linux.O_CLOEXEC
	}
	switch f := o.File.(type) {
	case *treeFile:
		d.Place, d.Inode = f.Place(), f.Attr().Inode
		d.Offset = f.Offset()
		d.Extra = func() string { return p.locks.Held(f, p.own) }
	case file.Described:
		d.Inode = f.Stat().Inode
		d.Place = fs.Unnamed(openNode{o, d.Inode})
	default:
		d.Inode = o.Number(&p.serial)
		d.Place = fs.Unnamed(openNode{o, d.Inode})
	}
	if f, ok := o.File.(file.Detailed); ok {
		d.Extra = f.Details
	}
	return d, true
}

// AccessOf returns the flags of an open descriptor. Unlike Describe, it does not look for the name of the file, which may be in
// /proc and need the description of a descriptor.
func (p *Process) AccessOf(fd int) (flags int, open bool) {
	if o := p.fds.Get(fd); o != nil {
		return int(o.Flags.Load()), true
	}
	return 0, false
}

// openNode is an fs.Node for an open file description outside the file tree. It only supports stat(2).
type openNode struct {
	open  *file.Description
	inode uint64
}

// Attr implements fs.Node.
func (n openNode) Attr() fs.Attr {
	return fs.Attr{Inode: n.inode, Mode: fs.Mode(n.open.Mode()), Links: 1, BlockSize: 4096}
}

// Change implements fs.Node.
func (n openNode) Change(fs.Change) error { return linux.EPERM }

// Open implements fs.Node. It fails, because OpenAt opens such files by openDescribed.
func (n openNode) Open(fs.Flags) (fs.Handle, error) { return nil, linux.ENXIO }

// openDescribed allocates a descriptor for an open file description of another process. It is shared, as by dup(2).
// Errors: ENXIO for a socket, EMFILE.
func (p *Process) openDescribed(o *file.Description, flags int) (int, Errno) {
	if _, ok := o.File.(socket.Socket); ok {
		return -1, linux.ENXIO
	}
	return p.fds.Insert(o, 0, p.MostFiles(), flags&linux.O_CLOEXEC != 0)
}

// Where describes where a process is in the file tree: its root, working directory and umask.
type Where struct {
	Root, Dir         fs.Place
	RootPath, DirPath string
	Umask             uint32
}

// Where returns the root, the working directory and the umask of the process.
func (p *Process) Where() Where {
	v := p.view.Load()
	w := Where{Root: v.Root, Dir: v.Dir, RootPath: "/", Umask: uint32(v.Umask)}
	whole := *v
	whole.Root = v.Tree.Root()
	if path, err := whole.Path(v.Root); err == nil {
		w.RootPath = path
	}
	w.DirPath = "(unreachable)"
	if path, err := v.Path(v.Dir); err == nil {
		w.DirPath = path
	}
	return w
}

// TableSize returns the size of the descriptor table, for the line FDSize of /proc/PID/status.
func (p *Process) TableSize() int { return p.fds.Size() }
