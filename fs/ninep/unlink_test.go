package ninep_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
)

// Removing a listed file needs one round trip, and no Lookup of its name.
func TestUnlinkListed(t *testing.T) {
	dir := folder(t)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	s := export(t, dir, ninep.Config{Valid: time.Hour}, server.Config{})
	v := view(s)
	list(t, v, ".")
	for _, name := range []string{"file", "link"} {
		before := s.Rounds()
		must(t, v.Unlink(v.Dir, name))
		if n := s.Rounds() - before; n != 1 {
			t.Errorf("%s: %d rounds", name, n)
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s on the host: %v", name, err)
		}
		if err := v.Unlink(v.Dir, name); err != linux.ENOENT {
			t.Errorf("%s again: %v", name, err)
		}
	}
	if err := v.Unlink(v.Dir, "sub"); err != linux.EISDIR {
		t.Errorf("a directory: %v", err)
	}
}

// The checks of a removal do not depend on whether the file was listed or looked up.
func TestUnlinkChecks(t *testing.T) {
	dir := folder(t)
	for name, mode := range map[string]os.FileMode{"closed": 0o755, "sticky": 0o777 | os.ModeSticky, "open": 0o777} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		must(t, os.Chmod(filepath.Join(dir, name), mode))
		must(t, os.WriteFile(filepath.Join(dir, name, "file"), nil, 0o644))
	}
	must(t, os.WriteFile(filepath.Join(dir, "covered"), nil, 0o644))
	v := view(export(t, dir, ninep.Config{Valid: time.Hour}, server.Config{}))
	stranger := *v
	stranger.Who = fs.Credentials{UID: 7777, GID: 7777}
	for name, want := range map[string]error{"closed": linux.EACCES, "sticky": linux.EPERM, "open": nil} {
		list(t, v, name)
		if err := stranger.Unlink(v.Dir, name+"/file"); err != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}

	list(t, v, ".")
	memory := memfs.New(memfs.Config{})
	write(t, view(memory), "cover", "1", 0)
	cover, err := memory.Root().Lookup("cover")
	must(t, err)
	to, err := v.Lookup(v.Dir, "covered", false)
	must(t, err)
	must(t, v.Tree.MountFile(memory, cover, to, false))
	if err := v.Unlink(v.Dir, "covered"); err != linux.EBUSY {
		t.Errorf("a mount point: %v", err)
	}
}

// If one of two names is removed, the other has one link, as on the host.
func TestUnlinkOneOfTwo(t *testing.T) {
	dir := folder(t)
	must(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o644))
	must(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	v := view(export(t, dir, ninep.Config{Valid: time.Hour}, server.Config{}))
	list(t, v, ".")
	must(t, v.Unlink(v.Dir, "a"))
	a, _, err := v.Stat(v.Dir, "b", false)
	must(t, err)
	var host syscall.Stat_t
	must(t, syscall.Stat(filepath.Join(dir, "b"), &host))
	if uint64(a.Links) != host.Nlink {
		t.Errorf("%d links, on the host %d", a.Links, host.Nlink)
	}
}

// removals is an fs.Watcher that records the names of removed files.
type removals []string

func (r *removals) Happened(n fs.Notice) {
	if n.Event == fs.Removed {
		*r = append(*r, n.Name)
	}
}

func (r *removals) Watches(fs.Node) bool { return true }

// A watcher learns of the removal of a listed file.
func TestUnlinkWatched(t *testing.T) {
	dir := folder(t)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	v := view(export(t, dir, ninep.Config{Valid: time.Hour}, server.Config{}))
	list(t, v, ".")
	var seen removals
	v.Tree.Watch(&seen)
	must(t, v.Unlink(v.Dir, "file"))
	if len(seen) != 1 || seen[0] != "file" {
		t.Errorf("%q", seen)
	}
}

// hooked is a connection that calls hook before a write.
type hooked struct {
	io.ReadWriteCloser
	hook func()
}

func (h *hooked) Write(p []byte) (int, error) {
	if f := h.hook; f != nil {
		h.hook = nil
		f()
	}
	return h.ReadWriteCloser.Write(p)
}

// A watcher that is added while the server removes the file learns of the removal.
func TestUnlinkWatchedMeanwhile(t *testing.T) {
	dir := folder(t)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	h := &hooked{}
	s := exportTo(t, dir, ninep.Config{Valid: time.Hour}, server.Config{}, func(c net.Conn) io.ReadWriteCloser {
		h.ReadWriteCloser = c
		return h
	})
	v := view(s)
	list(t, v, ".")
	var seen removals
	h.hook = func() { v.Tree.Watch(&seen) }
	must(t, v.Unlink(v.Dir, "file"))
	if len(seen) != 1 || seen[0] != "file" {
		t.Errorf("%q", seen)
	}
}

// Without a cache, a removal needs no more round trips than one with a Lookup, the attributes that the checks need, and the removal.
func TestUnlinkRounds(t *testing.T) {
	dir := folder(t)
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o777))
	must(t, os.Chmod(filepath.Join(dir, "sub"), 0o777))
	s := export(t, dir, ninep.Config{Cache: ninep.None}, server.Config{})
	v := view(s)
	remove := func() uint64 {
		must(t, os.WriteFile(filepath.Join(dir, "sub/file"), nil, 0o644))
		before := s.Rounds()
		must(t, v.Unlink(v.Dir, "sub/file"))
		return s.Rounds() - before
	}
	remove() // also gets a FID for the directory
	for uid, most := range map[uint32]uint64{0: 6, 7777: 8} {
		v.Who.UID = uid
		if n := remove(); n > most {
			t.Errorf("user %d: %d rounds, more than %d", uid, n, most)
		}
	}
}
