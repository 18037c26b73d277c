// Package acl has POSIX access control lists (acl(5)) as bytes and as values. Programs read and write them
// as extended attributes in one format (version 2, with an ID in every entry). The disk has another
// format (version 1, with an ID only for named users and groups).
package acl

import (
	"encoding/binary"
	"strings"

	"loam/abi/linux"
)

// Names of the extended attributes with access control lists.
const (
	Access  = "system.posix_acl_access"
	Default = "system.posix_acl_default" // ACL of a directory, which new files in the directory get
)

// version is the format of a list.
type version uint32

const (
	onDisk  version = 1
	outside version = 2
)

// Tags of entries: whom an entry gives permissions.
const (
	userObj  = 0x1
	user     = 0x2
	groupObj = 0x4
	group    = 0x8
	mask     = 0x10
	other    = 0x20
)

// List is an access control list.
type List []entry

type entry struct {
	tag, permissions uint16
	id               uint32
}

func hasID(tag uint16) bool { return tag == user || tag == group }

// Is reports whether an attribute is an access control list.
func Is(name string) bool { return strings.HasPrefix(name, "system.posix_acl_") }

// Parse decodes a list in the format of the disk. Errors: EINVAL.
func Parse(b []byte) (List, error) { return parse(b, onDisk) }

func parse(b []byte, v version) (List, error) {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != uint32(v) {
		return nil, linux.EINVAL
	}
	var all List
	for b = b[4:]; len(b) > 0; {
		if len(b) < 4 {
			return nil, linux.EINVAL
		}
		e := entry{tag: binary.LittleEndian.Uint16(b), permissions: binary.LittleEndian.Uint16(b[2:])}
		b = b[4:]
		if v == outside || hasID(e.tag) {
			if len(b) < 4 {
				return nil, linux.EINVAL
			}
			e.id = binary.LittleEndian.Uint32(b)
			b = b[4:]
		}
		if e.permissions > 7 {
			return nil, linux.EINVAL
		}
		all = append(all, e)
	}
	return all, nil
}

// Bytes encodes a list in the format of the disk.
func (l List) Bytes() []byte { return l.bytes(onDisk) }

func (l List) bytes(v version) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(v))
	for _, e := range l {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.permissions)
		switch {
		case hasID(e.tag):
			b = binary.LittleEndian.AppendUint32(b, e.id)
		case v == outside:
			b = binary.LittleEndian.AppendUint32(b, ^uint32(0))
		}
	}
	return b
}

// Decode converts the value of an attribute from the disk's format to the programs' format, if the
// attribute is a list; Encode converts the value back. Values of other attributes are returned unchanged.
func Decode(name string, value []byte) ([]byte, error) { return convert(name, value, onDisk, outside) }

// Encode is the inverse of Decode.
func Encode(name string, value []byte) ([]byte, error) { return convert(name, value, outside, onDisk) }

func convert(name string, value []byte, from, to version) ([]byte, error) {
	if !Is(name) {
		return value, nil
	}
	all, err := parse(value, from)
	if err != nil {
		return nil, err
	}
	return all.bytes(to), nil
}

// Restrict removes the permissions that mode does not have from a list, and returns the mode that
// corresponds to the list.
func (l List) Restrict(mode uint16) uint16 {
	at := -1 // index of the entry of the group; if there is a mask, of the mask
	for i := range l {
		shift := -1
		switch l[i].tag {
		case userObj:
			shift = 6
		case other:
			shift = 0
		case mask:
			shift, at = 3, -1
		case groupObj:
			at = i
		}
		if shift >= 0 {
			l[i].permissions &= mode >> shift & 7
			mode = mode&^(7<<shift) | l[i].permissions<<shift
		}
	}
	if l.hasMask() || at < 0 {
		return mode
	}
	l[at].permissions &= mode >> 3 & 7
	return mode&^(7<<3) | l[at].permissions<<3
}

func (l List) hasMask() bool {
	for _, e := range l {
		if e.tag == mask {
			return true
		}
	}
	return false
}

// SetMode changes a list as chmod(2) does. The entry of the owner, the entry of others, and the mask get
// the permissions of mode; without a mask, the entry of the group gets them.
func (l List) SetMode(mode uint16) {
	masked := l.hasMask()
	for i := range l {
		switch tag := l[i].tag; {
		case tag == userObj:
			l[i].permissions = mode >> 6 & 7
		case tag == mask || tag == groupObj && !masked:
			l[i].permissions = mode >> 3 & 7
		case tag == other:
			l[i].permissions = mode & 7
		}
	}
}
