package ninep_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
)

// stat returns the size and the mode of a file, by View.Stat.
func stat(t *testing.T, v *fs.View, path string) (size int64, mode fs.Mode) {
	t.Helper()
	a, _, err := v.Stat(v.Dir, path, true)
	must(t, err)
	return a.Size, a.Mode
}

// list lists a directory, and looks none of its names up.
func list(t *testing.T, v *fs.View, path string) {
	t.Helper()
	d, err := v.Open(v.Dir, path, fs.ReadOnly|fs.MustBeDir, 0)
	must(t, err)
	must(t, d.ReadDir(func(fs.Entry) bool { return true }))
	must(t, d.Close())
}

// A program that only reads attributes of listed files exchanges no messages with the server, and sees its own changes at once.
func TestGlance(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"written", "mode", "linked", "removed"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("12345"), 0o644))
	}
	must(t, os.Symlink("mode", filepath.Join(dir, "symlink")))
	s := export(t, dir, ninep.Config{Valid: time.Hour}, server.Config{})
	v := view(s)
	list(t, v, ".")
	before := s.Rounds()
	if size, mode := stat(t, v, "written"); size != 5 || mode != fs.Regular|0o644 {
		t.Errorf("%d bytes, mode %o", size, mode)
	}
	if n := s.Rounds() - before; n != 0 {
		t.Errorf("%d rounds for the attributes of a listed file", n)
	}

	write(t, v, "written", "1234567", 0)
	if size, _ := stat(t, v, "written"); size != 7 {
		t.Errorf("after a write: %d bytes", size)
	}
	p, err := v.Lookup(v.Dir, "mode", false)
	must(t, err)
	must(t, v.Change(p, fs.Change{Fields: fs.SetMode, Mode: 0o600}))
	for _, name := range []string{"mode", "symlink"} {
		if _, mode := stat(t, v, name); mode != fs.Regular|0o600 {
			t.Errorf("%s after chmod: mode %o", name, mode)
		}
	}
	if a, _, err := v.Stat(v.Dir, "symlink", false); err != nil || a.Mode.Type() != fs.Symlink {
		t.Errorf("the link itself: %o, %v", a.Mode, err)
	}
	p, err = v.Lookup(v.Dir, "linked", false)
	must(t, err)
	must(t, v.Link(p, v.Dir, "other"))
	write(t, v, "other", "1234567", 0)
	if size, _ := stat(t, v, "linked"); size != 7 {
		t.Errorf("after a write to another name: %d bytes", size)
	}
	must(t, v.Unlink(v.Dir, "removed"))
	if _, _, err := v.Stat(v.Dir, "removed", true); err != linux.ENOENT {
		t.Errorf("after unlink: %v", err)
	}
	if _, _, err := v.Stat(v.Dir, "mode/", true); err != linux.ENOTDIR {
		t.Errorf("a file with a slash: %v", err)
	}
}

// The attributes are right also when the node of a changed file was collected. Each change is compared with the host.
func TestGlanceCollected(t *testing.T) {
	dir := folder(t)
	v := view(export(t, dir, ninep.Config{Valid: time.Hour}, server.Config{}))
	file := func(name string) fs.Place {
		p, err := v.Lookup(v.Dir, name, false)
		must(t, err)
		return p
	}
	steps := []struct {
		name string
		do   func()
	}{
		{"create", func() { write(t, v, "a", "1", 0); write(t, v, "b", "12", 0) }},
		{"write", func() { write(t, v, "a", "12345", 0) }},
		{"chmod", func() { must(t, v.Change(file("a"), fs.Change{Fields: fs.SetMode, Mode: 0o600})) }},
		{"rename", func() { must(t, v.Rename(v.Dir, "a", v.Dir, "c", 0)) }},
		{"rename over a file", func() { must(t, v.Rename(v.Dir, "c", v.Dir, "b", 0)) }},
		{"link", func() { must(t, v.Link(file("b"), v.Dir, "a")) }},
		{"write to another name", func() { write(t, v, "a", "1234567", 0) }},
		{"exchange", func() {
			write(t, v, "c", "123", 0)
			must(t, v.Rename(v.Dir, "c", v.Dir, "b", fs.RenameExchange))
		}},
		{"unlink", func() { must(t, v.Unlink(v.Dir, "b")) }},
		{"unlink of one of two names", func() { must(t, v.Unlink(v.Dir, "c")) }},
		{"create again", func() { write(t, v, "b", "", 0) }},
		{"mkdir", func() { must(t, v.Unlink(v.Dir, "a")); must(t, v.Mkdir(v.Dir, "a", 0o755)) }},
	}
	for _, step := range steps {
		list(t, v, ".")
		step.do()
		runtime.GC()
		runtime.GC()
		for _, name := range []string{"a", "b", "c"} {
			var want syscall.Stat_t
			werr := syscall.Lstat(filepath.Join(dir, name), &want)
			a, _, err := v.Stat(v.Dir, name, false)
			if werr != nil || err != nil {
				if errors.Is(werr, os.ErrNotExist) != (err == linux.ENOENT) {
					t.Errorf("%s, %s: %v, on the host %v", step.name, name, err, werr)
				}
				continue
			}
			if a.Size != want.Size || uint32(a.Mode) != want.Mode || uint64(a.Links) != want.Nlink || a.Inode != want.Ino {
				t.Errorf("%s, %s: %d bytes, mode %o, %d links, inode %d; on the host %d, %o, %d, %d", step.name, name,
					a.Size, a.Mode, a.Links, a.Inode, want.Size, want.Mode, want.Nlink, want.Ino)
			}
		}
	}
}

// Stat needs as many messages as Lookup and Attr, also if nothing is cached and permissions are checked at each directory.
func TestStatRounds(t *testing.T) {
	dir := folder(t)
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "sub/file"), nil, 0o644))
	s := export(t, dir, ninep.Config{Cache: ninep.None}, server.Config{})
	v := view(s)
	v.Who.UID = 7777
	rounds := func(f func()) uint64 {
		before := s.Rounds()
		f()
		return s.Rounds() - before
	}
	look := func() {
		p, err := v.Lookup(v.Dir, "sub/file", true)
		must(t, err)
		p.Node.Attr()
	}
	look()
	want := rounds(look)
	if n := rounds(func() { stat(t, v, "sub/file") }); n > want {
		t.Errorf("%d rounds for Stat, %d for Lookup and Attr", n, want)
	}
}

// A file that is open has newer attributes than the listing, also if a process of the host has renamed it.
func TestGlanceRenamed(t *testing.T) {
	dir := folder(t)
	must(t, os.WriteFile(filepath.Join(dir, "old"), []byte("12345"), 0o644))
	s := export(t, dir, ninep.Config{Valid: time.Hour}, server.Config{})
	v := view(s)
	f, err := v.Open(v.Dir, "old", fs.ReadWrite, 0)
	must(t, err)
	defer f.Close()
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	must(t, os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "sub/new")))
	list(t, v, "sub")
	if size, _ := stat(t, v, "sub/new"); size != 5 {
		t.Errorf("%d bytes", size)
	}
	_, err = f.WriteAt([]byte("1234567"), 0)
	must(t, err)
	if size, _ := stat(t, v, "sub/new"); size != 7 {
		t.Errorf("after a write: %d bytes", size)
	}
}

// Stat crosses mounts on files.
func TestGlanceMount(t *testing.T) {
	dir := folder(t)
	must(t, os.WriteFile(filepath.Join(dir, "covered"), []byte("12345"), 0o644))
	v := view(export(t, dir, ninep.Config{Valid: time.Hour}, server.Config{}))
	list(t, v, ".")
	memory := memfs.New(memfs.Config{})
	write(t, view(memory), "cover", "1", 0)
	cover, err := memory.Root().Lookup("cover")
	must(t, err)
	to, err := v.Lookup(v.Dir, "covered", false)
	must(t, err)
	must(t, v.Tree.MountFile(memory, cover, to, false))
	if size, _ := stat(t, v, "covered"); size != 1 {
		t.Errorf("%d bytes, want those of the mounted file", size)
	}
	c, _ := v.Tree.Copy()
	if a, _, err := fs.NewView(c).Stat(c.Root(), "covered", true); err != nil || a.Size != 1 {
		t.Errorf("in a copy of the tree: %d bytes, %v", a.Size, err)
	}
}
