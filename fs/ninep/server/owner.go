package server

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// xattrClass is the class of attributes that the client can have, and ownClass the server's own attribute, which
// it cannot see.
const (
	xattrClass = "user."
	ownClass   = "user.loam"
)

// override holds attributes that a file has for the client only. It is the attribute user.loam: five numbers
// in text. Only files with the sticky bit can have it.
type override struct {
	uid, gid int64  // owner that the client sees; -1: derived from the owner on the host
	bits     uint32 // S_ISUID, S_ISGID, S_ISVTX, and unreadable
	kind     uint32 // S_IFCHR or S_IFBLK; 0: a real file
	device   uint64
}

const specialBits = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX

// unreadable is a member of override.bits: the client does not see the permission of the owner to read. On the host the owner
// has this permission, because without it the server could not read the attribute.
const unreadable = unix.S_IRUSR

// none reports whether a file needs no attribute. The sticky bit is a real mode bit of the file and alone needs no
// attribute.
func (o override) none() bool {
	return o.uid < 0 && o.gid < 0 && o.bits&^(unix.S_ISVTX|unreadable) == 0 && o.kind == 0
}

func (o override) text() string {
	return fmt.Sprintf("%d %d %o %o %d", o.uid, o.gid, o.bits, o.kind, o.device)
}

// parseOverride decodes the value of the extended attribute user.loam, which stores the owner and mode that the program
// has set. The value is not trusted: any process of the host may have written it.
func parseOverride(text string) (o override, ok bool) {
	n, err := fmt.Sscanf(text, "%d %d %o %o %d", &o.uid, &o.gid, &o.bits, &o.kind, &o.device)
	const most = 1<<32 - 1
	return o, err == nil && n == 5 && o.uid <= most && o.gid <= most && o.bits&^(specialBits|unreadable) == 0 &&
		(o.kind == 0 || o.kind == unix.S_IFCHR || o.kind == unix.S_IFBLK)
}

// apply converts attributes of the host to attributes for the client.
func (o override) apply(a *ninep.Attr) {
	if o.uid >= 0 {
		a.UID = uint32(o.uid)
	}
	if o.gid >= 0 {
		a.GID = uint32(o.gid)
	}
	a.Mode = a.Mode&^(specialBits|o.bits&unreadable) | o.bits&specialBits
	if o.kind != 0 && a.Mode&unix.S_IFMT == unix.S_IFREG {
		a.Mode = a.Mode&^unix.S_IFMT | o.kind
		a.Device = o.device
	}
}

// mayHaveOverride reports whether files of a type can have attributes of class user (xattr(7)).
func mayHaveOverride(kind uint32) bool { return kind == unix.S_IFREG || kind == unix.S_IFDIR }

func isDevice(mode uint32) bool {
	return mode&unix.S_IFMT == unix.S_IFCHR || mode&unix.S_IFMT == unix.S_IFBLK
}

// readOverride returns the override from the attribute of a name in a directory, or of the descriptor's file. It
// returns false if the attribute does not exist, cannot be read or is malformed.
func readOverride(fd int, name string) (override, bool) {
	var b [64]byte
	p := path(fd)
	get := unix.Getxattr
	if name != "" {
		p += "/" + name
		get = unix.Lgetxattr
	}
	n, err := get(p, ownClass, b[:])
	if err != nil {
		return override{uid: -1, gid: -1}, false
	}
	return parseOverride(string(b[:n]))
}

// setOwner changes mode and owner of a file. Errors: EPERM for a device of the host, for example if /dev is mounted
// in the folder, because other programs use the device.
func (s *session) setOwner(f *fid, m ninep.Setattr) error {
	if isDevice(f.kind) {
		return unix.EPERM
	}
	var st unix.Statx_t
	if err := statAt(f.fd, "", &st); err != nil {
		return err
	}
	o := override{uid: -1, gid: -1, bits: uint32(st.Mode) & specialBits}
	had := false
	if st.Mode&unix.S_ISVTX != 0 && mayHaveOverride(f.kind) {
		if was, ok := readOverride(f.fd, ""); ok {
			o, had = was, true
		}
	}
	mode := uint32(st.Mode) & 0o777 &^ (o.bits & unreadable)
	if m.Valid&ninep.SetMode != 0 {
		if f.kind == unix.S_IFLNK {
			return unix.EOPNOTSUPP
		}
		mode, o.bits = m.Mode&0o777, m.Mode&specialBits
	}
	if m.Valid&ninep.SetUID != 0 {
		if o.uid = int64(m.UID); st.Uid == s.uid && m.UID == s.owner.uid {
			o.uid = -1
		}
	}
	if m.Valid&ninep.SetGID != 0 {
		if o.gid = int64(m.GID); s.groups[st.Gid] && m.GID == s.owner.gid {
			o.gid = -1
		}
	}
	return dress(f.fd, f.kind, mode, uint32(st.Mode)&0o7777, o, had)
}

// dress gives a file its mode on the host, and stores the attributes that only the client sees. was
// is its previous mode, and had reports whether it has such an attribute already. Errors: EPERM for
// attributes that the file cannot have.
func dress(fd int, kind, mode, was uint32, o override, had bool) error {
	p := path(fd)
	if !mayHaveOverride(kind) {
		if !o.none() {
			return unix.EPERM
		}
		if kind == unix.S_IFLNK {
			return nil
		}
		return unix.Chmod(p, mode)
	}
	if o.none() {
		if had {
			if err := unix.Removexattr(p, ownClass); err != nil && err != unix.ENODATA {
				return err
			}
		}
		if want := mode | o.bits&specialBits; want != was {
			return unix.Chmod(p, want)
		}
		return nil
	}
	o.bits = o.bits&specialBits | ^mode&unreadable
	const mayWrite = 0o200 // mode bit of the owner; without it the owner cannot set the extended attribute
	if was&mayWrite == 0 {
		if err := unix.Chmod(p, was|mayWrite); err != nil {
			return err
		}
	}
	if err := unix.Setxattr(p, ownClass, []byte(o.text()), 0); err != nil {
		if was&mayWrite == 0 {
			unix.Chmod(p, was)
		}
		if err == unix.EOPNOTSUPP || err == unix.EACCES {
			err = unix.EPERM
		}
		return err
	}
	return unix.Chmod(p, mode|unreadable|unix.S_ISVTX)
}

// dressNew gives a new file its mode and owner. kind is the type of the file on the host; mode includes the type
// that the client sees. If the host's file system does not support user attributes, the owner does not change.
func (s *session) dressNew(fd int, kind, mode, uid, gid uint32, device uint64) error {
	o := override{uid: -1, gid: -1, bits: mode & specialBits}
	if uid != s.owner.uid {
		o.uid = int64(uid)
	}
	if gid != s.owner.gid {
		o.gid = int64(gid)
	}
	if isDevice(mode) {
		o.kind, o.device = mode&unix.S_IFMT, device
	}
	if o.none() && o.bits == 0 {
		return nil
	}
	const private = 0o700
	err := dress(fd, kind, mode&0o777, private, o, false)
	if err == unix.EPERM && o.kind == 0 {
		return nil
	}
	return err
}

// hidden reports whether an attribute's name is the server's own.
func hidden(name string) bool { return name == ownClass || strings.HasPrefix(name, ownClass+".") }
