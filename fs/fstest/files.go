package fstest

import (
	"slices"
	"strconv"
	"strings"

	"loam/fs"
)

// Commands that inspect files: content, attributes, permissions.

func (m *machine) get(w []string) error {
	f, err := m.view.Open(m.view.Dir, w[0], fs.ReadOnly, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	n, err := f.Read(b)
	if err == nil && string(b[:n]) != text(w[1]) {
		m.fail("it holds %q", b[:n])
	}
	return err
}

// list compares a listing with the expected names, separated by commas.
func (m *machine) list(w []string) error {
	f, err := m.view.Open(m.view.Dir, w[0], fs.ReadOnly|fs.MustBeDir, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var names []string
	err = f.ReadDir(func(e fs.Entry) bool { names = append(names, e.Name); return true })
	if err != nil {
		return err
	}
	slices.Sort(names)
	want := []string{".", ".."}
	if w[1] != "" {
		want = append(want, strings.Split(w[1], ",")...)
	}
	if !slices.Equal(names, want) {
		m.fail("it holds %s", names)
	}
	return nil
}

// stat compares attributes with words such as mode=0644, type=dir, links=2, size=5, uid=1, gid=1,
// blocks=0.
func (m *machine) stat(w []string, follow bool) error {
	p, err := m.view.Lookup(m.view.Dir, w[0], follow)
	if err != nil {
		return err
	}
	a := p.Node.Attr()
	got := map[string]string{
		"mode": "0" + strconv.FormatUint(uint64(a.Mode&fs.Permissions), 8), "type": typeName(a.Mode),
		"links": strconv.Itoa(int(a.Links)), "size": strconv.Itoa(int(a.Size)),
		"uid": strconv.Itoa(int(a.UID)), "gid": strconv.Itoa(int(a.GID)), "blocks": strconv.Itoa(int(a.Blocks)),
	}
	for _, word := range w[1:] {
		if key, want, _ := strings.Cut(word, "="); key != "" && got[key] != want {
			m.fail("%s is %q", key, got[key])
		}
	}
	return nil
}

func typeName(mode fs.Mode) string {
	return map[fs.Mode]string{
		fs.Regular: "file", fs.Dir: "dir", fs.Symlink: "link", fs.Fifo: "fifo", fs.Socket: "socket",
		fs.CharDevice: "char", fs.BlockDevice: "block",
	}[mode.Type()]
}

func (m *machine) change(path string, c fs.Change) error {
	p, err := m.lookup(path)
	if err != nil {
		return err
	}
	return m.view.Change(p, c)
}

func (m *machine) chown(w []string) error {
	uid, gid, _ := strings.Cut(w[1], ":")
	c := fs.Change{Fields: fs.SetOwner, UID: uint32(m.number(uid, 0))}
	if gid != "" {
		c.Fields |= fs.SetGroup
		c.GID = uint32(m.number(gid, 0))
	}
	return m.change(w[0], c)
}

func (m *machine) access(w []string) error {
	var wish fs.Wish
	for _, c := range w[1] {
		wish |= map[rune]fs.Wish{'r': fs.ToRead, 'w': fs.ToWrite, 'x': fs.ToExecute}[c]
	}
	p, err := m.lookup(w[0])
	if err != nil {
		return err
	}
	return m.view.Access(p, wish)
}

func (m *machine) chdir(w []string) error {
	p, err := m.view.LookupDir(m.view.Dir, w[0])
	if err == nil {
		m.view.Dir = p
	}
	return err
}

func (m *machine) chroot(w []string) error {
	p, err := m.view.LookupDir(m.view.Dir, w[0])
	if err == nil {
		m.view.Root = p
	}
	return err
}

func (m *machine) pwd(w []string) error {
	got, err := m.view.Path(m.view.Dir)
	if err == nil && got != w[0] {
		m.fail("it is %s", got)
	}
	return err
}

// as sets the credentials: UID, or UID:GID, or UID:GID:GROUP.
func (m *machine) as(w []string) error {
	ids := append(strings.Split(w[0], ":"), "", "")
	m.view.Who = fs.Credentials{UID: uint32(m.number(ids[0], 0)), GID: uint32(m.number(ids[1], 0))}
	if ids[2] != "" {
		m.view.Who.Groups = []uint32{uint32(m.number(ids[2], 0))}
	}
	return nil
}

var openFlags = map[string]fs.Flags{
	"r": fs.ReadOnly, "w": fs.WriteOnly, "rw": fs.ReadWrite, "create": fs.Create, "excl": fs.Exclusive,
	"trunc": fs.Truncate, "append": fs.Append, "dir": fs.MustBeDir, "nofollow": fs.NoFollow, "path": fs.PathOnly,
	"tmp": fs.TempFile,
}

// open NAME PATH FLAG,FLAG [MODE] opens a file. Later lines refer to it as NAME.
func (m *machine) open(w []string) error {
	var flags fs.Flags
	for _, word := range strings.Split(w[2], ",") {
		flag, ok := openFlags[word]
		if !ok {
			m.fail("no flag %q", word)
		}
		flags |= flag
	}
	f, err := m.view.Open(m.view.Dir, w[1], flags, m.mode(w[3], 0o644))
	if err == nil {
		m.files[w[0]] = f
	}
	return err
}

func (m *machine) close(w []string) error { return m.files[w[0]].Close() }

func (m *machine) fread(w []string) error {
	want := text(w[1])
	b := make([]byte, max(len(want), 1))
	n, err := m.files[w[0]].Read(b)
	if err == nil && string(b[:n]) != want {
		m.fail("it gives %q", b[:n])
	}
	return err
}

// fseek NAME OFFSET [WHENCE] sets the offset of an open file.
func (m *machine) fseek(w []string) error {
	_, err := m.files[w[0]].Seek(m.number(w[1], 0), int(m.number(w[2], 0)))
	return err
}
