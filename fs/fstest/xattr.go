package fstest

import (
	"strings"

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
