// Package devpts is the file system of pseudo-terminals (pts(4)). Each terminal has a file, whose name is its number. Opening
// ptmx creates a terminal and its file, which is removed with the terminal; programs cannot create or remove these files.
//
// Each FileSystem is an instance with numbers of its own, as a mount of Linux's devpts is. Package posix opens the files.
package devpts

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"loam/abi/linux"
	"loam/fs"
)

// Magic is the value of f_type in statfs(2) for devpts.
const Magic = 0x1cd1

// Numbers of devices. A terminal has the minor number of its file.
const (
	Terminal   = 5 // major number of /dev/tty, /dev/console and /dev/ptmx
	TTY        = 0 // minor numbers of the devices with major number 5
	Console    = 1
	Multiplex  = 2
	Slave      = 136 // major number of terminals
	perMajor   = 1 << 20
	most       = 4096 // maximum number of terminals, kernel.pty.max
	group      = 5    // group of the files of terminals: tty on Debian
	rootInode  = 1
	ptmxInode  = 2
	firstInode = 3
	blockSize  = 1024
)

// FileSystem is an instance of devpts. Its methods may be called from several goroutines.
type FileSystem struct {
	root *directory
	ptmx *Node

	mu    sync.Mutex // guards the field nodes
	nodes map[int]*Node
}

// Node is the file of a terminal, or ptmx.
type Node struct {
	mu   sync.Mutex // guards the field attr
	attr fs.Attr
}

// New returns an instance without terminals.
func New() *FileSystem {
	f := &FileSystem{nodes: map[int]*Node{}}
	f.root = &directory{system: f, node: newNode(rootInode, fs.Dir|0o755, fs.Owner{}, fs.Device{})}
	f.root.node.attr.Links = 2
	f.ptmx = newNode(ptmxInode, fs.CharDevice|0o666, fs.Owner{}, fs.Device{Major: Terminal, Minor: Multiplex})
	return f
}

func newNode(inode uint64, mode fs.Mode, owner fs.Owner, device fs.Device) *Node {
	now := fs.Tick(time.Now())
	return &Node{attr: fs.Attr{
		Inode: inode, Mode: mode, Links: 1, UID: owner.UID, GID: owner.GID, Device: device, BlockSize: blockSize,
		Access: now, Modify: now, Status: now,
	}}
}

// Root implements fs.FileSystem.
func (f *FileSystem) Root() fs.Directory { return f.root }

// Usage implements fs.FileSystem.
func (f *FileSystem) Usage() fs.Usage {
	return fs.Usage{Type: Magic, BlockSize: blockSize, MaxNameLength: fs.MaxName}
}

// Kind implements fs.Single.
func (f *FileSystem) Kind() string { return "devpts" }

// Sync implements fs.FileSystem.
func (f *FileSystem) Sync() error { return nil }

// Add creates the file of a terminal, with the lowest free number, for a user. Errors: ENOSPC.
func (f *FileSystem) Add(uid uint32) (number int, n *Node, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.nodes[number] != nil {
		number++
	}
	if number >= most {
		return 0, nil, linux.ENOSPC
	}
	n = newNode(firstInode+uint64(number), fs.CharDevice|0o620, fs.Owner{UID: uid, GID: group}, DeviceOf(number))
	f.nodes[number] = n
	return number, n, nil
}

// DeviceOf returns the device number of a terminal.
func DeviceOf(number int) fs.Device {
	return fs.Device{Major: Slave + uint32(number/perMajor), Minor: uint32(number % perMajor)}
}

// NumberOf returns the number of the terminal with a device number, and whether the device is a terminal.
func NumberOf(d fs.Device) (number int, ok bool) {
	const majors = 8
	return int(d.Major-Slave)*perMajor + int(d.Minor), d.Major >= Slave && d.Major < Slave+majors
}

// Remove removes the file of a terminal. Its number is free again.
func (f *FileSystem) Remove(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.nodes, number)
}

// numbers returns the numbers of the terminals, in order.
func (f *FileSystem) numbers() (all []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range f.nodes {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// Attr implements fs.Node.
func (n *Node) Attr() fs.Attr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.attr
}

// Change implements fs.Node. A change of the size returns EINVAL, because a terminal has no size.
func (n *Node) Change(c fs.Change) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := &n.attr
	if c.Fields&fs.SetSize != 0 {
		return linux.EINVAL
	}
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
	a.Status = fs.Tick(time.Now())
	return nil
}

// Open implements fs.Node. The caller opens devices by their number.
func (n *Node) Open(fs.Flags) (fs.Handle, error) { return nil, linux.ENXIO }

// directory is the root directory of the file system.
type directory struct {
	system *FileSystem
	node   *Node
}

// Attr implements fs.Node.
func (d *directory) Attr() fs.Attr { return d.node.Attr() }

// Change implements fs.Node.
func (d *directory) Change(c fs.Change) error { return d.node.Change(c) }

// Open implements fs.Node.
func (d *directory) Open(fs.Flags) (fs.Handle, error) { return nil, linux.EISDIR }

// Lookup implements fs.Directory.
func (d *directory) Lookup(name string) (fs.Node, error) {
	if name == ptmxName {
		return d.system.ptmx, nil
	}
	number, err := strconv.Atoi(name)
	if err != nil || strconv.Itoa(number) != name {
		return nil, linux.ENOENT
	}
	d.system.mu.Lock()
	defer d.system.mu.Unlock()
	if n := d.system.nodes[number]; n != nil {
		return n, nil
	}
	return nil, linux.ENOENT
}

const ptmxName = "ptmx"

// Parent implements fs.Directory.
func (d *directory) Parent() fs.Directory { return d }

// NameOf implements fs.Directory.
func (d *directory) NameOf(fs.Directory) (string, bool) { return "", false }

// Read implements fs.Directory. The cursor of a terminal is its inode number.
func (d *directory) Read(cursor uint64, yield func(fs.Entry) bool) error {
	if cursor < ptmxInode && !yield(fs.Entry{Name: ptmxName, Inode: ptmxInode, Type: fs.CharDevice, Cursor: ptmxInode}) {
		return nil
	}
	for _, n := range d.system.numbers() {
		at := firstInode + uint64(n)
		if at > cursor && !yield(fs.Entry{Name: strconv.Itoa(n), Inode: at, Type: fs.CharDevice, Cursor: at}) {
			return nil
		}
	}
	return nil
}

// Methods that would change a directory. As on Linux, all of them fail.

// Make implements fs.Directory.
func (d *directory) Make(string, fs.Mode, fs.Owner, fs.Device) (fs.Node, error) {
	return nil, linux.EPERM
}

// Symlink implements fs.Directory.
func (d *directory) Symlink(string, string, fs.Owner) (fs.Node, error) { return nil, linux.EPERM }

// Link implements fs.Directory.
func (d *directory) Link(string, fs.Node) error { return linux.EPERM }

// Unlink implements fs.Directory.
func (d *directory) Unlink(string) error { return linux.EPERM }

// Rmdir implements fs.Directory.
func (d *directory) Rmdir(string) error { return linux.EPERM }

// Rename implements fs.Directory.
func (d *directory) Rename(string, fs.Directory, string, fs.RenameFlags) error { return linux.EPERM }
