package xattr

import (
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/acl"
	"loam/fs/ext4/disk"
)

// Programs see no internal attributes and no access control lists, and cannot change them by name.
func TestNames(t *testing.T) {
	l := List{{Name: "user.b"}, {Name: "system.data"}, {Name: acl.Access}, {Name: "trusted.a"}, {Name: ""}}
	if got := strings.Join(l.Names(), " "); got != "trusted.a user.b" {
		t.Errorf("names %q", got)
	}
	for _, name := range []string{"", "system.data", acl.Access, acl.Default, "user." + strings.Repeat("n", 256)} {
		if _, err := l.Value(name); err != linux.ENODATA {
			t.Errorf("value of %.30q: %v", name, err)
		}
		if _, err := l.Set(name, nil, 0); err != linux.EINVAL {
			t.Errorf("set %.30q: %v", name, err)
		}
		if _, err := l.Remove(name); err != linux.EINVAL {
			t.Errorf("remove %.30q: %v", name, err)
		}
	}
}

func TestSet(t *testing.T) {
	var l List
	for _, c := range []struct {
		value string
		flags fs.XattrFlags
		err   error
	}{
		{"a", fs.XattrReplace, linux.ENODATA}, {"b", 0, nil}, {"c", fs.XattrCreate, linux.EEXIST}, {"d", fs.XattrReplace, nil},
		{strings.Repeat("e", disk.MaxAttribute+1), 0, linux.ENOSPC},
	} {
		changed, err := l.Set("user.n", []byte(c.value), c.flags)
		if err != c.err {
			t.Fatalf("%.10s: %v, want %v", c.value, err, c.err)
		}
		if err == nil {
			l = changed
		}
	}
	if got, err := l.Value("user.n"); string(got) != "d" || err != nil || len(l) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	l, err := l.Remove("user.n")
	if err != nil || len(l) != 0 {
		t.Errorf("%v, %v", l, err)
	}
}

// A damaged list stays as it is when the other one is set.
func TestSetACL(t *testing.T) {
	valid, err := acl.Parse([]byte("\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff\x04\x00\x05\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff"))
	if err != nil {
		t.Fatal(err)
	}
	l := List{{Name: "user.n"}, {Name: acl.Access, Value: []byte("damaged")}}
	lists := l.ACL().Lists()
	if lists != (acl.Lists{Access: acl.Unreadable}) {
		t.Fatalf("%q", lists)
	}
	lists.Default = valid
	l = l.SetACL(lists.Set())
	if string(l[1].Value) != "damaged" || l.ACL().Lists() != lists {
		t.Errorf("%q", l)
	}
	if l = l.SetACL(acl.Set{}); len(l) != 1 || l[0].Name != "user.n" {
		t.Errorf("%q", l)
	}
}

// Attributes that do not fit in the inode remain.
func TestPlace(t *testing.T) {
	small, large := disk.Attribute{Name: "user.s", Value: []byte("v")}, disk.Attribute{Name: "user.l", Value: make([]byte, 200)}
	area := make([]byte, 100)
	outside, size := List{large, small}.Place(area)
	inside, err := disk.ReadAttributes(area, false)
	if err != nil || len(inside) != 1 || inside[0].Name != "user.s" || len(outside) != 1 || outside[0].Name != "user.l" || size != disk.AttributeSize(large) {
		t.Errorf("inside %q, %v; outside %q, %d bytes", inside, err, outside, size)
	}
	if outside, size = (List{small}).Place(nil); len(outside) != 1 || size == 0 {
		t.Errorf("without room: %q, %d bytes", outside, size)
	}
}
