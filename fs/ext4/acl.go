package ext4

import (
	"encoding/binary"
	"strings"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4/disk"
)

// POSIX access control lists (acl(5)). Programs read and write them as extended attributes in one
// format (version 2, with an ID in every entry). The disk has another format (version 1, with an ID
// only for named users and groups).

const (
	aclAccess  = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default"

	aclOnDisk  = 1
	aclOutside = 2
)

// Tags of ACL entries.
const (
	aclUserObj  = 0x1
	aclUser     = 0x2
	aclGroupObj = 0x4
	aclGroup    = 0x8
	aclMask     = 0x10
	aclOther    = 0x20
)

func isACL(name string) bool { return strings.HasPrefix(name, "system.posix_acl_") }

// aclEntry is one entry of an ACL.
type aclEntry struct {
	tag, permissions uint16
	id               uint32
}

func hasID(tag uint16) bool { return tag == aclUser || tag == aclGroup }

// parseACL decodes a list in either form. Errors: EINVAL.
func parseACL(b []byte, version uint32) ([]aclEntry, error) {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != version {
		return nil, linux.EINVAL
	}
	var all []aclEntry
	for b = b[4:]; len(b) > 0; {
		if len(b) < 4 {
			return nil, linux.EINVAL
		}
		e := aclEntry{tag: binary.LittleEndian.Uint16(b), permissions: binary.LittleEndian.Uint16(b[2:])}
		b = b[4:]
		if version == aclOutside || hasID(e.tag) {
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

func formatACL(all []aclEntry, version uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, version)
	for _, e := range all {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.permissions)
		switch {
		case hasID(e.tag):
			b = binary.LittleEndian.AppendUint32(b, e.id)
		case version == aclOutside:
			b = binary.LittleEndian.AppendUint32(b, ^uint32(0))
		}
	}
	return b
}

// decodeACL converts the value of an attribute from the format on disk to that of programs, if the
// attribute is an ACL; encodeACL converts it back. Values of other attributes are returned
// unchanged.
func decodeACL(name string, value []byte) ([]byte, error) {
	return convertACL(name, value, aclOnDisk, aclOutside)
}

func encodeACL(name string, value []byte) ([]byte, error) {
	return convertACL(name, value, aclOutside, aclOnDisk)
}

func convertACL(name string, value []byte, from, to uint32) ([]byte, error) {
	if !isACL(name) {
		return value, nil
	}
	all, err := parseACL(value, from)
	if err != nil {
		return nil, err
	}
	return formatACL(all, to), nil
}

// inherit copies the default ACL of a directory to a new file in it. A new directory also gets it
// as its own default ACL.
func (o *op) inherit(parent, i disk.Inode) error {
	all, err := o.s.attributes(parent)
	if err != nil {
		return err
	}
	kind := fs.Mode(i.Mode()).Type()
	for _, a := range all {
		if a.Name != aclDefault || kind == fs.Symlink {
			continue
		}
		list, err := parseACL(a.Value, aclOnDisk)
		if err != nil {
			return errDamaged
		}
		mode := restrict(list, i.Mode())
		i.SetMode(mode)
		given := []disk.Attribute{{Name: aclAccess, Value: formatACL(list, aclOnDisk)}}
		if kind == fs.Dir {
			given = append(given, a)
		}
		return o.setAttributes(0, i, given)
	}
	return nil
}

// restrict removes the permissions that mode does not have from an ACL, and returns the mode that
// corresponds to the ACL.
func restrict(list []aclEntry, mode uint16) uint16 {
	group := -1
	for at := range list {
		shift := -1
		switch list[at].tag {
		case aclUserObj:
			shift = 6
		case aclOther:
			shift = 0
		case aclMask:
			shift, group = 3, -1
		case aclGroupObj:
			group = at
		}
		if shift >= 0 {
			list[at].permissions &= mode >> shift & 7
			mode = mode&^(7<<shift) | list[at].permissions<<shift
		}
	}
	for _, e := range list {
		if e.tag == aclMask {
			return mode
		}
	}
	if group >= 0 {
		list[group].permissions &= mode >> 3 & 7
		mode = mode&^(7<<3) | list[group].permissions<<3
	}
	return mode
}

// changeMode updates the ACL after chmod(2): its owner, other and mask entries get the permissions
// of the mode.
func (o *op) changeMode(i disk.Inode) {
	all, err := o.s.attributes(i)
	if err != nil {
		return
	}
	for at := range all {
		if all[at].Name != aclAccess {
			continue
		}
		list, err := parseACL(all[at].Value, aclOnDisk)
		if err != nil {
			return
		}
		mask := false
		for _, e := range list {
			mask = mask || e.tag == aclMask
		}
		for j := range list {
			switch tag := list[j].tag; {
			case tag == aclUserObj:
				list[j].permissions = i.Mode() >> 6 & 7
			case tag == aclMask || tag == aclGroupObj && !mask:
				list[j].permissions = i.Mode() >> 3 & 7
			case tag == aclOther:
				list[j].permissions = i.Mode() & 7
			}
		}
		all[at].Value = formatACL(list, aclOnDisk)
		o.setAttributes(0, i, all) // cannot fail: the length is the same
		return
	}
}
