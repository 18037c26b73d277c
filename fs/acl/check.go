package acl

import "slices"

// User has the IDs of a process on which the access check depends.
type User struct {
	UID, GID uint32
	Groups   []uint32 // supplementary groups
}

func (u User) inGroup(gid uint32) bool { return u.GID == gid || slices.Contains(u.Groups, gid) }

// Allows reports whether u may access a file of the user uid and the group gid (acl(5), ACCESS CHECK ALGORITHM). want is the set
// of requested permissions: 4 (read), 2 (write) and 1 (execute). The first entry that applies decides. But of the entries for
// groups, any one that allows all of want suffices.
func (l List) Allows(u User, uid, gid uint32, want uint16) bool {
	grouped := false
	for e := range l.entries() {
		allows := e.permissions&want == want
		switch e.tag {
		case userObj:
			if u.UID == uid {
				return allows
			}
		case user:
			if u.UID == e.id {
				return allows && l.masks(want)
			}
		case groupObj, group:
			if e.tag == groupObj {
				e.id = gid
			}
			if u.inGroup(e.id) {
				if allows {
					return l.masks(want)
				}
				grouped = true
			}
		case other:
			return allows && !grouped
		}
	}
	return false
}

// masks reports whether the mask allows want. Without a mask, everything is allowed.
func (l List) masks(want uint16) bool {
	for e := range l.entries() {
		if e.tag == mask {
			return e.permissions&want == want
		}
	}
	return true
}
