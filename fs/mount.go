package fs

import (
	"maps"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
)

// Place is a node together with the mount through which it is reached. If a file system is mounted
// twice, each node has two places. Places are comparable. The zero Place is no place.
type Place struct {
	mount *mount
	Node  Node
}

// directory returns the place's node as a Directory. Errors: ENOTDIR.
func (p Place) directory() (Directory, error) {
	if d, ok := p.Node.(Directory); ok {
		return d, nil
	}
	return nil, linux.ENOTDIR
}

// Device returns the device number of the place's file system (st_dev).
func (p Place) Device() Device { return p.mount.device }

// Usage implements statfs(2) for the place's file system.
func (p Place) Usage() Usage {
	u := p.mount.fs.Usage()
	u.Mount = MountFlags(p.mount.flags.Load())
	u.ReadOnly = u.ReadOnly || p.writable() != nil
	return u
}

// Sync implements syncfs(2).
func (p Place) Sync() error { return p.mount.fs.Sync() }

// writable returns EROFS if the mount or its file system is read-only, and nil otherwise.
func (p Place) writable() error {
	if p.mount.has(ReadOnlyMount) || p.mount.isReadOnly() {
		return linux.EROFS
	}
	return nil
}

// mount is a file system mounted in the tree.
type mount struct {
	fs     FileSystem
	guards Guarding // fs, if it implements Guarding; otherwise nil
	glance Glancing // fs, if it implements Glancing; otherwise nil
	file   Node     // mounted instead of the root, if only one file or directory of fs is mounted
	// at is the mount point, which the mount covers; nil for the root of the tree and for a mount that was never attached.
	at     atomic.Pointer[Place]
	device Device        // device number of the files in fs (st_dev)
	flags  atomic.Uint32 // MountFlags
	frozen *atomic.Bool  // the file system is read-only (see SetReadOnly); all its mounts share the value. nil: it is not
	number uint32        // mounts are numbered in the order in which they are made
	about  *Mounted      // set for mounts that programs make; Tree.mu guards it in a mount that is attached

	covered atomic.Bool  // another file system is mounted on one of the files of this one
	slot    atomic.Int32 // index in mounts.crossings of the tree in which the mount is
}

// root returns the place of the mounted root. It calls FileSystem.Root each time, so that a file system
// may be opened lazily.
func (m *mount) root() Place {
	if m.file != nil {
		return Place{m, m.file}
	}
	return Place{m, m.fs.Root()}
}

// OpenDevice opens a device.
type OpenDevice func(Flags) (Handle, error)

// deviceKey identifies a driver. Character and block devices have separate numbers.
type deviceKey struct {
	kind Mode
	Device
}

// Tree is a tree of names. It consists of mounted file systems, and of the drivers behind device files.
// Lookups take no lock.
type Tree struct {
	*common
	number uint32 // see Number
	root   *mount
	mounts atomic.Pointer[mounts]
	mu     sync.Mutex // held while mounts is replaced

	changes mountChanges
}

// common is the part of a Tree that its copies share.
type common struct {
	drivers sync.Map                // drivers of devices, from deviceKey to OpenDevice
	singles sync.Map                // the newest *mount that Mount has made of each Single, by its type
	watcher atomic.Pointer[Watcher] // the watcher; nil: none
	lessor  atomic.Pointer[Lessor]  // see SetLessor; nil: none
	cookies atomic.Uint32           // the newest value of Notice.Cookie
	serial  atomic.Uint32           // number of the newest mount
	copies  atomic.Uint32           // number of the newest copy of the tree
	// capabilitySets counts the calls that have set CapabilityXattr of a file, beginning with 1.
	capabilitySets atomic.Uint64
	memory         *mount // file system of SetMemory; nil: none
}

// NewTree returns a tree with one file system, mounted at "/".
func NewTree(root FileSystem) *Tree {
	t := &Tree{common: &common{}}
	t.capabilitySets.Store(1)
	t.root = &mount{fs: root, frozen: new(atomic.Bool), device: deviceOf(root, t.serial.Add(1))}
	t.root.learn()
	t.mounts.Store(newMounts(t.root, map[Place]*mount{}))
	return t
}

// OnDevice is a FileSystem on a block device with a number, which is st_dev of its files. The zero Device is no number.
type OnDevice interface {
	FileSystem
	Device() Device
}

// deviceOf returns the device number of a mount: the number of the block device, or serial if there is none.
func deviceOf(f FileSystem, serial uint32) Device {
	if on, ok := f.(OnDevice); ok && on.Device() != (Device{}) {
		return on.Device()
	}
	return Device{Minor: serial}
}

// Number returns 0 for a tree of NewTree, and 1, 2 and so on for its copies.
func (t *Tree) Number() uint32 { return t.number }

// Root returns the place of "/".
func (t *Tree) Root() Place { return t.cross(t.root.root()) }

// Mount mounts a file system on a directory (the parameter at). It hides what was there
// before, as a later mount at the same place hides this one. Errors: ENOTDIR.
func (t *Tree) Mount(f FileSystem, at Place, readOnly bool) error {
	if _, err := at.directory(); err != nil {
		return err
	}
	m := &mount{fs: f}
	t.mount(m, at, readOnlyFlag(readOnly))
	if s, ok := f.(Single); ok {
		t.singles.Store(s.Kind(), m)
	}
	return nil
}

// MountFile mounts a single file of a file system on a file (the parameter at). Errors: EISDIR.
func (t *Tree) MountFile(f FileSystem, file Node, at Place, readOnly bool) error {
	for _, n := range [...]Node{file, at.Node} {
		if n.Attr().Mode.Type() == Dir {
			return linux.EISDIR
		}
	}
	t.mount(&mount{fs: f, file: file}, at, readOnlyFlag(readOnly))
	return nil
}

func readOnlyFlag(on bool) MountFlags {
	if on {
		return ReadOnlyMount
	}
	return 0
}

// mount adds a mount at a place. If m.device is zero, the mount gets a new device number.
func (t *Tree) mount(m *mount, at Place, flags MountFlags) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prepare(m, flags)
	t.attach(m, t.cross(at), maps.Clone(t.mounts.Load().at))
}

// prepare sets the number, the device and the flags of a new mount.
func (t *Tree) prepare(m *mount, flags MountFlags) {
	m.number = t.serial.Add(1)
	m.flags.Store(uint32(flags))
	if m.frozen == nil {
		m.frozen = new(atomic.Bool)
	}
	m.learn()
	if m.device == (Device{}) {
		m.device = deviceOf(m.fs, m.number)
	}
}

// learn records which interfaces the file system implements.
func (m *mount) learn() {
	m.guards, _ = m.fs.(Guarding)
	m.glance, _ = m.fs.(Glancing)
}

// attach makes a mount cover a place, in a new table of all mounts. The caller holds mu.
func (t *Tree) attach(m *mount, at Place, table map[Place]*mount) {
	if old := t.mounts.Load(); old.crossingsOf(m) == nil {
		m.slot.Store(int32(old.freeSlot()))
	}
	m.at.Store(&at)
	at.mount.covered.Store(true)
	table[at] = m
	t.mounts.Store(newMounts(t.root, table))
	t.changes.report()
}

// parent returns the parent of a directory, across mounts.
func (t *Tree) parent(p Place) Place {
	for p == p.mount.root() {
		at := p.mount.at.Load()
		if at == nil { // the root of this tree, or of a tree that this one is a copy of; or of a detached mount
			return p
		}
		p = *at
	}
	d, err := p.directory()
	if err != nil {
		return p
	}
	return t.cross(Place{p.mount, d.Parent()})
}

// AddDevice registers a driver: the function that opens the device files of a type (CharDevice or
// BlockDevice) with a number.
func (t *Tree) AddDevice(kind Mode, d Device, open OpenDevice) {
	t.drivers.Store(deviceKey{kind, d}, open)
}

// openDevice opens a device file. Errors: ENXIO if no driver is registered for its number.
func (t *Tree) openDevice(kind Mode, d Device, flags Flags) (Handle, error) {
	open, ok := t.drivers.Load(deviceKey{kind, d})
	if !ok {
		return nil, linux.ENXIO
	}
	return open.(OpenDevice)(flags)
}

// Sync implements sync(2) for every file system. It returns the first error.
func (t *Tree) Sync() error {
	first := t.root.fs.Sync()
	for _, m := range t.mounts.Load().at {
		if err := m.fs.Sync(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
