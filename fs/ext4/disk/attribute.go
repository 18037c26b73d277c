package disk

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Extended attributes ("Extended Attributes") are stored in an inode after its fields, and in a
// separate block. Names, with the offsets of values, grow from the front; values grow from the end.

// Attribute is an extended attribute: a name and its value.
type Attribute struct {
	Name  string // name with its prefix, such as user.mime_type
	Value []byte
}

const (
	attributeMagic = 0xea020000
	attributeHead  = 32 // header of a block; the header in an inode is only the magic number
	attributeEntry = 16
)

// MaxAttribute is the maximum length of a value in bytes. Attributes in an inode of their own are
// not supported.
const MaxAttribute = 1 << 16

// prefixes are the beginnings of names that the disk stores as a number.
var prefixes = []struct {
	index  uint8
	prefix string
}{
	{2, "system.posix_acl_access"}, {3, "system.posix_acl_default"}, {8, "system.richacl"},
	{1, "user."}, {4, "trusted."}, {6, "security."}, {7, "system."},
}

// splitName splits a name into the number of its prefix and the rest.
func splitName(name string) (index uint8, rest string) {
	for _, p := range prefixes {
		if strings.HasSuffix(p.prefix, ".") && strings.HasPrefix(name, p.prefix) || name == p.prefix {
			return p.index, name[len(p.prefix):]
		}
	}
	return 0, name
}

func joinName(index uint8, rest string) string {
	for _, p := range prefixes {
		if p.index == index {
			return p.prefix + rest
		}
	}
	return rest
}

// AttributeArea returns the area of an inode for attributes, including the magic number, or nil if
// there is no room.
func (i Inode) AttributeArea() []byte {
	at := 128 + i.ExtraIsize()
	if i.ExtraIsize() == 0 || len(i)-at < 8 {
		return nil
	}
	return i[at:]
}

// ReadAttributes decodes the attributes in the area of an inode, or in a block. An area without the
// magic number has no attributes. Errors: ErrCorrupt.
func ReadAttributes(b []byte, block bool) ([]Attribute, error) {
	head := 4
	if block {
		head = attributeHead
	}
	if len(b) < head+4 || le.Uint32(b) != attributeMagic {
		if block {
			return nil, ErrCorrupt
		}
		return nil, nil
	}
	base := b[head:] // the offsets of values count from base
	if block {
		base = b
	}
	var all []Attribute
	for at := head; ; {
		if at+4 > len(b) {
			return nil, ErrCorrupt
		}
		if le.Uint32(b[at:]) == 0 {
			return all, nil
		}
		name := int(b[at])
		if at+attributeEntry+name > len(b) {
			return nil, ErrCorrupt
		}
		place, size := int(le.Uint16(b[at+2:])), uint64(le.Uint32(b[at+8:]))
		if le.Uint32(b[at+4:]) != 0 || size > uint64(len(base)) || place+int(size) > len(base) {
			return nil, ErrCorrupt // a value in an inode of its own needs the feature ea_inode, which is not supported
		}
		full := joinName(b[at+1], string(b[at+attributeEntry:at+attributeEntry+name]))
		all = append(all, Attribute{full, bytes.Clone(base[place : place+int(size)])})
		at += (attributeEntry + name + 3) &^ 3
	}
}

// AttributeSize returns the number of bytes that an attribute takes in an area.
func AttributeSize(a Attribute) int {
	_, rest := splitName(a.Name)
	return (attributeEntry+len(rest)+3)&^3 + (len(a.Value)+3)&^3
}

// AttributeRoom returns the number of bytes for attributes in an area.
func AttributeRoom(b []byte, block bool) int {
	if block {
		return len(b) - attributeHead - 4
	}
	return len(b) - 8
}

// WriteAttributes encodes attributes that fit, in the order in which Linux searches them. For a
// block, the commit then computes its checksum: see Geometry.Seal.
func WriteAttributes(b []byte, block bool, all []Attribute) {
	slices.SortFunc(all, compareAttributes)
	clear(b)
	if len(all) == 0 && !block {
		return
	}
	le.PutUint32(b, attributeMagic)
	at, base := 4, b[4:]
	if block {
		at, base = attributeHead, b
		le.PutUint32(b[4:], 1) // reference count: one file uses the block
		le.PutUint32(b[8:], 1) // number of disk blocks used: 1
	}
	end := len(base)
	whole := uint32(0)
	for _, a := range all {
		index, rest := splitName(a.Name)
		padded := (len(a.Value) + 3) &^ 3
		end -= padded
		copy(base[end:], a.Value)
		hash := attributeHash(rest, base[end:end+padded])
		b[at], b[at+1] = uint8(len(rest)), index
		if len(a.Value) > 0 {
			le.PutUint16(b[at+2:], uint16(end))
		}
		le.PutUint32(b[at+8:], uint32(len(a.Value)))
		le.PutUint32(b[at+12:], hash)
		copy(b[at+attributeEntry:], rest)
		at += (attributeEntry + len(rest) + 3) &^ 3
		whole = whole<<16 ^ whole>>16 ^ hash
	}
	if block {
		le.PutUint32(b[12:], whole)
	}
}

func compareAttributes(a, b Attribute) int {
	ai, an := splitName(a.Name)
	bi, bn := splitName(b.Name)
	return cmp.Or(cmp.Compare(ai, bi), cmp.Compare(len(an), len(bn)), cmp.Compare(an, bn))
}

// attributeHash returns the hash of an entry, computed from its name and its value padded with
// zeros.
func attributeHash(name string, value []byte) uint32 {
	h := uint32(0)
	for i := range len(name) {
		h = h<<5 ^ h>>27 ^ uint32(name[i])
	}
	for at := 0; at < len(value); at += 4 {
		h = h<<16 ^ h>>16 ^ le.Uint32(value[at:])
	}
	return h
}

// SharedAttributes returns the number of files that share a block of attributes; SetSharedAttributes
// sets it.
func SharedAttributes(b []byte) uint32       { return le.Uint32(b[4:]) }
func SetSharedAttributes(b []byte, n uint32) { le.PutUint32(b[4:], n) }

// InlineData returns the content of a file with FlagInlineData, which is in the inode's block area
// and in an attribute. Errors: ErrCorrupt.
func (i Inode) InlineData() ([]byte, error) {
	all, err := ReadAttributes(i.AttributeArea(), false)
	if err != nil {
		return nil, err
	}
	data := bytes.Clone(i.Area())
	for _, a := range all {
		if a.Name == "system.data" {
			data = append(data, a.Value...)
		}
	}
	if i.Size() > uint64(len(data)) {
		return nil, ErrCorrupt
	}
	return data[:i.Size()], nil
}
