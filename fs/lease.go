package fs

// Lessor decides whether files with leases may be opened (fcntl(2), F_SETLEASE).
type Lessor interface {
	// MayOpen is called before a regular file is opened or truncated; the flags of truncate(2) are WriteOnly. It reports the attempt to
	// the holders of leases that forbid it, and returns an error if such a lease has not ended yet.
	MayOpen(n Node, flags Flags) error
}

// SetLessor makes a lessor decide from now on; nil: every file may be opened.
func (t *Tree) SetLessor(l Lessor) {
	if l == nil {
		t.lessor.Store(nil)
		return
	}
	t.lessor.Store(&l)
}

// mayUse asks the lessor, if there is one.
func (t *Tree) mayUse(n Node, flags Flags) error {
	if l := t.lessor.Load(); l != nil {
		return (*l).MayOpen(n, flags)
	}
	return nil
}
