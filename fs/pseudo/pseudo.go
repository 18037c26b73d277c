// Package pseudo is what is no file and looks like one: /proc, /sys and /sys/fs/cgroup, whose
// files are made when they are read, and the devices of /dev that need no
// hardware.
//
// A FileSystem is put together once, by File, Link and List, before it is
// mounted; from then on nothing of it changes but what its functions return.
// Programs can read it and nothing else: what is written to a file is EACCES, and
// a file that is made ENOENT, as on Linux.
//
// Reading order: pseudo.go, node.go; proc.go, sys.go and cgroup.go say what there is;
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

// FileSystem is a file system of files that are made when they are read.
type FileSystem struct {
	magic int64
	root  *directory
	inode uint64
	since fs.Time
}

// New returns an empty file system; magic is what statfs(2) calls it.
func New(magic int64) *FileSystem {
	f := &FileSystem{magic: magic, since: fs.Time(time.Now().UnixNano())}
	f.root = f.newDirectory(nil)
	return f
}

// Root implements fs.FileSystem.
func (f *FileSystem) Root() fs.Directory { return f.root }

// Usage implements fs.FileSystem.
func (f *FileSystem) Usage() fs.Usage {
	return fs.Usage{Type: f.magic, BlockSize: blockSize, MaxNameLength: fs.MaxName}
}

// Sync implements fs.FileSystem.
func (f *FileSystem) Sync() error { return nil }

// File adds a file; text is called when somebody opens it.
func (f *FileSystem) File(path string, text func() string) {
	n := &file{text: text}
	n.node = f.newNode(fs.Regular | 0o444)
	f.add(path, n)
}

// Fixed adds a file that always says the same.
func (f *FileSystem) Fixed(path, text string) { f.File(path, func() string { return text }) }

// Folder adds an empty folder.
func (f *FileSystem) Folder(path string) { f.add(path, f.newDirectory(nil)) }

// Link adds a symbolic link.
func (f *FileSystem) Link(path string, target func() string) {
	n := &link{target: target}
	n.node = f.newNode(fs.Symlink | 0o777)
	f.add(path, n)
}

// List adds a folder of symbolic links, of which names says which there are now.
func (f *FileSystem) List(path string, names func() []string, target func(name string) string) {
	d := f.newDirectory(nil)
	d.names, d.target = names, target
	f.add(path, d)
}

// add puts a node at a path, with the folders above it.
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

// inOrder yields what a map has by rising name, so that a listing is the same each time.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}
