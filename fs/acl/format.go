package acl

import (
	"encoding/binary"

	"loam/abi/linux"
)

// Names of the extended attributes with access control lists.
const (
	Access  = "system.posix_acl_access"
	Default = "system.posix_acl_default"
)

// Is reports whether an attribute is an access control list.
func Is(name string) bool { return name == Access || name == Default }

// version is the number at the beginning of an attribute.
const version = 2

// Names returns the names of the attributes with the lists.
func (l Lists) Names() []string {
	var names []string
	if l.Access != "" {
		names = append(names, Access)
	}
	if l.Default != "" {
		names = append(names, Default)
	}
	return names
}

// Named returns the list of the attribute with a name.
func (l Lists) Named(name string) List {
	if name == Default {
		return l.Default
	}
	return l.Access
}

// Parse decodes the value of an attribute. A value without entries, or without any byte, is the empty List. Errors: EOPNOTSUPP for another version of the
// format, EINVAL.
func Parse(value []byte) (List, error) {
	all, err := decode(value)
	if err != nil || len(all) == 0 {
		return "", err
	}
	l, ok := list(all)
	if !ok {
		return "", linux.EINVAL
	}
	return l, nil
}

// WellFormed checks the format of a value, but not whether the list is valid. Errors: EOPNOTSUPP, EINVAL.
func WellFormed(value []byte) error {
	_, err := decode(value)
	return err
}

func decode(value []byte) ([]entry, error) {
	switch {
	case len(value) == 0:
		return nil, nil
	case len(value) < 4:
		return nil, linux.EINVAL
	case binary.LittleEndian.Uint32(value) != version:
		return nil, linux.EOPNOTSUPP
	case (len(value)-4)%entrySize != 0:
		return nil, linux.EINVAL
	}
	all := make([]entry, 0, (len(value)-4)/entrySize)
	for b := value[4:]; len(b) > 0; b = b[entrySize:] {
		e := entry{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:]), binary.LittleEndian.Uint32(b[4:])}
		if !isTag(e.tag) || hasID(e.tag) && e.id == noID {
			return nil, linux.EINVAL
		}
		all = append(all, e)
	}
	return all, nil
}

// Value encodes a list as the value of an attribute.
func (l List) Value() []byte {
	return append(binary.LittleEndian.AppendUint32(nil, version), l...)
}
