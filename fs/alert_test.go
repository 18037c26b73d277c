package fs_test

import (
	"runtime"
	"testing"

	"loam/fs"
	"loam/fs/memfs"
)

// An alert reports each change of the mounts of its tree once, until it is closed, and no change of a copy.
func TestMountAlert(t *testing.T) {
	tree := fs.NewTree(memfs.New(memfs.Config{}))
	calls := 0
	a := tree.NewMountAlert()
	a.OnAlert(func() { calls++ })
	changed := func(when string, want bool) {
		t.Helper()
		if got := a.Alerted(); got != want {
			t.Errorf("%s: changed: %v, want %v", when, got, want)
		}
		if a.Alerted() {
			t.Errorf("%s: the change is reported twice", when)
		}
	}
	changed("at first", false)
	if err := tree.Mount(memfs.New(memfs.Config{}), tree.Root(), false); err != nil {
		t.Fatal(err)
	}
	changed("after Mount", true)
	if err := tree.Remount(tree.Root(), fs.ReadOnlyMount); err != nil {
		t.Fatal(err)
	}
	changed("after Remount", true)
	copied, _ := tree.Copy()
	if err := copied.Unmount(copied.Root()); err != nil {
		t.Fatal(err)
	}
	changed("after Unmount in a copy", false)
	if err := tree.Unmount(tree.Root()); err != nil {
		t.Fatal(err)
	}
	changed("after Unmount", true)
	a.Close()
	if err := tree.Mount(memfs.New(memfs.Config{}), tree.Root(), false); err != nil {
		t.Fatal(err)
	}
	if calls != 3 {
		t.Errorf("%d calls of the function, want 3", calls)
	}
}

// The work to add and to close an alert does not depend on how many others there are, and a closed alert stays without calls.
func TestManyMountAlerts(t *testing.T) {
	tree := fs.NewTree(memfs.New(memfs.Config{}))
	calls := 0
	add := func() *fs.MountAlert {
		a := tree.NewMountAlert()
		a.OnAlert(func() { calls++ })
		return a
	}
	const others, pairs, most = 5000, 100, 256 << 10
	for range others {
		add()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range pairs {
		add().Close()
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("%d alerts allocate %d bytes", pairs, n)
	}
	closed := tree.NewMountAlert()
	closed.Close()
	closed.OnAlert(func() { t.Error("a closed alert is called") })
	if err := tree.Mount(memfs.New(memfs.Config{}), tree.Root(), false); err != nil {
		t.Fatal(err)
	}
	if calls != others {
		t.Errorf("%d calls, want %d", calls, others)
	}
}
