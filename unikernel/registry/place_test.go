package registry

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// Only a folder of the user without access for others becomes a registry: another user may have made a folder or a symbolic
// link at a path in /tmp.
func TestUnsafePlaces(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	uid := os.Geteuid()
	if err := os.Mkdir(at("own"), 0o700); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(at("open"), 0o700)
	os.Chmod(at("open"), 0o750)
	os.Symlink(at("own"), at("link"))
	os.Symlink(at("none"), at("dangling"))
	os.WriteFile(at("file"), nil, 0o600)
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, why := range map[string]string{
		"open": "other users have access to it (mode 0750)", "link": "it is a symbolic link", "dangling": "it is a symbolic link",
		"file": "it is no folder", "fifo": "it is no folder", "none/below": "no such file or directory",
	} {
		_, err := openAt(at(name), uid)
		wants(t, err, "the folder of running guests, "+at(name)+", cannot be used ("+why+")")
	}
	_, err := openAt(at("own"), uid+1)
	wants(t, err, "the folder of running guests, "+at("own")+", cannot be used (it belongs to another user)")
	for _, name := range []string{"own", "fresh", "fresh"} {
		r, err := openAt(at(name), uid)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := r.root.Stat("."); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
		r.Close()
	}
}

// XDG_RUNTIME_DIR is ignored if it is not a folder of the user that only the user can write.
func TestPlaces(t *testing.T) {
	uid := os.Geteuid()
	own, open := t.TempDir(), t.TempDir()
	os.Chmod(own, 0o700)
	os.Chmod(open, 0o1777)
	last := "/tmp/loam-" + strconv.Itoa(uid)
	without := places(uid, "")
	if without[len(without)-1] != last {
		t.Errorf("%q", without)
	}
	for _, variable := range []string{open, filepath.Join(own, "none"), "relative", "/run/user/0"} {
		if got := places(uid, variable); uid == 0 && !slices.Equal(got, without) {
			t.Errorf("%s: %q, want %q", variable, got, without)
		}
	}
	if got := places(uid, own); got[0] != filepath.Join(own, "loam") || !slices.Equal(got[1:], without) {
		t.Errorf("%q", got)
	}
	if got := places(uid+1, own); slices.Contains(got, filepath.Join(own, "loam")) {
		t.Errorf("of another user: %q", got)
	}
}

// Open uses the folder in XDG_RUNTIME_DIR.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := os.Stat(filepath.Join(dir, "loam")); err != nil || r.places[0] != filepath.Join(dir, "loam") {
		t.Errorf("%q, %v", r.places, err)
	}
}
