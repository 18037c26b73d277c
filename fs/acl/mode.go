package acl

// Lists and permission bits (acl(5), CORRESPONDENCE BETWEEN ACL ENTRIES AND FILE PERMISSION BITS). A mode has nine bits here.

// shift returns the position of the permission bits that correspond to an entry; ok is false if none do.
func (l List) shift(tag uint16) (n int, ok bool) {
	switch tag {
	case userObj:
		return 6, true
	case mask:
		return 3, true
	case groupObj:
		return 3, !l.masked()
	case other:
		return 0, true
	}
	return 0, false
}

func (l List) masked() bool {
	for e := range l.entries() {
		if e.tag == mask {
			return true
		}
	}
	return false
}

// Mode returns the permission bits of a file with the access list l. The list is minimal if the permission bits say the same: then
// the file needs no list.
func (l List) Mode() (bits uint16, minimal bool) {
	for e := range l.entries() {
		if n, ok := l.shift(e.tag); ok {
			bits |= e.permissions << n
		}
	}
	return bits, len(l) == 3*entrySize
}

// Chmod returns the list after chmod(2) with some permission bits. The mask limits the group bits if there is one, so chmod(2) changes
// the mask and leaves the entry of the group.
func (l List) Chmod(bits uint16) List {
	if l == Unreadable {
		return l
	}
	return l.with(func(e entry) uint16 {
		if n, ok := l.shift(e.tag); ok {
			return bits >> n & 7
		}
		return e.permissions
	})
}

// Create returns the permission bits and the access list of a new file in a directory with the default list l. bits is the mode in the
// call that creates the file; the umask has no effect (acl(5), OBJECT CREATION AND DEFAULT ACLs).
func (l List) Create(bits uint16) (uint16, List) {
	access := l.with(func(e entry) uint16 {
		if n, ok := l.shift(e.tag); ok {
			return e.permissions & (bits >> n)
		}
		return e.permissions
	})
	bits, minimal := access.Mode()
	if minimal {
		access = ""
	}
	return bits, access
}
