// Package pseudo implements file systems whose files are generated when they are read: /proc, /sys
// and /sys/fs/cgroup. It also implements the devices of /dev that need no hardware.
//
// A FileSystem is built by File, Fixed, Folder, Link and List before it is mounted. Afterwards it does
// not change, except for the results of the functions passed to it. Programs can only read it, except for
// files of Process.Settings. As on Linux, opening a file for writing returns EACCES, and creating a file returns ENOENT.
//
// Reading order: pseudo.go, node.go; proc.go, sys.go and cgroup.go with the files that exist;
// device.go.
package pseudo

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"loam/fs"
)

// Magic numbers of statfs(2).
const (
	ProcMagic   = 0x9fa0
	SysMagic    = 0x62656572
	CgroupMagic = 0x63677270
)

// FileSystem is a file system of generated files.
type FileSystem struct {
	magic int64 // f_type of statfs(2)
	root  *directory
	inode uint64  // last inode number
	since fs.Time // all timestamps of all files

	replaced map[string]func() string // see Process.Replaced; a file that has been added is no longer in it
	settings map[string]Setting       // files that are added later in place of read-only files with the same paths
}

// Extension is further entries of the root, which change while the file system is in use.
type Extension interface {
	// SetRoot is called once, with the directory that becomes the parent of the entries.
	SetRoot(root fs.Directory)
	// Lookup returns the entry with a name, or nil.
	Lookup(name string) fs.Node
	// NameOf returns the name of a directory among the entries.
	NameOf(child fs.Directory) (string, bool)
	// Read yields the entries after a cursor, as fs.Directory.
	Read(cursor uint64, yield func(fs.Entry) bool)
}

// Extend adds entries to the root. A file system has at most one extension.
func (f *FileSystem) Extend(e Extension) {
	f.root.extension = e
	e.SetRoot(f.root)
}

// New returns an empty file system. magic is its f_type in statfs(2).
func New(magic int64) *FileSystem {
	f := &FileSystem{magic: magic, since: fs.Tick(time.Now())}
	f.root = f.newDirectory(nil)
	return f
}

// Root implements fs.FileSystem.
func (f *FileSystem) Root() fs.Directory { return f.root }

// Usage implements fs.FileSystem.
func (f *FileSystem) Usage() fs.Usage {
	return fs.Usage{Type: f.magic, BlockSize: blockSize, MaxNameLength: fs.MaxName}
}

// Kind implements fs.Single.
func (f *FileSystem) Kind() string {
	switch f.magic {
	case ProcMagic:
		return "proc"
	case SysMagic:
		return "sysfs"
	}
	return "cgroup2"
}

// Sync implements fs.FileSystem.
func (f *FileSystem) Sync() error { return nil }

// File adds a file. text is called for each read at the start of the file, possibly by several goroutines at
// once.
func (f *FileSystem) File(path string, text func() string) {
	if _, ok := f.settings[path]; ok {
		return
	}
	if other := f.replaced[path]; other != nil {
		text = other
		delete(f.replaced, path)
	}
	n := file{f.newNode(fs.Regular | 0o444), text}
	if f.isSysctl(path) {
		f.add(path, &fixed{n})
	} else {
		f.add(path, &n)
	}
}

// Fixed adds a file with constant content.
func (f *FileSystem) Fixed(path, text string) { f.File(path, func() string { return text }) }

// private adds a file with constant content that only its owner, root, may read.
func (f *FileSystem) private(path, text string) {
	n := &file{text: func() string { return text }}
	n.node = f.newNode(fs.Regular | 0o400)
	f.add(path, n)
}

// Folder adds an empty directory.
func (f *FileSystem) Folder(path string) { f.add(path, f.newDirectory(nil)) }

// Link adds a symbolic link. target is called each time the link is read.
func (f *FileSystem) Link(path string, target func() string) {
	n := &link{target: target}
	n.node = f.newNode(fs.Symlink | 0o777)
	f.add(path, n)
}

// List adds a directory of symbolic links. names returns the current names, and target the target of a
// link.
func (f *FileSystem) List(path string, names func() []string, target func(name string) string) {
	d := f.newDirectory(nil)
	d.names, d.target = names, target
	f.add(path, d)
}

// add adds a node at a path, and the directories above it. It panics if the path exists.
func (f *FileSystem) add(path string, n fs.Node) {
	dir := f.root
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		sub, there := dir.child(name).(*directory)
		if !there {
			sub = f.newDirectory(dir)
			dir.enter(name, sub)
		}
		dir = sub
	}
	name := names[len(names)-1]
	if dir.child(name) != nil {
		panic(fmt.Sprintf("pseudo: %s is there twice", path))
	}
	dir.enter(name, n)
	if d, ok := n.(*directory); ok {
		d.parent = dir
	}
}

// inOrder yields the elements of a map sorted by name, so that listings are reproducible.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}
