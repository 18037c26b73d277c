package fstest

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/acl"
)

// Commands for access control lists. A list is text as in acl(5), with permissions as digits: u::7,u:1000:6,g::5,m::7,o::4. A list of
// the text "-" has no entries.

var tags = map[string][2]uint16{"u": {1, 2}, "g": {4, 8}, "m": {0x10, 0x10}, "o": {0x20, 0x20}}

// listValue returns the value of the attribute with a list.
func (m *machine) listValue(text string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	if text == "-" {
		return b
	}
	for _, part := range strings.Split(text, ",") {
		f := strings.Split(part, ":")
		tag, id := tags[f[0]][0], ^uint32(0)
		if f[1] != "" {
			tag, id = tags[f[0]][1], uint32(m.number(f[1], 0))
		}
		b = binary.LittleEndian.AppendUint16(b, tag)
		b = binary.LittleEndian.AppendUint16(b, uint16(m.number(f[2], 0)))
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	return b
}

// setList PATH LIST sets a list.
func (m *machine) setList(w []string, name string) error {
	p, err := m.xattrPlace(w[0])
	if err != nil {
		return err
	}
	return m.view.SetXattr(p, name, m.listValue(w[1]), 0)
}

// getList PATH LIST [MODE] compares a list, and the permission bits.
func (m *machine) getList(w []string, name string) error {
	p, err := m.xattrPlace(w[0])
	if err != nil {
		return err
	}
	value, err := m.view.Xattr(p, name)
	if err == nil && string(value) != string(m.listValue(w[1])) {
		m.fail("it is %x", value)
	}
	if mode := p.Node.Attr().Mode & fs.Permissions; w[2] != "" && mode != m.mode(w[2], 0) {
		m.fail("the mode is %o", mode)
	}
	return err
}

// TestACL tests access control lists, which some file systems do not have. The function make has the same meaning as for Test.
func TestACL(t *testing.T, make func(t *testing.T) fs.FileSystem) {
	m := &machine{T: t, view: fs.NewView(fs.NewTree(make(t))), files: map[string]*fs.File{}}
	m.run(lists)
	m.run(inherited)
	m.run(errors)
	m.run(whiteouts)
	m.manyEntries()
}

// manyEntries stores lists until one is too long for the file system. The file then has the previous list.
func (m *machine) manyEntries() {
	m.run("write many x")
	stored := ""
	for n := 1; n <= 4096; n *= 2 {
		text := "u::7,g::0,"
		for i := range n {
			text += fmt.Sprintf("g:%d:5,", i)
		}
		text += "m::7,o::0"
		switch err := m.setList([]string{"many", text}, acl.Access); err {
		case nil:
			stored = text
			continue
		case error(linux.ENOSPC):
		default:
			m.Fatalf("%d entries: %v", n, err)
		}
		break
	}
	if err := m.getList([]string{"many", stored, "0770"}, acl.Access); err != nil {
		m.Fatal(err)
	}
	m.run("rm many")
}

// lists is a script: who may use files with lists, and what chmod(2) changes.
const lists = `
	chmod / 0777
	umask 0
	mkdir d 0777
	write d/f x 0640
	getacl d/f - -> ENODATA
	setacl d/f u::6,u:1000:6,g::4,g:200:7,m::6,o::0
	getacl d/f u::6,u:1000:6,g::4,g:200:7,m::6,o::0 0660
	lsx d/f system.posix_acl_access
	as 1000:99
	read d/f x
	write d/f y
	access d/f x -> EACCES       # the mask and no entry allow execution
	setacl d/f u::7,g::7,o::7 -> EPERM
	rmacl d/f -> EPERM
	chmod d/f 0777 -> EPERM
	as 1001:200
	append d/f z
	read d/f yz
	access d/f x -> EACCES       # the mask limits the group
	as 1001:99
	access d/f r -> EACCES
	access d/f -
	as 0
	chmod d/f 0750                # the mask becomes r-x
	getacl d/f u::7,u:1000:6,g::4,g:200:7,m::5,o::0 0750
	as 1000:99
	access d/f r
	access d/f w -> EACCES
	as 1001:200
	access d/f rx
	as 0
	chmod d/f 0700                # without group bits, the list does not apply
	as 1000:99
	access d/f r -> EACCES
	as 0
	chmod d/f 0640
	chown d/f 1000:200
	getacl d/f u::6,u:1000:6,g::4,g:200:7,m::4,o::0 0640
	as 1000:99
	access d/f rw
	setacl d/f u::4,u:1001:6,g::0,m::6,o::0
	access d/f w -> EACCES       # only the entry of the owner applies to the owner
	as 1001:99
	access d/f rw
	as 0
	setacl d/f u::6,g::4,o::4     # only the mode is left of a minimal list
	getacl d/f - 0644 -> ENODATA
	lsx d/f
	setacl d/f u::6,g::0,m::4,o::0
	rmacl d/f
	getacl d/f - 0640 -> ENODATA
	rmacl d/f
	setacl d/f u::6,g::0,m::4,o::0
	setacl d/f -                  # a list without entries is no list
	getacl d/f - 0640 -> ENODATA
	setacl d u::7,u:1000:1,g::0,m::7,o::0
	as 1000:99                    # the list of a directory that is on the path
	read d/f yz
	stat d/f type=file
	ls d f -> EACCES
	access d r -> EACCES
	write d/g x -> EACCES
	rm d/f -> EACCES
	as 1001:99
	stat d/f type=file -> EACCES
	stat d/absent type=file -> EACCES
	as 0
	setacl d u::7,u:1001:7,g::0,m::7,o::0
	as 1001:99
	write d/g x
	mv d/g d/h
	rm d/h
	as 1000:99
	stat d/f type=file -> EACCES
	as 0
	rmacl d
	chmod d 0777
	write d/s x
	chown d/s 1000:200
	chmod d/s 02755
	as 1000:99                    # not a member of the group 200
	setacl d/s u::7,u:1:7,g::5,m::5,o::5
	getacl d/s u::7,u:1:7,g::5,m::5,o::5 0755
	as 0
	setx d/f user.n v
	setacl d/f u::6,u:1000:6,g::4,m::6,o::0
	lsx d/f system.posix_acl_access,user.n
	rmx d/f user.n
	link d/f l
	getacl l u::6,u:1000:6,g::4,m::6,o::0
	rm l
	mv d/f f
	getacl f u::6,u:1000:6,g::4,m::6,o::0 0660
	rm f
	rm d/s
	rmdir d
`

// inherited is a script: what new files in a directory with a default list get.
const inherited = `
	umask 077
	mkdir d 0777
	setdefault d u::7,u:1000:7,g::5,m::7,o::4
	getacl d - 0700 -> ENODATA    # the default list does not change the mode
	write d/f x 0666
	getacl d/f u::6,u:1000:7,g::5,m::6,o::4 0664
	getdefault d/f - -> ENODATA
	write d/g x 0600
	getacl d/g u::6,u:1000:7,g::5,m::0,o::0 0600
	mkdir d/sub 0755
	getacl d/sub u::7,u:1000:7,g::5,m::5,o::4 0754
	getdefault d/sub u::7,u:1000:7,g::5,m::7,o::4
	lsx d/sub system.posix_acl_access,system.posix_acl_default
	write d/sub/f x 0640
	getacl d/sub/f u::6,u:1000:7,g::5,m::4,o::0 0640
	mknod d/p 0010660
	getacl d/p u::6,u:1000:7,g::5,m::6,o::0 0660
	symlink f d/l
	getacl d/l! - -> EOPNOTSUPP
	getacl d/l u::6,u:1000:7,g::5,m::6,o::4 0664
	rmdefault d/sub
	write d/sub/g x 0666
	getacl d/sub/g - 0600 -> ENODATA
	setdefault d u::7,g::5,o::4     # a minimal list remains
	getdefault d u::7,g::5,o::4
	write d/h x 0666
	getacl d/h - 0644 -> ENODATA
	mkdir d/sub2 0777
	getacl d/sub2 - 0754 -> ENODATA
	getdefault d/sub2 u::7,g::5,o::4
	open tmp d tmp,dir,rw 0666
	flink tmp d/t
	close tmp
	getacl d/t - 0644 -> ENODATA
	rm d/t
	setdefault d -
	getdefault d - -> ENODATA
	rm d/f
	rm d/g
	rm d/h
	rm d/p
	rm d/l
	rm d/sub/f
	rm d/sub/g
	rmdir d/sub
	rmdir d/sub2
	rmdir d
	umask 0
`

// errors is a script: the errors of setxattr(2) for lists.
const errors = `
	write f x 0644
	setx f system.posix_acl_access v -> EINVAL
	setx f system.posix_acl_access four -> EOPNOTSUPP
	setx f system.posix_acl v -> EOPNOTSUPP
	setacl f u::7,u:1:7,g::7,o::7 -> EINVAL
	setacl f u::7,o::7,g::7 -> EINVAL
	setacl f u::8,g::7,o::7 -> EINVAL
	setacl f u::7,u:4294967295:7,g::7,m::7,o::7 -> EINVAL
	setdefault f u::7,g::7,o::7 -> EACCES
	setdefault f -
	rmdefault f
	getdefault f - -> ENODATA
	mkdir d 0755
	as 1000:100
	setdefault d u::7,g::7,o::7 -> EPERM
	setdefault f u::7,g::7,o::7 -> EACCES
	rmdefault d -> EPERM
	setacl f u::7,u:1:7,g::7,o::7 -> EPERM
	as 0
	getacl f - 0644 -> ENODATA
	rm f
	rmdir d
`

// whiteouts is a script: a rename that leaves a whiteout.
const whiteouts = `
	mkdir d 0777
	mkdir e 0777
	as 1000:100
	write d/f x
	whiteout d/f d/g
	read d/g x
	lstat d/f type=char mode=00 uid=1000 gid=100 links=1 size=0
	read d/f - -> EACCES
	write d/f y -> EACCES
	mknod d/own 0020600
	whiteout d/g d/f              # over a whiteout
	read d/f x
	lstat d/g type=char
	whiteoutnew d/f d/own -> EEXIST
	rm d/own
	whiteoutnew d/f e/own
	read e/own x
	link e/own e/same
	whiteout e/own e/same         # names of the same file
	lstat e/own type=file links=2
	rm e/same
	mkdir d/sub
	write d/sub/f x
	whiteout d/sub e/sub
	lstat d/sub type=char
	stat d links=2
	stat e links=3
	read e/sub/f x
	whiteout d/absent d/x -> ENOENT
	rm d/f
	rm d/g
	rm d/sub
	rm e/own
	rm e/sub/f
	rmdir e/sub
	as 0
	rmdir d
	rmdir e
`
