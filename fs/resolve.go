package fs

import "loam/abi/linux"

// Resolve restricts path resolution: the RESOLVE_* flags of openat2(2), with Linux's values.
type Resolve uint64

// Restrictions of path resolution.
const (
	NoCrossing   Resolve = 1 << iota // RESOLVE_NO_XDEV: mounts must not be crossed
	NoMagicLinks                     // RESOLVE_NO_MAGICLINKS: no effect here
	NoLinks                          // RESOLVE_NO_SYMLINKS: symbolic links must not be followed
	Beneath                          // RESOLVE_BENEATH: leaving the starting directory returns EXDEV
	InRoot                           // RESOLVE_IN_ROOT: the starting directory acts as the root
)

// Within returns a copy of v for one path resolution that starts at a place (the
// parameter at) and is restricted by bounds.
func (v *View) Within(at Place, bounds Resolve) *View {
	bounded := *v
	bounded.bounds = bounds
	if bounds&(Beneath|InRoot) != 0 {
		bounded.Root, bounded.Dir = at, at
	}
	return &bounded
}

// mayStart checks whether a path may begin at the root. Errors: EXDEV.
func (w *walker) mayStart() error {
	if w.bounds&Beneath != 0 {
		return linux.EXDEV
	}
	return nil
}

// mayFollow checks whether a symbolic link with target path may be followed. Errors: ELOOP, EXDEV.
func (w *walker) mayFollow(path string) error {
	switch {
	case w.bounds&NoLinks != 0:
		return linux.ELOOP
	case path[0] != '/':
		return nil
	case w.bounds&NoCrossing != 0 && w.dir.mount != w.Root.mount:
		return linux.EXDEV
	}
	return w.mayStart()
}

// up returns the parent directory. Errors: EXDEV.
func (w *walker) up() (Place, error) {
	if w.dir == w.Root {
		return w.dir, w.mayStart()
	}
	above := w.Tree.parent(w.dir)
	return above, w.mayCross(above)
}

// mayCross checks whether a step may lead to a place. Errors: EXDEV.
func (w *walker) mayCross(to Place) error {
	if w.bounds&NoCrossing != 0 && to.mount != w.dir.mount {
		return linux.EXDEV
	}
	return nil
}
