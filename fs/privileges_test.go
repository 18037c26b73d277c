package fs

import (
	"encoding/binary"
	"testing"

	"loam/fs/acl"
)

// raced is a file whose mode and lists another process changes after each call of Attr.
type raced struct {
	Node
	before, now Attr
}

func (r *raced) Attr() Attr { return r.before }

func (r *raced) Change(c Change) error {
	r.now.Mode, r.now.ACL = c.Protection(r.now.Mode, r.now.ACL)
	return nil
}

// A writer that removes the set-user-ID bit does not undo a change of the mode or of the access control list by another process.
func TestPrivilegesAndOtherChange(t *testing.T) {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, permissions uint16
		id               uint32
	}{{1, 7, ^uint32(0)}, {2, 6, 1000}, {4, 5, ^uint32(0)}, {0x10, 7, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.permissions)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	list, err := acl.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	set := acl.Lists{Access: list}.Set()
	for _, test := range []struct{ before, now, want Mode }{
		{0o4700, 0o4770, 0o770},
		{0o4755, 0o4640, 0o640},
		{0o6755, 0o2750, 0o750},
		{0o4755, 0o2640, 0o2640},
	} {
		n := &raced{before: Attr{Mode: Regular | test.before}}
		n.now = Attr{Mode: Regular | test.now, ACL: set}
		(&File{Opening: Opening{place: Place{Node: n}}}).ClearSetIDs(&Credentials{UID: 1000})
		if n.now.Mode != Regular|test.want || n.now.ACL != set {
			t.Errorf("write: %#v", n.now)
		}
		n.now = Attr{Mode: Regular | test.now, ACL: set}
		v := &View{Who: Credentials{UID: 1000}}
		c, err := v.removePrivileges(n, n.before, Change{Fields: SetSize})
		if err != nil {
			t.Fatal(err)
		}
		n.Change(c)
		if n.now.Mode != Regular|test.want || n.now.ACL != set {
			t.Errorf("truncate: %#v", n.now)
		}
	}
}
