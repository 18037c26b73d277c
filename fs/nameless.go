package fs

import "syscall"

// Files that never had a name, what memfd_create(2) and O_TMPFILE make, and seals.

// NamelessMaker is a FileSystem that makes regular files without a name, which go with their
// last Handle.
type NamelessMaker interface {
	FileSystem
	// MakeNameless makes one. Errors: ENOSPC.
	MakeNameless(mode Mode, owner Owner, use NamelessUse) (Node, error)
}

// NamelessUse says what a file without a name is good for.
type NamelessUse uint8

// Uses.
const (
	ToSeal NamelessUse = iota // it can be sealed, and never has a name
	ToName                    // as long as it is open, Directory.Link may give it a first name
	ToKeep                    // neither
)

// Seals are what may no longer be done to a file, with the numbers of fcntl(2).
type Seals uint32

// The seals.
const (
	SealSeals       Seals = 1 << iota // to add seals
	SealShrink                        // to make it shorter
	SealGrow                          // to make it longer
	SealWrite                         // to write
	SealFutureWrite                   // to write but by mappings that are there already

	allSeals = SealSeals | SealShrink | SealGrow | SealWrite | SealFutureWrite
)

// Sealable is a Node that has seals. What they forbid is EPERM.
type Sealable interface {
	Node
	Seals() Seals
	// AddSeals errors: EPERM if no more may be added; EBUSY for SealWrite while it is mapped.
	AddSeals(Seals) error
}

// OpenNameless makes a file without a name at the root's file system and opens it for
// reading and writing. The umask is not asked. Errors: EOPNOTSUPP if there are no such
// files, ENOSPC.
func (v *View) OpenNameless(mode Mode) (*File, error) {
	m := v.Tree.root
	maker, ok := m.fs.(NamelessMaker)
	if !ok {
		return nil, syscall.EOPNOTSUPP
	}
	n, err := maker.MakeNameless(mode, Owner{v.Who.UID, v.Who.GID}, ToSeal)
	if err != nil {
		return nil, err
	}
	h, err := n.Open(ReadWrite)
	if err != nil {
		return nil, err
	}
	return newFile(v.Tree, Place{m, n}, h, ReadWrite), nil
}

// openTemp is Open with O_TMPFILE: a new file without a name, in the file system of the directory that
// path leads to. With Exclusive it never has one. Errors: EINVAL if it could not be written to, or something
// else were to be made; EOPNOTSUPP if there are no such files.
func (v *View) openTemp(at Place, path string, flags Flags, mode Mode) (*File, error) {
	if flags&MustBeDir == 0 || flags&Create != 0 || !flags.MayWrite() {
		return nil, syscall.EINVAL
	}
	place, err := v.Lookup(at, path, flags&NoFollow == 0)
	if err != nil {
		return nil, err
	}
	dir, err := v.room(target{dir: place})
	if err != nil {
		return nil, err
	}
	maker, ok := place.mount.fs.(NamelessMaker)
	if !ok {
		return nil, syscall.EOPNOTSUPP
	}
	use := ToName
	if flags&Exclusive != 0 {
		use = ToKeep
	}
	mode, owner := v.newIn(dir, Regular|mode&Permissions)
	n, err := maker.MakeNameless(mode, owner, use)
	if err != nil {
		return nil, err
	}
	h, err := n.Open(flags)
	if err != nil {
		return nil, err
	}
	return v.opened(newFile(v.Tree, Place{place.mount, n}, h, flags)), nil
}

// Seals is F_GET_SEALS. Errors: EINVAL for a file that has none.
func (f *File) Seals() (Seals, error) {
	n, ok := f.place.Node.(Sealable)
	if !ok {
		return 0, syscall.EINVAL
	}
	return n.Seals(), nil
}

// AddSeals is F_ADD_SEALS. Errors: EPERM, also for a file that was opened for reading only;
// EINVAL; EBUSY.
func (f *File) AddSeals(s Seals) error {
	n, ok := f.place.Node.(Sealable)
	switch {
	case !f.Flags().MayWrite():
		return syscall.EPERM
	case !ok || s&^allSeals != 0:
		return syscall.EINVAL
	}
	return n.AddSeals(s)
}
