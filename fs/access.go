package fs

import (
	"slices"

	"loam/fs/acl"
)

// Credentials are the IDs that determine access to files (credentials(7)), and the rights beyond the permission bits.
type Credentials struct {
	UID, GID uint32
	Groups   []uint32
	// Rights holds the rights if it contains Explicit. Otherwise user 0 has all rights, and other users have none.
	Rights Rights
}

// Rights is a set of rights that do not depend on permission bits (capabilities(7)).
type Rights uint16

// Members of Rights: the capabilities of a process that matter to permission checks.
const (
	Explicit        Rights = 1 << iota // the other members say what the holder may do; without Explicit, user 0 may do everything
	Override                           // CAP_DAC_OVERRIDE: the holder may ignore permission bits
	ReadSearch                         // CAP_DAC_READ_SEARCH: the holder may ignore permission bits when reading files and searching directories
	ChangeOwner                        // CAP_CHOWN: the holder may change owners of files
	ActAsOwner                         // CAP_FOWNER: the holder may act as the owner of any file
	KeepSetIDs                         // CAP_FSETID: set-user-ID and set-group-ID bits stay when the holder changes a file
	MakeDevices                        // CAP_MKNOD: the holder may create device files
	Administer                         // CAP_SYS_ADMIN: the holder may use extended attributes of class "trusted", and change those of class "security"
	SetCapabilities                    // CAP_SETFCAP: the holder may change capabilities of files
	ConfigureNet                       // CAP_NET_ADMIN: the holder may write settings of the network in /proc/sys
)

// Has reports whether c has one of the rights r.
func (c *Credentials) Has(r Rights) bool {
	if c.Rights&Explicit == 0 {
		return c.UID == 0
	}
	return c.Rights&r != 0
}

// Wish is a set of access modes, with the values of access(2).
type Wish uint32

// Access modes: the ways in which a caller wants to use a file.
const (
	ToExecute Wish = 1 << iota // for a directory: search
	ToWrite
	ToRead
)

// May reports whether a file's permission bits, and its access control list if there is one, allow w (path_resolution(7), acl(5)).
// With Override everything is allowed, except to execute a file without any execute permission.
func (c *Credentials) May(a Attr, w Wish) bool { return c.may(&a, w) }

func (c *Credentials) may(a *Attr, w Wish) bool {
	if c.Has(Override) {
		return w&ToExecute == 0 || a.Mode.Type() == Dir || a.Mode&0o111 != 0
	}
	if c.Has(ReadSearch) && w&ToWrite == 0 && (w&ToExecute == 0 || a.Mode.Type() == Dir) {
		return true
	}
	const groupBits = 0o070 // without them, Linux does not look at the list
	bits := a.Mode
	switch {
	case c.UID == a.UID:
		bits >>= 6
	case a.ACL != acl.Set{} && a.Mode&groupBits != 0 && a.ACL.Lists().Access != "":
		return a.ACL.Lists().Access.Allows(acl.User{UID: c.UID, GID: c.GID, Groups: c.Groups}, a.UID, a.GID, uint16(w))
	case c.inGroup(a.GID):
		bits >>= 3
	}
	return w&^Wish(bits&7) == 0
}

// searchesAll reports whether c may search every directory, whatever its attributes are.
func (c *Credentials) searchesAll() bool { return c.Has(Override | ReadSearch) }

// Guarding is a FileSystem that may know the mode, the owner and the group of a directory when it would have to ask a server for
// the other attributes.
type Guarding interface {
	FileSystem
	// Guard returns attributes of a directory. Only Mode, UID and GID are valid.
	Guard(Directory) Attr
}

// Glancing is a FileSystem that may know a file that it has not looked up. A program that only reads the attributes of many
// files, or removes them, then needs no Node for each of them.
type Glancing interface {
	FileSystem
	// Glance returns the attributes of the file at a name, if they are known and no program can have changed anything at the
	// file: it has no Node, so nothing is mounted on it. Directories and symbolic links are never known.
	Glance(dir Directory, name string) (Attr, bool)
	// Present reports whether a file that is no directory is known to be at a name, has no Node, and has no other name.
	Present(dir Directory, name string) bool
}

// guard returns the attributes of a directory on which permissions depend.
func (p Place) guard(d Directory) Attr {
	if p.mount.guards != nil {
		return p.mount.guards.Guard(d)
	}
	return d.Attr()
}

func (c *Credentials) inGroup(gid uint32) bool {
	return c.GID == gid || slices.Contains(c.Groups, gid)
}

// Owns reports whether c may change the mode and the times of a file.
func (c *Credentials) Owns(a Attr) bool { return c.UID == a.UID || c.Has(ActAsOwner) }

// mayRemove reports whether c may remove or rename the entry of file in dir. In a directory with the
// sticky bit this requires owning one of the two.
func (c *Credentials) mayRemove(dir Attr, file Node) bool {
	return dir.Mode&Sticky == 0 || c.Owns(file.Attr()) || c.Owns(dir)
}
