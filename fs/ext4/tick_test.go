package ext4_test

import (
	"bytes"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
	"loam/fs/memfs"
)

// clock is a clock that stands still until a test moves it.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

const tick = 4 * time.Millisecond

// synced is a file of two blocks on a new file system, with everything committed. The clock stands still.
type synced struct {
	t     *testing.T
	d     *memory.Device
	s     *ext4.FileSystem
	v     *fs.View
	f     *fs.File
	clock clock
}

const syncedSize = 8192

func newSynced(t *testing.T, d *memory.Device) *synced {
	f := &synced{t: t, d: d}
	f.clock.at = time.Unix(1_800_000_000, 7_123_456)
	f.s = mount(t, f.d, ext4.Config{Interval: time.Hour, Now: f.clock.now})
	f.v = newView(f.s)
	f.f = f.open("/file", 0)
	f.write(f.f, 0, 'a', syncedSize)
	must(t, f.s.Sync())
	return f
}

func (f *synced) open(name string, flags fs.Flags) *fs.File {
	file, err := f.v.Open(f.v.Root, name, fs.ReadWrite|fs.Create|flags, 0o644)
	must(f.t, err)
	f.t.Cleanup(func() { file.Close() })
	return file
}

func (f *synced) write(file *fs.File, at int64, text byte, n int) {
	f.t.Helper()
	if got, err := file.WriteAt(bytes.Repeat([]byte{text}, n), at); got != n || err != nil {
		f.t.Fatalf("%d bytes, %v", got, err)
	}
}

// overwrite overwrites the first block.
func (f *synced) overwrite(text byte) { f.write(f.f, 0, text, 4096) }

func (f *synced) change(c fs.Change) {
	f.t.Helper()
	must(f.t, f.v.Change(f.f.Place(), c))
}

// syncing counts what a call does to the device. A commit of the journal flushes it twice.
func (f *synced) syncing(sync func() error) (flushes, bytes uint64) {
	f.t.Helper()
	before := f.d.Stats()
	must(f.t, sync())
	after := f.d.Stats()
	return after.Done[block.Flush] - before.Done[block.Flush], after.WriteBytes - before.WriteBytes
}

// isDurable fails the test unless a crash keeps the first block.
func (f *synced) isDurable(name string, text byte) {
	f.t.Helper()
	after := crashed(f.t, f.d)
	got := content(f.t, newView(after), name)
	if want := bytes.Repeat([]byte{text}, 4096); len(got) < len(want) || !bytes.Equal(got[:4096], want) {
		f.t.Errorf("%s was synced, and is not there", name)
	}
	must(f.t, after.Close())
}

// An fsync commits a transaction only if the inode of the file has changed since the last commit, and an fdatasync only if
// more than its attributes has changed. Each of them makes the content durable: it writes the content and flushes the device.
func TestSyncCommits(t *testing.T) {
	empty := loadImage(t, makeImage(t, "64M"))
	file, data := (*fs.File).Sync, (*fs.File).SyncData
	for _, test := range []struct {
		name    string
		change  func(*synced)
		sync    func(*fs.File) error
		commits bool
	}{
		{"fsync, overwrite in the same tick", func(f *synced) { f.overwrite('b') }, file, false},
		{"fdatasync, overwrite in the same tick", func(f *synced) { f.overwrite('b') }, data, false},
		{"fsync, overwrite later", func(f *synced) { f.clock.at = f.clock.at.Add(tick); f.overwrite('b') }, file, true},
		{"fdatasync, overwrite later", func(f *synced) { f.clock.at = f.clock.at.Add(tick); f.overwrite('b') }, data, false},
		{"fsync, the times changed before", func(f *synced) {
			f.clock.at = f.clock.at.Add(tick)
			f.overwrite('x')
			must(f.t, f.f.SyncData())
			f.overwrite('b')
		}, file, true},
		{"fsync, another file changed", func(f *synced) {
			must(f.t, f.v.Mkdir(f.v.Root, "/other", 0o755))
			f.overwrite('b')
		}, file, false},
		{"fsync, an operation failed before a sync", func(f *synced) {
			err := f.v.SetXattr(f.f.Place(), "user.large", make([]byte, 8192), 0)
			if err != linux.ENOSPC {
				f.t.Fatal(err)
			}
			must(f.t, f.s.Sync())
			must(f.t, f.v.Mkdir(f.v.Root, "/other", 0o755))
			f.overwrite('b')
		}, file, false},
		{"fdatasync, a longer file", func(f *synced) { f.overwrite('b'); f.write(f.f, syncedSize, 'b', 1) }, data, true},
		{"fdatasync, a longer file in the same block", func(f *synced) {
			f.change(fs.Change{Fields: fs.SetSize, Size: 5000})
			must(f.t, f.f.Sync())
			f.overwrite('b')
			f.write(f.f, 5000, 'b', 1)
		}, data, true},
		{"fdatasync, a shorter file", func(f *synced) {
			f.overwrite('b')
			f.change(fs.Change{Fields: fs.SetSize, Size: 5000})
		}, data, true},
		{"fdatasync, a write to a hole", func(f *synced) {
			must(f.t, f.f.Handle().(fs.Allocator).Allocate(fs.PunchHole|fs.KeepSize, 0, 4096))
			must(f.t, f.f.Sync())
			f.overwrite('b')
		}, data, true},
		{"fdatasync, a write to preallocated blocks", func(f *synced) {
			must(f.t, f.f.Handle().(fs.Allocator).Allocate(fs.ZeroRange|fs.KeepSize, 0, 4096))
			must(f.t, f.f.Sync())
			f.overwrite('b')
		}, data, true},
		{"fdatasync, utimensat", func(f *synced) {
			f.change(fs.Change{Fields: fs.SetModify, Modify: 1})
			f.overwrite('b')
		}, data, false},
		{"fsync, utimensat", func(f *synced) {
			f.overwrite('b')
			f.change(fs.Change{Fields: fs.SetModify, Modify: 1})
		}, file, true},
		{"fdatasync, chmod", func(f *synced) {
			f.change(fs.Change{Fields: fs.SetMode, Mode: 0o600})
			f.overwrite('b')
		}, data, false},
		{"fsync, rename in the same tick", func(f *synced) {
			must(f.t, f.v.Rename(f.v.Root, "/file", f.v.Root, "/new", 0))
			must(f.t, f.v.Rename(f.v.Root, "/new", f.v.Root, "/file", 0))
			f.overwrite('b')
		}, file, true},
		{"fsync, a direct write in the same tick", func(f *synced) { f.write(f.open("/file", fs.Direct), 0, 'b', 4096) }, file, false},
		{"fdatasync, a direct write later", func(f *synced) {
			f.clock.at = f.clock.at.Add(tick)
			f.write(f.open("/file", fs.Direct), 0, 'b', 4096)
		}, data, false},
		{"fsync, a direct write later", func(f *synced) {
			f.clock.at = f.clock.at.Add(tick)
			f.write(f.open("/file", fs.Direct), 0, 'b', 4096)
		}, file, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newSynced(t, empty.Snapshot())
			test.change(f)
			flushes, written := f.syncing(func() error { return test.sync(f.f) })
			switch {
			case flushes == 0:
				t.Error("the device was not flushed")
			case !test.commits && (flushes != 1 || written > 4096):
				t.Errorf("%d flushes, and %d bytes were written", flushes, written)
			case test.commits && flushes < 2:
				t.Errorf("no transaction was committed: %d flushes, %d bytes", flushes, written)
			}
			f.isDurable("/file", 'b')
			must(t, f.s.Close())
			check(t, f.d)
		})
	}
}

// A write with O_DSYNC is durable without the times, and a write with O_SYNC with them.
func TestSynchronousWritesCommit(t *testing.T) {
	for flag, commits := range map[fs.Flags]bool{linux.O_DSYNC: false, linux.O_SYNC: true} {
		f := newSynced(t, loadImage(t, makeImage(t, "64M")))
		file := f.open("/file", flag)
		f.clock.at = f.clock.at.Add(tick)
		flushes, written := f.syncing(func() error { f.write(file, 0, 'b', 4096); return nil })
		if flushes == 0 || (written > 4096) != commits {
			t.Errorf("flag %#x: %d flushes, %d bytes", flag, flushes, written)
		}
		f.isDurable("/file", 'b')
		must(t, f.s.Close())
	}
}

// Times that the file system sets are rounded down to a tick, or to a second if inodes have no room for more. Times that
// utimensat(2) sets are kept, unless they are the present time.
func TestTick(t *testing.T) {
	for args, want := range map[string]fs.Time{"256": 1_800_000_000_004_000_000, "128": 1_800_000_000_000_000_000} {
		f := newSynced(t, loadImage(t, makeImage(t, "64M", "-I", args)))
		if a := f.f.Attr(); a.Modify != want || a.Status != want || a.Access != want {
			t.Errorf("inodes of %s bytes: times %d, %d, %d instead of %d", args, a.Modify, a.Status, a.Access, want)
		}
		f.overwrite('b')
		if flushes, written := f.syncing(f.f.Sync); flushes != 1 || written != 4096 {
			t.Errorf("inodes of %s bytes: %d flushes, %d bytes", args, flushes, written)
		}
		f.change(fs.Change{Fields: fs.SetModify | fs.SetAccess, Modify: 1_700_000_000_123_456_789, Access: 5, Now: fs.SetAccess})
		if a := f.f.Attr(); args == "256" && a.Modify != 1_700_000_000_123_456_789 || a.Access != want || a.Status != want {
			t.Errorf("inodes of %s bytes: times %d, %d, %d after utimensat", args, a.Modify, a.Access, a.Status)
		}
		f.overwrite('c')
		if a := f.f.Attr(); a.Modify != want {
			t.Errorf("inodes of %s bytes: modified at %d after a write", args, a.Modify)
		}
		must(t, f.s.Close())
	}
}

// All file systems have times of the same granularity: a file in memory is not newer than one on a disk that is written later.
func TestTickOfAllFileSystems(t *testing.T) {
	f := newSynced(t, loadImage(t, makeImage(t, "64M")))
	v := newView(memfs.New(memfs.Config{Now: f.clock.now}))
	earlier, err := v.Open(v.Root, "/earlier", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	f.clock.at = f.clock.at.Add(time.Microsecond)
	later := f.open("/later", 0)
	if a, b := earlier.Attr().Modify, later.Attr().Modify; a > b {
		t.Errorf("the file in memory is %d ns newer", a-b)
	}
	must(t, earlier.Close())
	must(t, f.s.Close())
}
