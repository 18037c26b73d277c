package fs

import "loam/abi/linux"

// Files whose content depends on the thread that uses them. Only file systems like /proc have them.

// Caller identifies the thread that a View belongs to; zero: unknown.
type Caller struct{ PID, TID int32 }

// Personal is a link whose target depends on the view that reads it, such as /proc/self.
type Personal interface {
	Link
	TargetFor(v *View) (string, error)
}

// Magic is a link that leads to a file itself, whatever its text says (proc(5): /proc/PID/exe, cwd, root and fd).
type Magic interface {
	Personal
	// Jump returns the place of the file. Errors: ENOENT, EACCES.
	Jump(v *View) (Place, error)
}

// Guarded is a file that checks its reader beyond the permission bits when it is opened.
type Guarded interface {
	Node
	OpenFor(v *View, flags Flags) (Handle, error)
}

// Judge is a node that decides which callers may use it. Its permission bits, and rights such as Override, do not matter.
type Judge interface {
	Node
	Allows(c *Credentials, w Wish) bool
}

// may reports whether the caller may use a node with attributes a in the ways w.
func (v *View) may(n Node, a *Attr, w Wish) bool {
	if n, ok := n.(Judge); ok {
		return n.Allows(&v.Who, w)
	}
	return v.Who.may(a, w)
}

// Restricted is a Handle that checks the writer at each write. The check when the file is opened is not enough, because a process may pass
// the descriptor to another user.
type Restricted interface {
	Handle
	AllowsWrite(c *Credentials) bool
}

// MayWriteAs checks whether a caller may write to the open file now. Errors, only for a Restricted handle: EBADF if the file is not open
// for writing, EPERM.
func (f *File) MayWriteAs(c *Credentials) error {
	switch {
	case !f.restricted:
		return nil
	case !f.Flags().MayWrite():
		return linux.EBADF
	case !f.handle.(Restricted).AllowsWrite(c):
		return linux.EPERM
	}
	return nil
}

// TargetOf returns the text of a link as v sees it.
func (v *View) TargetOf(l Link) (string, error) {
	if l, ok := l.(Personal); ok {
		return l.TargetFor(v)
	}
	return l.Target()
}

// openNode opens a node for v.
func (v *View) openNode(n Node, flags Flags) (Handle, error) {
	if n, ok := n.(Guarded); ok {
		return n.OpenFor(v, flags)
	}
	return n.Open(flags)
}

// jump follows a magic link. Errors: those of Magic; ELOOP and EXDEV if the walk is restricted (openat2(2)).
func (w *walker) jump(link Magic) (Place, error) {
	w.links++
	switch {
	case w.links > maxLinks, w.bounds&(NoMagicLinks|NoLinks) != 0:
		return Place{}, linux.ELOOP
	case w.bounds&(Beneath|InRoot) != 0:
		return Place{}, linux.EXDEV
	}
	p, err := link.Jump(w.View)
	if err == nil {
		err = w.mayCross(p)
	}
	return p, err
}

// nowhere is the file system of files without a path: pipes, sockets and the like.
type nowhere struct{ FileSystem }

// Root implements FileSystem.
func (nowhere) Root() Directory { return nil }

// Usage implements FileSystem.
func (nowhere) Usage() Usage { return Usage{BlockSize: 4096, MaxNameLength: MaxName} }

// Sync implements FileSystem.
func (nowhere) Sync() error { return nil }

// nowhereMount has no root: no walk leads through it.
var nowhereMount = &mount{fs: nowhere{}, device: Device{Minor: 0xff}}

// Unnamed returns a place for a file outside of every tree, so that stat(2) can describe it.
func Unnamed(n Node) Place { return Place{nowhereMount, n} }
