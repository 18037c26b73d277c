package fs

import "slices"

// Credentials are the IDs that determine access to files (credentials(7)).
type Credentials struct {
	UID, GID uint32
	Groups   []uint32
}

// Wish is a set of access modes, with the values of access(2).
type Wish uint32

// Access modes.
const (
	ToExecute Wish = 1 << iota // for a directory: search
	ToWrite
	ToRead
)

// May reports whether a file's permission bits allow w (path_resolution(7)). User 0 may do everything,
// except execute a file without any execute permission.
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

// owns reports whether c may change the mode and the times of a file.
func (c *Credentials) owns(a Attr) bool { return c.UID == 0 || c.UID == a.UID }

// mayRemove reports whether c may remove or rename the entry of file in dir. In a directory with the
// sticky bit this requires owning one of the two.
func (c *Credentials) mayRemove(dir, file Attr) bool {
	return dir.Mode&Sticky == 0 || c.owns(file) || c.owns(dir)
}
