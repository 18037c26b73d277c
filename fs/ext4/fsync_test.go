package ext4_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/block/fault"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
)

// An fsync of one file writes that file, and leaves overwritten blocks of another file unwritten. A
// crash then leaves the first file intact. A later fsync of the other file writes its blocks, even
// though their transaction is already committed.
func TestFsyncOfOneFile(t *testing.T) {
	d := loadImage(t, makeImage(t, "64M"))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	v := newView(s)
	const size = 4 << 20
	old, changed := bytes.Repeat([]byte("old."), size/4), bytes.Repeat([]byte("new."), size/4)
	open := func(name string) *fs.File {
		f, err := v.Open(v.Root, name, fs.ReadWrite|fs.Create, 0o644)
		must(t, err)
		return f
	}
	write := func(f *fs.File, p []byte) {
		t.Helper()
		n, err := f.WriteAt(p, 0)
		if n != len(p) {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	large, small := open("/large"), open("/small")
	write(large, old)
	must(t, s.Sync())
	write(large, changed)
	write(small, []byte("small"))
	before := d.Stats().WriteBytes
	must(t, small.Sync())
	if n := d.Stats().WriteBytes - before; n > size/4 {
		t.Errorf("fsync of 5 bytes wrote %d bytes", n)
	}
	after := crashed(t, d)
	if got := content(t, newView(after), "/small"); string(got) != "small" {
		t.Errorf("small has %q", got)
	}
	must(t, after.Close())
	must(t, large.Sync())
	after = crashed(t, d)
	if got := content(t, newView(after), "/large"); !bytes.Equal(got, changed) {
		t.Error("large was synced, and is not there")
	}
	must(t, after.Close())
	for i := range 3 { // the same writes, each followed by a change of metadata
		write(large, old)
		must(t, v.Mkdir(v.Root, fmt.Sprint("/dir", i), 0o755))
		must(t, small.Sync())
		must(t, large.Sync())
		after = crashed(t, d)
		if got := content(t, newView(after), "/large"); !bytes.Equal(got, old) {
			t.Errorf("round %d: large was synced, and is not there", i)
		}
		must(t, after.Close())
		old, changed = changed, old
	}
	must(t, large.Close())
	must(t, small.Close())
	must(t, s.Close())
	check(t, d)
}

// crashed opens a copy of the file system as it is on the device now, as after a crash.
func crashed(t *testing.T, d *memory.Device) *ext4.FileSystem {
	t.Helper()
	return mount(t, d.Snapshot(), ext4.Config{Interval: time.Hour})
}

// A write to a file that was opened with O_SYNC or O_DSYNC is durable when it returns.
func TestSynchronousWrites(t *testing.T) {
	for _, flag := range []fs.Flags{linux.O_SYNC, linux.O_DSYNC} {
		d := loadImage(t, makeImage(t, "64M"))
		s := mount(t, d, ext4.Config{Interval: time.Hour})
		v := newView(s)
		f, err := v.Open(v.Dir, "file", fs.WriteOnly|fs.Create|flag, 0o644)
		must(t, err)
		for i := range 3 {
			_, err := f.Write([]byte("text."))
			must(t, err)
			after := crashed(t, d)
			if got := content(t, newView(after), "/file"); len(got) != 5*(i+1) {
				t.Errorf("%d bytes after write %d", len(got), i)
			}
			must(t, after.Close())
		}
		must(t, f.Close())
		must(t, s.Close())
	}
}

// Requests that need not wait for one another are in flight together. On a device that takes a millisecond for each request,
// fsync takes a few milliseconds, however many blocks it writes. A commit waits for four requests: blocks of the file and of
// the journal together, a flush, the commit block, and a flush.
func TestSyncWaits(t *testing.T) {
	image := loadImage(t, makeImage(t, "64M"))
	synctest.Test(t, func(t *testing.T) {
		const delay, blocks = time.Millisecond, 1000
		d := fault.New(image.Snapshot(), fault.Config{Delay: delay})
		s := mount(t, d, ext4.Config{Interval: time.Hour})
		v := newView(s)
		f, err := v.Open(v.Root, "/file", fs.ReadWrite|fs.Create, 0o644)
		must(t, err)
		write := func(block int64) {
			_, err := f.WriteAt(bytes.Repeat([]byte{byte(block)}, 4096), block*4096)
			must(t, err)
		}
		syncing := func(sync func() error) (waits time.Duration) {
			start := time.Now()
			must(t, sync())
			return time.Since(start) / delay
		}
		for i := range int64(2 * blocks) {
			write(i)
		}
		must(t, s.Sync())
		for i := range int64(blocks) {
			write(2*i + 1)
		}
		if n := syncing(f.SyncData); n > 50 {
			t.Errorf("fdatasync of %d blocks apart from one another waited %d times", blocks, n)
		}
		time.Sleep(tick)
		write(7)
		if n := syncing(f.SyncData); n != 2 {
			t.Errorf("fdatasync of a block waited %d times", n)
		}
		time.Sleep(tick)
		write(8)
		if n := syncing(f.Sync); n != 4 {
			t.Errorf("fsync with a commit waited %d times", n)
		}
		must(t, f.Close())
		must(t, s.Close())
		must(t, d.Close())
	})
}

// A commit that frees and allocates nothing does not write the superblock.
func TestSyncWritesNoSuperblock(t *testing.T) {
	f := newSynced(t, loadImage(t, makeImage(t, "64M")))
	f.clock.at = f.clock.at.Add(tick)
	f.overwrite('b')
	if _, written := f.syncing(f.f.Sync); written != 4096+3*1024 {
		t.Errorf("%d bytes were written instead of the content, a descriptor, a block of inodes and the commit block", written)
	}
	must(t, f.s.Close())
	check(t, f.d)
}
