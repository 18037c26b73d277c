package fs

import (
	"sync"
	"sync/atomic"
	"syscall"
)

// Place is a file as it is reached: the same file system mounted twice has two
// places for each node. Places are comparable; the zero Place is nowhere.
type Place struct {
	mount *mount
	Node  Node
}

// directory is the node of a place that is known to be one, or ENOTDIR.
func (p Place) directory() (Directory, error) {
	if d, ok := p.Node.(Directory); ok {
		return d, nil
	}
	return nil, syscall.ENOTDIR
}

// Device is the number of the file system that the place is on, st_dev.
func (p Place) Device() Device { return p.mount.device }

// Usage is what statfs(2) tells of the file system that the place is on.
func (p Place) Usage() Usage {
	u := p.mount.fs.Usage()
	u.ReadOnly = u.ReadOnly || p.mount.readOnly
	return u
}

// Sync is syncfs(2).
func (p Place) Sync() error { return p.mount.fs.Sync() }

// writable tells whether the mount allows changes: nil or EROFS.
func (p Place) writable() error {
	if p.mount.readOnly {
		return syscall.EROFS
	}
	return nil
}

// mount is a file system in the tree.
type mount struct {
	fs       FileSystem
	file     Node  // what is seen at its place, if that is one file of fs and not its root
	at       Place // what it hides; zero for the root of the tree
	device   Device
	readOnly bool
}

// root is what is seen there. A file system is asked for its root each time, and not
// before somebody looks.
func (m *mount) root() Place {
	if m.file != nil {
		return Place{m, m.file}
	}
	return Place{m, m.fs.Root()}
}

// OpenDevice makes a handle of a device.
type OpenDevice func(Flags) (Handle, error)

// deviceKey names a driver: character and block devices are numbered apart.
type deviceKey struct {
	kind Mode
	Device
}

// Tree is the one tree of names: file systems and where they are mounted, and
// the devices that device files stand for. Looking up takes no lock.
type Tree struct {
	root    *mount
	mounts  atomic.Pointer[map[Place]*mount] // by what they hide; replaced, never changed
	drivers sync.Map                         // deviceKey -> OpenDevice
	watcher atomic.Pointer[Watcher]          // nil: nobody watches
	cookies atomic.Uint32                    // of Notice

	mu     sync.Mutex // held while a table is replaced
	serial uint32     // minor number of the newest mount
}

// NewTree returns a tree with one file system, at "/".
func NewTree(root FileSystem) *Tree {
	t := &Tree{serial: 1}
	t.root = &mount{fs: root, device: Device{Minor: 1}}
	t.mounts.Store(&map[Place]*mount{})
	return t
}

// Root is the place of "/".
func (t *Tree) Root() Place { return t.cross(t.root.root()) }

// Mount puts a file system over the directory at. What was there is hidden, and
// a later mount at the same place hides this one. Errors: ENOTDIR.
func (t *Tree) Mount(f FileSystem, at Place, readOnly bool) error {
	if _, err := at.directory(); err != nil {
		return err
	}
	t.mount(&mount{fs: f, readOnly: readOnly}, at)
	return nil
}

// MountFile puts one file of a file system over the file at. Errors: EISDIR.
func (t *Tree) MountFile(f FileSystem, file Node, at Place, readOnly bool) error {
	for _, n := range [...]Node{file, at.Node} {
		if n.Attr().Mode.Type() == Dir {
			return syscall.EISDIR
		}
	}
	t.mount(&mount{fs: f, file: file, readOnly: readOnly}, at)
	return nil
}

func (t *Tree) mount(m *mount, at Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serial++
	m.device = Device{Minor: t.serial}
	old := *t.mounts.Load()
	table := make(map[Place]*mount, len(old)+1)
	for place, over := range old {
		table[place] = over
	}
	m.at = t.cross(at)
	table[m.at] = m
	t.mounts.Store(&table)
}

// cross is what is seen at a place: the root of what is mounted there, if
// anything is.
func (t *Tree) cross(p Place) Place {
	table := *t.mounts.Load()
	for len(table) > 0 {
		m, ok := table[p]
		if !ok {
			break
		}
		p = m.root()
	}
	return p
}

// parent is the directory above a directory, across mounts.
func (t *Tree) parent(p Place) Place {
	for p == p.mount.root() {
		if p.mount == t.root {
			return p
		}
		p = p.mount.at
	}
	d, err := p.directory()
	if err != nil {
		return p
	}
	return t.cross(Place{p.mount, d.Parent()})
}

// AddDevice says how the device files of a type, CharDevice or BlockDevice, with
// a number are opened.
func (t *Tree) AddDevice(kind Mode, d Device, open OpenDevice) {
	t.drivers.Store(deviceKey{kind, d}, open)
}

// openDevice opens a device file. Errors: ENXIO when no device has its number.
func (t *Tree) openDevice(a Attr, flags Flags) (Handle, error) {
	open, ok := t.drivers.Load(deviceKey{a.Mode.Type(), a.Device})
	if !ok {
		return nil, syscall.ENXIO
	}
	return open.(OpenDevice)(flags)
}

// Sync is sync(2): every file system, and the first error.
func (t *Tree) Sync() error {
	first := t.root.fs.Sync()
	for _, m := range *t.mounts.Load() {
		if err := m.fs.Sync(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
