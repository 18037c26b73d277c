package pseudo

import (
	"sort"
	"strconv"
	"syscall"

	"loam/fs"
)

const blockSize = 1024

// node is what files of all types have.
type node struct {
	system *FileSystem
	inode  uint64
	mode   fs.Mode
}

func (f *FileSystem) newNode(mode fs.Mode) node {
	f.inode++
	return node{f, f.inode, mode}
}

// Attr implements fs.Node. Sizes are not known before a file is read: 0, as on
// Linux.
func (n *node) Attr() fs.Attr {
	return fs.Attr{
		Inode: n.inode, Mode: n.mode, Links: 1, BlockSize: blockSize,
		Access: n.system.since, Modify: n.system.since, Status: n.system.since,
	}
}

// Change implements fs.Node.
func (n *node) Change(fs.Change) error { return syscall.EPERM }

// file is a file that is made when it is opened.
type file struct {
	node
	text func() string
}

// Open implements fs.Node.
func (f *file) Open(flags fs.Flags) (fs.Handle, error) {
	if flags.MayWrite() {
		return nil, syscall.EACCES
	}
	return handle(f.text()), nil
}

// handle is an open file: what it said at that time.
type handle string

// ReadAt implements fs.Handle.
func (h handle) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= int64(len(h)) {
		return 0, nil
	}
	return copy(p, h[offset:]), nil
}

// WriteAt implements fs.Handle.
func (h handle) WriteAt([]byte, int64) (int, error) { return 0, syscall.EBADF }

// Append implements fs.Handle.
func (h handle) Append([]byte) (int, int64, error) { return 0, 0, syscall.EBADF }

// Immediate implements fs.Immediate.
func (h handle) Immediate() {}

// Sync implements fs.Handle.
func (h handle) Sync() error { return syscall.EINVAL }

// Close implements fs.Handle.
func (h handle) Close() error { return nil }

// link is a symbolic link.
type link struct {
	node
	target func() string
}

// Open implements fs.Node.
func (l *link) Open(fs.Flags) (fs.Handle, error) { return nil, syscall.ELOOP }

// Target implements fs.Link.
func (l *link) Target() (string, error) { return l.target(), nil }

// directory is a folder: of entries that stay, or of links that names lists.
type directory struct {
	node
	parent  *directory // nil: itself
	entries []entry
	names   func() []string
	target  func(name string) string
}

type entry struct {
	name string
	node fs.Node
}

func (f *FileSystem) newDirectory(parent *directory) *directory {
	return &directory{node: f.newNode(fs.Dir | 0o555), parent: parent}
}

func (d *directory) enter(name string, n fs.Node) { d.entries = append(d.entries, entry{name, n}) }

// child finds an entry; nil when there is none.
func (d *directory) child(name string) fs.Node {
	for _, e := range d.entries {
		if e.name == name {
			return e.node
		}
	}
	return nil
}

// Attr implements fs.Node.
func (d *directory) Attr() fs.Attr {
	a := d.node.Attr()
	a.Links = 2
	return a
}

// Open implements fs.Node.
func (d *directory) Open(fs.Flags) (fs.Handle, error) { return nil, syscall.EISDIR }

// Lookup implements fs.Directory.
func (d *directory) Lookup(name string) (fs.Node, error) {
	if n := d.child(name); n != nil {
		return n, nil
	}
	if d.names != nil {
		for _, listed := range d.names() {
			if listed == name {
				return d.listed(name), nil
			}
		}
	}
	return nil, syscall.ENOENT
}

// listed is a link that names lists. It is a value, so that two of them are equal.
func (d *directory) listed(name string) fs.Node { return listedLink{d, name} }

// listedLink is an entry of a folder that List made.
type listedLink struct {
	dir  *directory
	name string
}

// Attr implements fs.Node.
func (l listedLink) Attr() fs.Attr {
	a := l.dir.node.Attr()
	a.Mode, a.Inode = fs.Symlink|0o700, l.inode()
	return a
}

// inode is a number for names that are numbers, which those of /proc/self/fd are.
func (l listedLink) inode() uint64 {
	n, _ := strconv.ParseUint(l.name, 10, 32)
	return l.dir.inode<<32 | n + 1
}

// Change implements fs.Node.
func (l listedLink) Change(fs.Change) error { return syscall.EPERM }

// Open implements fs.Node.
func (l listedLink) Open(fs.Flags) (fs.Handle, error) { return nil, syscall.ELOOP }

// Target implements fs.Link.
func (l listedLink) Target() (string, error) { return l.dir.target(l.name), nil }

// Parent implements fs.Directory.
func (d *directory) Parent() fs.Directory {
	if d.parent == nil {
		return d
	}
	return d.parent
}

// NameOf implements fs.Directory.
func (d *directory) NameOf(child fs.Directory) (string, bool) {
	for _, e := range d.entries {
		if e.node == fs.Node(child) {
			return e.name, true
		}
	}
	return "", false
}

// Read implements fs.Directory. The cursor of a link that names lists is made of
// its place among all that could be there, so that it stays while others come
// and go: for names that are numbers, the number.
func (d *directory) Read(cursor uint64, yield func(fs.Entry) bool) error {
	for i, e := range d.entries {
		if at := uint64(i) + 1; at > cursor {
			a := e.node.Attr()
			if !yield(fs.Entry{Name: e.name, Inode: a.Inode, Type: a.Mode.Type(), Cursor: at}) {
				return nil
			}
		}
	}
	if d.names == nil {
		return nil
	}
	names := d.names()
	sort.Slice(names, func(i, j int) bool { return listedLink{d, names[i]}.inode() < listedLink{d, names[j]}.inode() })
	for _, name := range names {
		l := listedLink{d, name}
		if at := l.inode() & (1<<32 - 1); at > cursor {
			if !yield(fs.Entry{Name: name, Inode: l.inode(), Type: fs.Symlink, Cursor: at}) {
				return nil
			}
		}
	}
	return nil
}

// What would change a folder. On Linux nothing can be made here either.

// Make implements fs.Directory.
func (d *directory) Make(string, fs.Mode, fs.Owner, fs.Device) (fs.Node, error) {
	return nil, syscall.ENOENT
}

// Symlink implements fs.Directory.
func (d *directory) Symlink(string, string, fs.Owner) (fs.Node, error) { return nil, syscall.ENOENT }

// Link implements fs.Directory.
func (d *directory) Link(string, fs.Node) error { return syscall.EPERM }

// Unlink implements fs.Directory.
func (d *directory) Unlink(name string) error { return syscall.EPERM }

// Rmdir implements fs.Directory.
func (d *directory) Rmdir(string) error { return syscall.EPERM }

// Rename implements fs.Directory.
func (d *directory) Rename(string, fs.Directory, string, fs.RenameFlags) error { return syscall.EPERM }
