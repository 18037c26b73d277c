package fs

import "slices"

// Credentials say who asks (credentials(7)): the IDs that count for files.
type Credentials struct {
	UID, GID uint32
	Groups   []uint32
}

// Wish is what someone wants to do with a file: the values of access(2).
type Wish uint32

// Wishes.
const (
	ToExecute Wish = 1 << iota // of a directory: to walk through it
	ToWrite
	ToRead
)

// May tells whether the permission bits of a file allow a wish (path_resolution(7)).
// User 0 may do all, but execute only what somebody may execute.
func (c *Credentials) May(a Attr, w Wish) bool {
	if c.UID == 0 {
		return w&ToExecute == 0 || a.Mode.Type() == Dir || a.Mode&0o111 != 0
	}
	bits := a.Mode
	switch {
	case c.UID == a.UID:
		bits >>= 6
	case c.inGroup(a.GID):
		bits >>= 3
	}
	return w&^Wish(bits&7) == 0
}

func (c *Credentials) inGroup(gid uint32) bool {
	return c.GID == gid || slices.Contains(c.Groups, gid)
}

// owns tells whether c may change the mode and the times of a file.
func (c *Credentials) owns(a Attr) bool { return c.UID == 0 || c.UID == a.UID }

// mayRemove tells whether c may remove or rename the entry of file from dir: in
// a directory with the sticky bit only who owns one of the two.
func (c *Credentials) mayRemove(dir, file Attr) bool {
	return dir.Mode&Sticky == 0 || c.owns(file) || c.owns(dir)
}
