package fs

import "loam/abi/linux"

// Files without a name, created by memfd_create(2) and O_TMPFILE, and seals.

// NamelessMaker is a FileSystem that can create regular files without a name. Such a file is deleted
// when its last Handle is closed.
type NamelessMaker interface {
	FileSystem
	// MakeNameless creates a file. Errors: ENOSPC.
	MakeNameless(mode Mode, owner Owner, use NamelessUse) (Node, error)
}

// NamelessUse is the purpose of a file without a name.
type NamelessUse uint8

// Purposes of a file without a name.
const (
	ToSeal NamelessUse = iota // the file can be sealed, and never gets a name
	ToName                    // the file may get its first name from Directory.Link while it is open
	ToKeep                    // the file can neither be sealed nor get a name
)

// Seals is a set of forbidden operations on a file, with the values of fcntl(2).
type Seals uint32

// Seals, each named after the operation that it forbids.
const (
	SealSeals       Seals = 1 << iota // forbids to add seals
	SealShrink                        // forbids to make the file shorter
	SealGrow                          // forbids to make the file longer
	SealWrite                         // forbids to write
	SealFutureWrite                   // forbids to write, except through mappings that exist

	allSeals = SealSeals | SealShrink | SealGrow | SealWrite | SealFutureWrite
)

// Sealable is a Node that supports seals. A forbidden operation returns EPERM.
type Sealable interface {
	Node
	Seals() Seals
	// AddSeals adds seals. Errors: EPERM if SealSeals is set; EBUSY for SealWrite while a program may store to the file
	// through a mapping.
	AddSeals(Seals) error
}

// SetMemory sets the file system for OpenNameless, before the tree is used. It is not mounted, so its files have no path.
func (t *Tree) SetMemory(memory FileSystem) {
	t.memory = &mount{fs: memory, device: deviceOf(memory, t.serial.Add(1))}
}

// OpenNameless creates a file without a name on the file system of Tree.SetMemory, or on the root's file system if there is
// none, and opens the file for reading and writing. It does not apply the umask. Errors: EOPNOTSUPP if the file system does
// not support such files, ENOSPC.
func (v *View) OpenNameless(mode Mode) (*File, error) {
	m := v.Tree.memory
	if m == nil {
		m = v.Tree.root
	}
	maker, ok := m.fs.(NamelessMaker)
	if !ok {
		return nil, linux.EOPNOTSUPP
	}
	n, err := maker.MakeNameless(mode, v.owner(), ToSeal)
	if err != nil {
		return nil, err
	}
	h, err := n.Open(ReadWrite)
	if err != nil {
		return nil, err
	}
	return (&Opening{tree: v.Tree, place: Place{m, n}, handle: h, asked: ReadWrite}).file(), nil
}

// openTemp implements Open with O_TMPFILE: it creates a file without a name in the file system of the
// directory path. With Exclusive the file can never get a name. Errors: EINVAL without write access or
// with Create; EOPNOTSUPP if the file system does not support such files.
func (v *View) openTemp(o *Opening, at Place, path string, flags Flags, mode Mode) error {
	if flags&MustBeDir == 0 || flags&Create != 0 || !flags.MayWrite() {
		return linux.EINVAL
	}
	place, err := v.Lookup(at, path, flags&NoFollow == 0)
	if err != nil {
		return err
	}
	dir, err := v.room(target{dir: place})
	if err != nil {
		return err
	}
	maker, ok := place.mount.fs.(NamelessMaker)
	if !ok {
		return linux.EOPNOTSUPP
	}
	use := ToName
	if flags&Exclusive != 0 {
		use = ToKeep
	}
	mode, owner, err := v.newIn(place, dir, Regular|mode&Permissions)
	if err != nil {
		return err
	}
	n, err := maker.MakeNameless(mode, owner, use)
	if err != nil {
		return err
	}
	h, err := n.Open(flags)
	if err != nil {
		return err
	}
	*o = Opening{tree: v.Tree, place: Place{place.mount, n}, handle: h, asked: flags}
	o.notify(Opened)
	return nil
}

// Seals implements F_GET_SEALS. Errors: EINVAL if the file does not support seals.
func (f *File) Seals() (Seals, error) {
	n, ok := f.place.Node.(Sealable)
	if !ok {
		return 0, linux.EINVAL
	}
	return n.Seals(), nil
}

// AddSeals implements F_ADD_SEALS. Errors: EPERM, also for a file opened read-only; EINVAL; EBUSY.
func (f *File) AddSeals(s Seals) error {
	n, ok := f.place.Node.(Sealable)
	switch {
	case !f.Flags().MayWrite():
		return linux.EPERM
	case !ok || s&^allSeals != 0:
		return linux.EINVAL
	}
	return n.AddSeals(s)
}
