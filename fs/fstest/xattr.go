package fstest

import (
	"strings"
	"testing"

	"loam/fs"
)

// Commands for extended attributes. A path that ends in "!" means a symbolic link itself.

func (m *machine) xattrPlace(path string) (fs.Place, error) {
	bare, link := strings.CutSuffix(path, "!")
	return m.view.Lookup(m.view.Dir, bare, !link)
}

var xattrFlags = map[string]fs.XattrFlags{"": 0, "create": fs.XattrCreate, "replace": fs.XattrReplace}

// setXattr PATH NAME VALUE [create|replace] sets an attribute.
func (m *machine) setXattr(w []string) error {
	p, err := m.xattrPlace(w[0])
	if err != nil {
		return err
	}
	return m.view.SetXattr(p, w[1], []byte(text(w[2])), xattrFlags[w[3]])
}

func (m *machine) getXattr(w []string) error {
	p, err := m.xattrPlace(w[0])
	if err != nil {
		return err
	}
	value, err := m.view.Xattr(p, w[1])
	if err == nil && string(value) != text(w[2]) {
		m.fail("it is %q", value)
	}
	return err
}

// listXattrs PATH [NAME,NAME] compares the names of the attributes.
func (m *machine) listXattrs(w []string) error {
	p, err := m.xattrPlace(w[0])
	if err != nil {
		return err
	}
	if got := strings.Join(m.view.Xattrs(p), ","); got != w[1] {
		m.fail("it has %s", got)
	}
	return nil
}

func (m *machine) removeXattr(w []string) error {
	p, err := m.xattrPlace(w[0])
	if err != nil {
		return err
	}
	return m.view.RemoveXattr(p, w[1])
}

// TestTrusted tests extended attributes of the classes "trusted" and "security", which some file systems do
// not have. The function make has the same meaning as for Test.
func TestTrusted(t *testing.T, make func(t *testing.T) fs.FileSystem) {
	m := &machine{T: t, view: fs.NewView(fs.NewTree(make(t))), files: map[string]*fs.File{}}
	m.run(trusted)
	m.run(strings.ReplaceAll(capabilities, "CAPS", "\x01\x00\x00\x02"+strings.Repeat("\x00", 16)))
}

// trusted is a script: only an administrator may use these attributes, of a file of any type, whatever its mode.
const trusted = `
	chmod / 0777
	write a x
	chmod a 0
	setx a trusted.n v create
	setx a trusted.n v create -> EEXIST
	setx a trusted. v -> EINVAL
	getx a trusted. v -> EINVAL
	getx a trusted.m v -> ENODATA
	setx a user.n w
	lsx a trusted.n,user.n
	symlink a l
	setx l! trusted.l v
	getx l! trusted.l v
	lsx l! trusted.l
	mknod p 0010666
	setx p trusted.p v
	lsx p trusted.p
	as 1000:100
	getx a trusted.n v -> ENODATA
	setx a trusted.n v -> EPERM
	rmx a trusted.n -> EPERM
	lsx a user.n
	lsx p
	as 0
	getx a trusted.n v
	rmx a trusted.n
	rmx a trusted.n -> ENODATA
	lsx a user.n
	rm l
	rm p
`

// capabilities is a script: a change of the content, of the size or of the owner removes the capabilities of a file.
// CAPS stands for a struct vfs_cap_data.
const capabilities = `
	write c x
	setx c security.capability CAPS
	getx c security.capability CAPS
	chmod c 0640
	getx c security.capability CAPS
	append c x
	getx c security.capability CAPS -> ENODATA
	setx c security.capability CAPS
	write c x
	getx c security.capability CAPS -> ENODATA
	setx c security.capability CAPS
	truncate c 1
	getx c security.capability CAPS -> ENODATA
	open f c w
	fwrite f x
	setx c security.capability CAPS
	fwrite f x
	getx c security.capability CAPS -> ENODATA
	setx c security.capability CAPS
	chown c 1:1
	getx c security.capability CAPS -> ENODATA
	close f
	setx c security.capability CAPS
	mkdir dir
	setx dir security.capability CAPS
	chown dir 1:1
	getx dir security.capability CAPS
	rm c
	rmdir dir
`
