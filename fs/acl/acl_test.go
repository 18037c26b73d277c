package acl

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"loam/abi/linux"
)

// entriesOf decodes the short text form of acl(5), such as "u::rwx,u:1000:r--,g::r-x,m::r-x,o::---".
func entriesOf(text string) []entry {
	tags := map[string][2]uint16{"u": {userObj, user}, "g": {groupObj, group}, "m": {mask, mask}, "o": {other, other}}
	var all []entry
	for _, part := range strings.Split(text, ",") {
		f := strings.Split(part, ":")
		e := entry{tag: tags[f[0]][0], id: noID}
		if f[1] != "" {
			id, err := strconv.ParseUint(f[1], 10, 32)
			if err != nil {
				panic(err)
			}
			e.tag, e.id = tags[f[0]][1], uint32(id)
		}
		for i, letter := range "xwr" {
			if strings.ContainsRune(f[2], letter) {
				e.permissions |= 1 << i
			}
		}
		all = append(all, e)
	}
	return all
}

func parse(t testing.TB, text string) List {
	t.Helper()
	l, ok := list(entriesOf(text))
	if !ok {
		t.Fatalf("%s is not valid", text)
	}
	return l
}

// acl(5), VALID ACLS.
func TestValid(t *testing.T) {
	for _, c := range []struct {
		text, why string
		valid     bool
	}{
		{"u::rwx,g::r-x,o::r--", "a minimal ACL", true},
		{"u::rwx,g::r-x,m::rwx,o::r--", "a mask may be in a minimal ACL", true},
		{"u::rwx,u:1:r--,u:2:r--,g::r-x,g:1:rwx,m::rwx,o::r--", "an extended ACL", true},
		{"u::rwx,u:1:r--,u:1:rw-,g::r-x,m::rwx,o::r--", "Linux allows two entries for a user", true},
		{"g::r-x,o::r--", "no ACL_USER_OBJ entry", false},
		{"u::rwx,o::r--", "no ACL_GROUP_OBJ entry", false},
		{"u::rwx,g::r-x", "no ACL_OTHER entry", false},
		{"u::rwx,u::rwx,g::r-x,o::r--", "two ACL_USER_OBJ entries", false},
		{"u::rwx,g::r-x,g::r-x,o::r--", "two ACL_GROUP_OBJ entries", false},
		{"u::rwx,g::r-x,m::r--,m::r--,o::r--", "two ACL_MASK entries", false},
		{"u::rwx,g::r-x,o::r--,o::r--", "two ACL_OTHER entries", false},
		{"u::rwx,u:1:r--,g::r-x,o::r--", "an ACL_USER entry without a mask", false},
		{"u::rwx,g::r-x,g:1:r--,o::r--", "an ACL_GROUP entry without a mask", false},
		{"u::rwx,g::r-x,u:1:r--,m::r--,o::r--", "the entries are not in order", false},
		{"u::rwx,u:4294967295:r--,g::r-x,m::r--,o::r--", "the ID is no ID", false},
	} {
		if _, ok := list(entriesOf(c.text)); ok != c.valid {
			t.Errorf("%s (%s): valid is %v", c.text, c.why, ok)
		}
	}
	for _, bad := range []entry{{3, 7, 0}, {0, 7, 0}, {0x40, 7, 0}, {mask, 8, 0}} {
		if _, ok := list(append(append(entriesOf("u::rwx,g::rwx"), bad), entriesOf("o::rwx")...)); ok {
			t.Errorf("the entry %v is valid", bad)
		}
	}
}

// acl(5), ACCESS CHECK ALGORITHM. The file belongs to user 1 and group 10.
func TestAccessCheck(t *testing.T) {
	const l = "u::r--,u:2:rw-,u:3:rwx,g::r--,g:11:-w-,g:12:rw-,m::rw-,o::--x"
	for _, c := range []struct {
		who  User
		want string
		ok   bool
		why  string
	}{
		{User{UID: 1, GID: 10}, "r", true, "the owner has the permissions of ACL_USER_OBJ"},
		{User{UID: 1, GID: 12}, "w", false, "no other entry applies to the owner"},
		{User{UID: 2, GID: 99}, "rw", true, "the entry of the user, and the mask, contain the permissions"},
		{User{UID: 2, GID: 99}, "x", false, "other entries do not apply to a user with an entry"},
		{User{UID: 3, GID: 99}, "rw", true, "the mask contains the permissions"},
		{User{UID: 3, GID: 99}, "x", false, "the mask limits the entry of a user"},
		{User{UID: 9, GID: 10}, "r", true, "the group of the file"},
		{User{UID: 9, GID: 10}, "w", false, "the group of the file has no such permission"},
		{User{UID: 9, GID: 10}, "x", false, "ACL_OTHER does not apply to a member of a group with an entry"},
		{User{UID: 9, GID: 99, Groups: []uint32{11}}, "w", true, "a supplementary group"},
		{User{UID: 9, GID: 10, Groups: []uint32{11}}, "r", true, "one of the groups suffices"},
		{User{UID: 9, GID: 10, Groups: []uint32{11}}, "rw", false, "no single entry of a group contains all permissions"},
		{User{UID: 9, GID: 10, Groups: []uint32{11, 12}}, "rw", true, "a later entry of a group contains all permissions"},
		{User{UID: 9, GID: 99}, "x", true, "the mask does not limit ACL_OTHER"},
		{User{UID: 9, GID: 99}, "r", false, "ACL_OTHER has no such permission"},
		{User{UID: 9, GID: 99}, "", true, "no permission is requested"},
	} {
		var want uint16
		for i, letter := range "xwr" {
			if strings.ContainsRune(c.want, letter) {
				want |= 1 << i
			}
		}
		if ok := parse(t, l).Allows(c.who, 1, 10, want); ok != c.ok {
			t.Errorf("%+v, %q: %v (%s)", c.who, c.want, ok, c.why)
		}
	}
	if Unreadable.Allows(User{UID: 2}, 1, 10, 1) {
		t.Error("an unreadable list allows access")
	}
	who, some := User{UID: 9, GID: 10, Groups: []uint32{12}}, parse(t, l)
	if n := testing.AllocsPerRun(100, func() { some.Allows(who, 1, 10, 6) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// acl(5), CORRESPONDENCE BETWEEN ACL ENTRIES AND FILE PERMISSION BITS.
func TestMode(t *testing.T) {
	for _, c := range []struct {
		text    string
		mode    uint16
		minimal bool
		chmod   uint16
		changed string
	}{
		{"u::rw-,g::r--,o::---", 0o640, true, 0o751, "u::rwx,g::r-x,o::--x"},
		{"u::rw-,u:7:rwx,g::r--,m::rw-,o::--x", 0o661, false, 0o400, "u::r--,u:7:rwx,g::r--,m::---,o::---"},
		{"u::rw-,g::r--,m::---,o::--x", 0o601, false, 0o777, "u::rwx,g::r--,m::rwx,o::rwx"},
	} {
		l := parse(t, c.text)
		if mode, minimal := l.Mode(); mode != c.mode || minimal != c.minimal {
			t.Errorf("%s: mode %o, %v", c.text, mode, minimal)
		}
		if got := l.Chmod(c.chmod); got != parse(t, c.changed) {
			t.Errorf("%s: chmod %o makes %x", c.text, c.chmod, got)
		}
	}
	if List("").Chmod(0o777) != "" || Unreadable.Chmod(0o777) != Unreadable {
		t.Error("chmod makes a list")
	}
}

// acl(5), OBJECT CREATION AND DEFAULT ACLs.
func TestCreate(t *testing.T) {
	for _, c := range []struct {
		inherited string
		mode      uint16
		want      uint16
		access    string
	}{
		{"u::rwx,g::r-x,o::--x", 0o666, 0o640, ""},
		{"u::rwx,g::r-x,o::--x", 0o777, 0o751, ""},
		{"u::rwx,u:5:rwx,g::r-x,m::rwx,o::---", 0o644, 0o640, "u::rw-,u:5:rwx,g::r-x,m::r--,o::---"},
		{"u::rwx,u:5:rwx,g::r-x,m::r-x,o::---", 0o777, 0o750, "u::rwx,u:5:rwx,g::r-x,m::r-x,o::---"},
		{"u::rwx,g::rwx,m::rw-,o::r--", 0o600, 0o600, "u::rw-,g::rwx,m::---,o::---"},
	} {
		want := List("")
		if c.access != "" {
			want = parse(t, c.access)
		}
		if mode, access := parse(t, c.inherited).Create(c.mode); mode != c.want || access != want {
			t.Errorf("%s, mode %o: %o, %x", c.inherited, c.mode, mode, access)
		}
	}
}

// The format of attributes has an ID in each entry; the format of disks has one only for users and groups with an ID.
func TestFormats(t *testing.T) {
	l := parse(t, "u::rwx,u:1000:r--,g::r-x,m::r-x,o::---")
	outside := []byte("\x02\x00\x00\x00" + "\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\xe8\x03\x00\x00" +
		"\x04\x00\x05\x00\xff\xff\xff\xff" + "\x10\x00\x05\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff")
	onDisk := []byte("\x01\x00\x00\x00" + "\x01\x00\x07\x00" + "\x02\x00\x04\x00\xe8\x03\x00\x00" + "\x04\x00\x05\x00" +
		"\x10\x00\x05\x00" + "\x20\x00\x00\x00")
	if got := l.Value(); !bytes.Equal(got, outside) {
		t.Errorf("attribute %x", got)
	}
	if got := l.Disk(); !bytes.Equal(got, onDisk) {
		t.Errorf("disk %x", got)
	}
	if got, err := Parse(outside); got != l || err != nil {
		t.Errorf("%x, %v", got, err)
	}
	if got := FromDisk(onDisk); got != l {
		t.Errorf("from disk: %x", got)
	}
	if got, err := Parse(outside[:4]); got != "" || err != nil {
		t.Errorf("no entries: %x, %v", got, err)
	}
	for _, c := range []struct {
		value []byte
		err   error
	}{
		{nil, nil}, {outside[:3], linux.EINVAL}, {outside[:11], linux.EINVAL}, {onDisk, linux.EOPNOTSUPP},
		{outside[:12], linux.EINVAL}, {append(bytes.Clone(outside), outside[4:12]...), linux.EINVAL},
	} {
		if _, err := Parse(c.value); err != c.err {
			t.Errorf("%x: %v, want %v", c.value, err, c.err)
		}
	}
	for _, bad := range [][]byte{nil, onDisk[:3], onDisk[:7], onDisk[:12], onDisk[:16], outside, append(bytes.Clone(onDisk), 1, 0, 7, 0)} {
		if FromDisk(bad) != Unreadable {
			t.Errorf("%x is readable", bad)
		}
	}
}

// Sets are equal if their lists are.
func TestSet(t *testing.T) {
	text := "u::rwx,u:1000:r--,g::r-x,m::r-x,o::---"
	a, b := Lists{Access: parse(t, text)}, Lists{Access: parse(t, text)}
	if a.Set() != b.Set() || a.Set().Lists() != b || a.Set() == (Lists{Default: a.Access}).Set() {
		t.Error("sets and their lists do not match")
	}
	if (Lists{}).Set() != (Set{}) || (Set{}).Lists() != (Lists{}) {
		t.Error("the zero set has lists")
	}
	if got := (Lists{a.Access, a.Access}).Names(); strings.Join(got, " ") != Access+" "+Default {
		t.Errorf("%q", got)
	}
}

// A value that is accepted has the same bytes after it was decoded, except for unused IDs.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"u::rwx,g::rwx,o::---", "u::rwx,u:1000:r--,g::r-x,g:4:rwx,m::r-x,o::---"} {
		f.Add(parse(f, text).Value())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Parse(b)
		if (err == nil) && WellFormed(b) != nil {
			t.Fatalf("%x is valid but not well formed", b)
		}
		if err != nil || l == "" {
			return
		}
		want := bytes.Clone(b)
		for at := 4; at < len(want); at += entrySize {
			if !hasID(binary.LittleEndian.Uint16(want[at:])) {
				binary.LittleEndian.PutUint32(want[at+4:], noID)
			}
		}
		if !bytes.Equal(l.Value(), want) || FromDisk(l.Disk()) != l {
			t.Fatalf("%x becomes %x, and %x on disk", b, l.Value(), l.Disk())
		}
		mode, minimal := l.Mode()
		if again, _ := l.Chmod(mode).Mode(); again != mode || l.Chmod(mode) != l {
			t.Fatalf("%x: chmod %o changes the list", l, mode)
		}
		who := User{UID: 2, GID: 3}
		if minimal && l.Allows(who, 1, 10, 4) != (mode&4 != 0) {
			t.Fatalf("%x: a minimal list differs from mode %o", l, mode)
		}
	})
}

// A list on a disk is either unreadable or the same after it was decoded.
func FuzzDisk(f *testing.F) {
	f.Add(parse(f, "u::rwx,u:1000:r--,g::r-x,g:4:rwx,m::r-x,o::---").Disk())
	f.Fuzz(func(t *testing.T, b []byte) {
		if l := FromDisk(b); l != Unreadable && !bytes.Equal(l.Disk(), b) {
			t.Fatalf("%x becomes %x", b, l.Disk())
		}
	})
}
