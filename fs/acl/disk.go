package acl

import "encoding/binary"

// diskVersion is the number at the beginning of a list on a disk. Only the entries for users and groups with an ID have an ID there.
const diskVersion = 1

// FromDisk decodes a list in the format of ext4 disks. It returns Unreadable for a list that is not valid.
func FromDisk(b []byte) List {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != diskVersion {
		return Unreadable
	}
	var all []entry
	for b = b[4:]; len(b) > 0; {
		if len(b) < 4 {
			return Unreadable
		}
		e := entry{tag: binary.LittleEndian.Uint16(b), permissions: binary.LittleEndian.Uint16(b[2:])}
		b = b[4:]
		if hasID(e.tag) {
			if len(b) < 4 {
				return Unreadable
			}
			e.id = binary.LittleEndian.Uint32(b)
			b = b[4:]
		}
		all = append(all, e)
	}
	l, ok := list(all)
	if len(all) > 0 && !ok {
		return Unreadable
	}
	return l
}

// Disk encodes a list in the format of ext4 disks.
func (l List) Disk() []byte {
	b := binary.LittleEndian.AppendUint32(nil, diskVersion)
	for e := range l.entries() {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.permissions)
		if hasID(e.tag) {
			b = binary.LittleEndian.AppendUint32(b, e.id)
		}
	}
	return b
}
