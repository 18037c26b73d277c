package fs

import "syscall"

// Resolve bounds where a walk may lead: the RESOLVE flags of openat2(2), with Linux's values.
type Resolve uint64

// Bounds.
const (
	NoCrossing   Resolve = 1 << iota // RESOLVE_NO_XDEV: no mount is crossed
	NoMagicLinks                     // RESOLVE_NO_MAGICLINKS: means nothing here
	NoLinks                          // RESOLVE_NO_SYMLINKS: no symbolic link is followed
	Beneath                          // RESOLVE_BENEATH: what leads out of the directory where it begins is EXDEV
	InRoot                           // RESOLVE_IN_ROOT: that directory is the root
)

// Within is v for one walk from at that has bounds, and where it begins.
func (v *View) Within(at Place, bounds Resolve) *View {
	bounded := *v
	bounded.bounds = bounds
	if bounds&(Beneath|InRoot) != 0 {
		bounded.Root, bounded.Dir = at, at
	}
	return &bounded
}

// mayStart reports whether a path may go to the root. Errors: EXDEV.
func (w *walker) mayStart() error {
	if w.bounds&Beneath != 0 {
		return syscall.EXDEV
	}
	return nil
}

// mayFollow reports whether a symbolic link to path may be followed. Errors: ELOOP, EXDEV.
func (w *walker) mayFollow(path string) error {
	switch {
	case w.bounds&NoLinks != 0:
		return syscall.ELOOP
	case path[0] != '/':
		return nil
	case w.bounds&NoCrossing != 0 && w.dir.mount != w.Root.mount:
		return syscall.EXDEV
	}
	return w.mayStart()
}

// up is the directory above. Errors: EXDEV.
func (w *walker) up() (Place, error) {
	if w.dir == w.Root {
		return w.dir, w.mayStart()
	}
	above := w.Tree.parent(w.dir)
	return above, w.mayCross(above)
}

// mayCross reports whether a step may lead to a place. Errors: EXDEV.
func (w *walker) mayCross(to Place) error {
	if w.bounds&NoCrossing != 0 && to.mount != w.dir.mount {
		return syscall.EXDEV
	}
	return nil
}
