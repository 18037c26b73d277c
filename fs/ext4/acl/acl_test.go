package acl

import (
	"bytes"
	"testing"
)

// An access control list has the same entries after it was encoded and decoded. A file mode restricts its entries.
func TestList(t *testing.T) {
	l := List{{userObj, 7, 0}, {user, 6, 1000}, {groupObj, 5, 0}, {mask, 7, 0}, {other, 4, 0}}
	out, err := Decode(Access, l.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Encode(Access, out); err != nil || !bytes.Equal(back, l.Bytes()) {
		t.Errorf("%x, %v", back, err)
	}
	if mode := l.Restrict(0o640); mode != 0o640 {
		t.Errorf("mode %o", mode)
	}
	l.SetMode(0o751)
	if l[0].permissions != 7 || l[2].permissions != 5 || l[3].permissions != 5 || l[4].permissions != 1 {
		t.Errorf("%v", l)
	}
	for _, bad := range [][]byte{nil, {1, 0, 0, 0, 1}, {9, 0, 0, 0}, {1, 0, 0, 0, 1, 0, 8, 0}, {1, 0, 0, 0, 2, 0, 7, 0}} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%x is accepted", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(List{{userObj, 7, 0}, {group, 6, 5}}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := Parse(b); err == nil && !bytes.Equal(l.Bytes(), b) {
			t.Errorf("%x becomes %x", b, l.Bytes())
		}
	})
}
