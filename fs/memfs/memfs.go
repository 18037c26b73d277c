// Package memfs is a file system in memory: the root of a guest, its /tmp, and
// what device files live in.
//
// # State and locks
//
// One lock of the file system, names, guards every directory: names, parents
// and link counts. So a rename, which concerns two directories and maybe two
// files, is one critical section and needs no order of locks. Each node has a
// lock of its own for attributes and content. Who holds both took names first.
//
// A directory is a list of entries in the order in which they were made, with
// rising cursors, and an index by name. A removed entry stays in the list as a
// hole until half of the list is holes; so listing 100,000 names while others
// come and go is a binary search and a walk.
//
// Content is pages of 4 KiB in leaves of 512; what was never written has no
// page. Below the pages may lie content that is somebody else's, and only read.
// A file that has neither name nor handle gives its pages back.
//
// Rejected: a tree of names balanced by comparison (slower to list, no faster to
// find), a single slice a file (growing copies everything; a hole costs memory).
package memfs

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"loam/fs"
)

// Magic is f_type of statfs(2): that of tmpfs, whose place this takes.
const Magic = 0x01021994

// MaxSize is the largest file: 1 TiB, for which the table of leaves has 4 MiB.
const MaxSize = 1 << 40

// Config says how large the file system may become. The zero Config is good.
type Config struct {
	Bytes int64            // of content, in whole pages; 0: no bound
	Files int64            // of any type; 0: no bound
	Mode  fs.Mode          // permissions of the root directory; 0: 0755
	Now   func() time.Time // the clock; nil: time.Now
}

// FileSystem is a file system in memory.
type FileSystem struct {
	config Config
	root   *directory
	names  sync.RWMutex // see the package comment
	inode  atomic.Uint64
	pages  atomic.Int64 // held
	files  atomic.Int64 // that exist, by name or open
}

// New returns an empty file system.
func New(c Config) *FileSystem {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Mode == 0 {
		c.Mode = 0o755
	}
	m := &FileSystem{config: c}
	m.root = newDirectory(m, c.Mode&fs.Permissions, fs.Owner{})
	m.root.parent = m.root
	return m
}

// Root implements fs.FileSystem.
func (m *FileSystem) Root() fs.Directory { return m.root }

// Sync implements fs.FileSystem: memory is all there is.
func (m *FileSystem) Sync() error { return nil }

// Usage implements fs.FileSystem.
func (m *FileSystem) Usage() fs.Usage {
	u := fs.Usage{Type: Magic, BlockSize: pageSize, MaxNameLength: fs.MaxName}
	if m.config.Bytes > 0 {
		u.Blocks = uint64(m.config.Bytes / pageSize)
		u.BlocksFree = u.Blocks - min(u.Blocks, uint64(m.pages.Load()))
	}
	if m.config.Files > 0 {
		u.Files = uint64(m.config.Files)
		u.FilesFree = u.Files - min(u.Files, uint64(m.files.Load()))
	}
	return u
}

func (m *FileSystem) now() fs.Time { return fs.Time(m.config.Now().UnixNano()) }

// takePages makes room for n pages: ENOSPC when there is none. A negative n
// gives pages back.
func (m *FileSystem) takePages(n int64) error { return take(&m.pages, n, m.config.Bytes/pageSize) }

// takeFile makes room for one more file.
func (m *FileSystem) takeFile() error { return take(&m.files, 1, m.config.Files) }

func take(held *atomic.Int64, n, bound int64) error {
	if held.Add(n) > bound && bound > 0 && n > 0 {
		held.Add(-n)
		return syscall.ENOSPC
	}
	return nil
}

// node is what files of all types have.
type node struct {
	system *FileSystem
	links  uint32 // guarded by system.names

	// The newest name, guarded by system.names. nil: it has gone.
	in *directory
	as string

	mu     sync.RWMutex
	attr   fs.Attr // without Links; guarded by mu
	xattrs xattrs  // guarded by mu
}

func (n *node) init(m *FileSystem, mode fs.Mode, owner fs.Owner) {
	now := m.now()
	n.system = m
	n.attr = fs.Attr{
		Inode: m.inode.Add(1), Mode: mode, UID: owner.UID, GID: owner.GID, BlockSize: pageSize,
		Access: now, Modify: now, Status: now,
	}
}

// Attr implements fs.Node.
func (n *node) Attr() fs.Attr {
	n.system.names.RLock()
	links := n.links
	n.system.names.RUnlock()
	n.mu.RLock()
	defer n.mu.RUnlock()
	a := n.attr
	a.Links = links
	return a
}

// Change implements fs.Node, for files that have no size to set.
func (n *node) Change(c fs.Change) error {
	if c.Fields&fs.SetSize != 0 {
		return syscall.EINVAL
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.change(c)
	return nil
}

// change changes all but the size; mu is held.
func (n *node) change(c fs.Change) {
	a := &n.attr
	if c.Fields&fs.SetMode != 0 {
		a.Mode = a.Mode.Type() | c.Mode&fs.Permissions
	}
	if c.Fields&fs.SetOwner != 0 {
		a.UID = c.UID
	}
	if c.Fields&fs.SetGroup != 0 {
		a.GID = c.GID
	}
	if c.Fields&fs.SetAccess != 0 {
		a.Access = c.Access
	}
	if c.Fields&fs.SetModify != 0 {
		a.Modify = c.Modify
	}
	a.Status = n.system.now()
}

// touch marks that the content or, without content, that something else changed.
func (n *node) touch(content bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attr.Status = n.system.now()
	if content {
		n.attr.Modify = n.attr.Status
	}
}

// inode is the node of any file of this package.
type inode interface {
	fs.Node
	common() *node
	// takesName is called of a file without a name that is to get one, and says whether it does.
	takesName() bool
	// unlinked is called when the last name has gone, and moved when the file went
	// from one directory to another or got another name; both with names locked.
	unlinked()
	moved(from, to *directory, name string)
}

func (n *node) common() *node { return n }

func (n *node) takesName() bool { return false }

func (n *node) unlinked() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropXattrs()
	n.system.files.Add(-1)
}

// special is a FIFO, a socket or a device: a name and a number, and whoever
// opens it asks the tree.
type special struct{ node }

// Open implements fs.Node.
func (s *special) Open(fs.Flags) (fs.Handle, error) { return nil, syscall.ENXIO }

// symlink is a symbolic link.
type symlink struct {
	node
	target string
}

// Open implements fs.Node; a link is never opened itself.
func (l *symlink) Open(fs.Flags) (fs.Handle, error) { return nil, syscall.ELOOP }

// Target implements fs.Link.
func (l *symlink) Target() (string, error) { return l.target, nil }
