package pseudo

import (
	"sort"
	"strconv"
	"sync"

	"loam/abi/linux"
	"loam/fs"
)

const blockSize = 1024

// node is the common part of files of all types.
type node struct {
	system *FileSystem
	inode  uint64
	mode   fs.Mode
}

func (f *FileSystem) newNode(mode fs.Mode) node {
	f.inode++
	return node{f, f.inode, mode}
}

// Attr implements fs.Node. The size of a file is unknown before it is read, and reported as 0, as on
// Linux.
func (n *node) Attr() fs.Attr {
	return fs.Attr{
		Inode: n.inode, Mode: n.mode, Links: 1, BlockSize: blockSize,
		Access: n.system.since, Modify: n.system.since, Status: n.system.since,
	}
}

// Change implements fs.Node.
func (n *node) Change(fs.Change) error { return linux.EPERM }

// file is a file whose content is generated when it is read.
type file struct {
	node
	text func() string
}

// Open implements fs.Node.
func (f *file) Open(flags fs.Flags) (fs.Handle, error) {
	if flags.MayWrite() {
		return nil, linux.EACCES
	}
	return &generated{text: f.text}, nil
}

// generated is an open file. A read at offset 0 generates the content, because programs rewind a file to read it again; other reads
// continue in the same content.
type generated struct {
	handle
	text func() string

	mu   sync.Mutex // guards handle and made; text is called without it
	made bool
}

// ReadAt implements fs.Handle.
func (g *generated) ReadAt(p []byte, offset int64) (int, error) {
	g.mu.Lock()
	content, made := g.handle, g.made
	g.mu.Unlock()
	if offset == 0 || !made {
		content = handle(g.text())
		g.mu.Lock()
		g.handle, g.made = content, true
		g.mu.Unlock()
	}
	return content.ReadAt(p, offset)
}

// handle is the content of an open file.
type handle string

// ReadAt implements fs.Handle.
func (h handle) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= int64(len(h)) {
		return 0, nil
	}
	return copy(p, h[offset:]), nil
}

// WriteAt implements fs.Handle.
func (h handle) WriteAt([]byte, int64) (int, error) { return 0, linux.EBADF }

// Append implements fs.Handle.
func (h handle) Append([]byte) (int, int64, error) { return 0, 0, linux.EBADF }

// Immediate implements fs.Immediate.
func (h handle) Immediate() {}

// Sync implements fs.Handle.
func (h handle) Sync() error { return linux.EINVAL }

// Close implements fs.Handle.
func (h handle) Close() error { return nil }

// link is a symbolic link.
type link struct {
	node
	target func() string
}

// Open implements fs.Node.
func (l *link) Open(fs.Flags) (fs.Handle, error) { return nil, linux.ELOOP }

// Target implements fs.Link.
func (l *link) Target() (string, error) { return l.target(), nil }

// directory has fixed entries, or symbolic links returned by names.
type directory struct {
	node
	parent  *directory // nil: the directory is its own parent
	entries []entry
	names   func() []string
	target  func(name string) string

	extension Extension // nil: none
}

type entry struct {
	name string
	node fs.Node
}

func (f *FileSystem) newDirectory(parent *directory) *directory {
	return &directory{node: f.newNode(fs.Dir | 0o555), parent: parent}
}

func (d *directory) enter(name string, n fs.Node) { d.entries = append(d.entries, entry{name, n}) }

// child returns the node with a name, or nil.
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
func (d *directory) Open(fs.Flags) (fs.Handle, error) { return nil, linux.EISDIR }

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
	if d.extension != nil {
		if n := d.extension.Lookup(name); n != nil {
			return n, nil
		}
	}
	return nil, linux.ENOENT
}

// listed returns a link of List. Two calls with the same name return equal values, as fs.Node requires.
func (d *directory) listed(name string) fs.Node { return listedLink{d, name} }

// listedLink is an entry of a directory added by List.
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

// inode returns an inode number, which is unique for names that are decimal numbers, as in
// /proc/self/fd.
func (l listedLink) inode() uint64 {
	n, _ := strconv.ParseUint(l.name, 10, 32)
	return l.dir.inode<<32 | n + 1
}

// Change implements fs.Node.
func (l listedLink) Change(fs.Change) error { return linux.EPERM }

// Open implements fs.Node.
func (l listedLink) Open(fs.Flags) (fs.Handle, error) { return nil, linux.ELOOP }

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
	if d.extension != nil {
		return d.extension.NameOf(child)
	}
	return "", false
}

// Read implements fs.Directory. The cursor of a listed link is derived from its name, which is a
// decimal number. So it stays valid when other links appear and disappear.
func (d *directory) Read(cursor uint64, yield func(fs.Entry) bool) error {
	for i, e := range d.entries {
		if at := uint64(i) + 1; at > cursor {
			a := e.node.Attr()
			if !yield(fs.Entry{Name: e.name, Inode: a.Inode, Type: a.Mode.Type(), Cursor: at}) {
				return nil
			}
		}
	}
	if d.extension != nil {
		own := uint64(len(d.entries))
		d.extension.Read(cursor-min(cursor, own), func(e fs.Entry) bool {
			e.Cursor += own
			return yield(e)
		})
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

// Methods that would modify a directory. As on Linux, all of them fail.

// Make implements fs.Directory.
func (d *directory) Make(string, fs.Mode, fs.Owner, fs.Device) (fs.Node, error) {
	return nil, linux.ENOENT
}

// Symlink implements fs.Directory.
func (d *directory) Symlink(string, string, fs.Owner) (fs.Node, error) { return nil, linux.ENOENT }

// Link implements fs.Directory.
func (d *directory) Link(string, fs.Node) error { return linux.EPERM }

// Unlink implements fs.Directory.
func (d *directory) Unlink(name string) error { return linux.EPERM }

// Rmdir implements fs.Directory.
func (d *directory) Rmdir(string) error { return linux.EPERM }

// Rename implements fs.Directory.
func (d *directory) Rename(string, fs.Directory, string, fs.RenameFlags) error { return linux.EPERM }
