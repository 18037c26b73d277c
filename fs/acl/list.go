package acl

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"strings"
	"unique"
)

// List is an access control list, valid and immutable. The empty List is no list. Equal lists are equal values.
//
// A List is the entries of the extended attribute, without its header: 8 bytes for each entry, with the tag, the permissions
// and the ID. The entries are sorted by their tags. Each tag occurs at most once, except user and group.
type List string

// entrySize is the size of an entry in a List.
const entrySize = 8

// Tags of entries: the users to which an entry gives permissions.
const (
	userObj  = 0x1  // the owner of the file
	user     = 0x2  // the user with the entry's ID
	groupObj = 0x4  // members of the file's group
	group    = 0x8  // members of the group with the entry's ID
	mask     = 0x10 // no user: the entry limits the permissions of the user, groupObj and group entries
	other    = 0x20 // all other users
)

// noID is the ID of an entry whose tag has none, and no valid ID.
const noID = ^uint32(0)

// entry is an entry of a List.
type entry struct {
	tag, permissions uint16
	id               uint32
}

// isTag reports whether t is one of the tags.
func isTag(t uint16) bool { return bits.OnesCount16(t) == 1 && t <= other }

// hasID reports whether entries with a tag apply to a user or group with an ID.
func hasID(tag uint16) bool { return tag == user || tag == group }

// at returns the entry with an index.
func (l List) at(i int) entry {
	e := l[i*entrySize:][:entrySize]
	return entry{
		tag:         uint16(e[0]) | uint16(e[1])<<8,
		permissions: uint16(e[2]),
		id:          uint32(e[4]) | uint32(e[5])<<8 | uint32(e[6])<<16 | uint32(e[7])<<24,
	}
}

// entries yields the entries of a list.
func (l List) entries() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for i := range len(l) / entrySize {
			if !yield(l.at(i)) {
				return
			}
		}
	}
}

// with returns a list with the permissions that f returns for each entry.
func (l List) with(f func(entry) uint16) List {
	b := make([]byte, 0, len(l))
	for e := range l.entries() {
		e.permissions = f(e)
		b = appendEntry(b, e)
	}
	return List(b)
}

func appendEntry(b []byte, e entry) []byte {
	b = binary.LittleEndian.AppendUint16(b, e.tag)
	b = binary.LittleEndian.AppendUint16(b, e.permissions)
	if !hasID(e.tag) {
		e.id = noID
	}
	return binary.LittleEndian.AppendUint32(b, e.id)
}

// list returns the list with some entries; ok is false if it is not valid. In a valid list, the tags are in ascending order, the
// owner, the group and others have an entry, and there is a mask if a user or a group with an ID has an entry (acl(5), VALID ACLS).
func list(all []entry) (l List, ok bool) {
	var b []byte
	seen, last := uint16(0), uint16(0)
	for _, e := range all {
		switch {
		case !isTag(e.tag), e.tag < last || e.tag == last && !hasID(e.tag), e.permissions > 7, hasID(e.tag) && e.id == noID:
			return "", false
		}
		seen, last = seen|e.tag, e.tag
		b = appendEntry(b, e)
	}
	switch {
	case seen&(userObj|groupObj|other) != userObj|groupObj|other, seen&(user|group) != 0 && seen&mask == 0:
		return "", false
	}
	return List(b), true
}

// Unreadable stands for a damaged list on a disk. It allows nothing, and is not a valid list.
const Unreadable List = "\x20\x00\x00\x00\x00\x00\x00\x00"

// Lists are the two lists of a file.
type Lists struct{ Access, Default List }

// Set holds Lists in one word. Equal Lists are equal Sets, and the zero Set holds none.
type Set struct{ lists unique.Handle[Lists] }

// Set returns the Set with l.
func (l Lists) Set() Set {
	if l == (Lists{}) {
		return Set{}
	}
	return Set{unique.Make(Lists{List(strings.Clone(string(l.Access))), List(strings.Clone(string(l.Default)))})}
}

// Lists returns the lists of the set.
func (s Set) Lists() Lists {
	if s == (Set{}) {
		return Lists{}
	}
	return s.lists.Value()
}
