package fs

import "syscall"

// Files that never had a name, and seals: what memfd_create(2) is made of.

// NamelessMaker is a FileSystem that makes regular files without a name, which go with their
// last Handle.
type NamelessMaker interface {
	FileSystem
	// MakeNameless makes one that can be sealed. Errors: ENOSPC.
	MakeNameless(mode Mode, owner Owner) (Node, error)
}

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
	n, err := maker.MakeNameless(mode, Owner{v.Who.UID, v.Who.GID})
	if err != nil {
		return nil, err
	}
	h, err := n.Open(ReadWrite)
	if err != nil {
		return nil, err
	}
	return newFile(v.Tree, Place{m, n}, h, ReadWrite), nil
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
