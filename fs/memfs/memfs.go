// Package memfs is a file system in memory. It serves as the root of a guest, as its /tmp, and for
// device files.
//
// # State and locks
//
// One lock of the file system, names, guards every directory: names, parents and link counts. A rename,
// which concerns two directories and up to two files, is thus one critical section and needs no lock
// order among directories. Each node has its own lock, mu, for attributes and content. The lock order
// is names, then mu.
//
// A directory is a list of entries in the order of their creation, with ascending cursors, and an index
// by name. A removed entry stays in the list as a hole until half of the list is holes. Listing 100,000
// names while others are added and removed is thus a binary search and a scan.
//
// Content consists of pages of 4 KiB in leaves of 512 pages. A page that was never written is not
// allocated. Below the pages there may be content that belongs to the caller and is only read: see
// SetContent. A file with neither name nor handle frees its pages. With a page cache (Source), the content is
// there instead, so that Linux programs can map it.
//
// Rejected: a balanced tree of names, which is slower to list and no faster to search; and one slice
// for a file, because growing copies everything and a hole uses memory.
package memfs

import (
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/fs"
)

// Magic is the f_type of statfs(2). It is tmpfs's, because memfs takes its place.
const Magic = 0x01021994

// MaxSize is the maximum size of a file: 1 TiB, for which the table of leaves takes 4 MiB.
const MaxSize = 1 << 40

// Config limits the size of the file system. The zero Config is valid.
type Config struct {
	Bytes int64            // maximum size of contents, in whole pages; 0: no limit
	Files int64            // maximum number of files of any type; 0: no limit
	Mode  fs.Mode          // permissions of the root directory; 0: 0755
	Now   func() time.Time // the clock; nil: time.Now
	// Source supplies contents from a page cache; nil: contents are in the Go heap.
	Source *Source
}

// FileSystem is a file system in memory.
type FileSystem struct {
	config Config
	root   *directory
	names  sync.RWMutex // guards the names of all directories: see the package comment
	inode  atomic.Uint64
	pages  atomic.Int64 // number of allocated pages
	files  atomic.Int64 // files with a name or an open handle
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

// LimitFiles allows n files in addition to the present ones. It is called before programs use the file system.
func (m *FileSystem) LimitFiles(n int64) { m.config.Files = m.files.Load() + n }

// Sync implements fs.FileSystem. There is no stable storage.
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

func (m *FileSystem) now() fs.Time { return fs.Tick(m.config.Now()) }

// takePages accounts for n more pages. Errors: ENOSPC at the limit. A negative n returns pages.
func (m *FileSystem) takePages(n int64) error { return take(&m.pages, n, m.config.Bytes/pageSize) }

// takeFile accounts for one more file. Errors: ENOSPC at the limit.
func (m *FileSystem) takeFile() error { return take(&m.files, 1, m.config.Files) }

func take(held *atomic.Int64, n, bound int64) error {
	if held.Add(n) > bound && bound > 0 && n > 0 {
		held.Add(-n)
		return linux.ENOSPC
	}
	return nil
}

// node is the common part of files of all types.
type node struct {
	system   *FileSystem
	links    uint32 // number of names, guarded by system.names
	identity fs.Identity

	// The newest name, guarded by system.names. in is nil if that name has been removed.
	in *directory
	as string

	mu     sync.RWMutex
	attr   fs.Attr // attributes without the field Links; guarded by mu
	xattrs xattrs  // extended attributes, guarded by mu
}

func (n *node) init(m *FileSystem, mode fs.Mode, owner fs.Owner) {
	now := m.now()
	n.system = m
	n.attr = fs.Attr{
		Inode: m.inode.Add(1), Mode: mode, UID: owner.UID, GID: owner.GID, BlockSize: pageSize,
		Access: now, Modify: now, Status: now, ACL: owner.ACL,
	}
	n.takeLists()
}

// Identity implements fs.Identified.
func (n *node) Identity() *fs.Identity { return &n.identity }

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

// Change implements fs.Node for files without a size.
func (n *node) Change(c fs.Change) error {
	if c.Fields&fs.SetSize != 0 {
		return linux.EINVAL
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.change(c)
}

// change changes all attributes but the size. The caller holds mu. Errors: those of protect.
func (n *node) change(c fs.Change) error {
	a := &n.attr
	if err := n.protect(c); err != nil {
		return err
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
	return nil
}

// touch updates the status time, and with content also the modification time.
func (n *node) touch(content bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attr.Status = n.system.now()
	if content {
		n.attr.Modify = n.attr.Status
	}
}

// inode is the node of a file of any type in this package.
type inode interface {
	fs.Node
	common() *node
	// takesName is called before a file without a name gets one. It reports whether that is allowed.
	takesName() bool
	// unlinked is called after the last name has been removed, and moved after the file has got
	// another directory or name. Both are called with system.names locked.
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

// special is a FIFO, a socket or a device. The tree or its caller opens it.
type special struct{ node }

// Open implements fs.Node.
func (s *special) Open(fs.Flags) (fs.Handle, error) { return nil, linux.ENXIO }

// symlink is a symbolic link.
type symlink struct {
	node
	target string
}

// Open implements fs.Node. A symbolic link cannot be opened itself.
func (l *symlink) Open(fs.Flags) (fs.Handle, error) { return nil, linux.ELOOP }

// Target implements fs.Link.
func (l *symlink) Target() (string, error) { return l.target, nil }
