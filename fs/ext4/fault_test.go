package ext4_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block"
	"loam/block/fault"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
)

// Behavior on a failing device. The calls that need the device return EIO. The file system becomes read-only and
// reports the reason. No call hangs. Data that was fsynced before remains readable.

func TestDeviceFails(t *testing.T) {
	for name, c := range map[string]fault.Config{
		"writes fail":  {Rules: []fault.Rule{{Ops: []block.Op{block.Write}, Skip: 30}}},
		"flushes fail": {Rules: []fault.Rule{{Ops: []block.Op{block.Flush}, Skip: 6}}},
		"it vanishes":  {VanishAfter: 120},
		"once":         {Rules: []fault.Rule{{Ops: []block.Op{block.Write}, Skip: 40, Times: 1}}},
	} {
		t.Run(name, func(t *testing.T) { deviceFails(t, c) })
	}
}

func deviceFails(t *testing.T, c fault.Config) {
	d := loadImage(t, makeImage(t, "16M", "-J", "size=4"))
	bad := fault.New(d, c)
	said := ""
	s, err := ext4.Open(bad, ext4.Config{Interval: time.Hour, Report: func(text string) { said += text }})
	must(t, err)
	v := newView(s)
	synced := map[string]bool{}
	failed := false
	for i := 0; i < 100 && !failed; i++ {
		name := fmt.Sprint("f", i)
		f, err := v.Open(v.Dir, name, fs.ReadWrite|fs.Create, 0o644)
		if err != nil {
			t.Fatalf("create before any fsync failed: %v", err)
		}
		f.Write([]byte(strings.Repeat(name, 500)))
		switch err := f.Sync(); {
		case err == nil:
			synced[name] = true
		case errors.Is(err, linux.EIO):
			failed = true
		default:
			t.Fatalf("fsync: %v", err)
		}
		f.Close()
	}
	if !failed || s.ReadOnly() == "" || !strings.Contains(said, "read-only") {
		t.Fatalf("failed %v, read-only %q, it said %q", failed, s.ReadOnly(), said)
	}
	if _, err := v.Open(v.Dir, "new", fs.ReadWrite|fs.Create, 0o644); !errors.Is(err, linux.EROFS) {
		t.Errorf("a new file afterwards: %v", err)
	}
	if err := s.Sync(); !errors.Is(err, linux.EIO) {
		t.Errorf("syncfs afterwards: %v", err)
	}
	s.Close()
	after := d.Snapshot()
	bad.Close()
	again := mount(t, after, ext4.Config{})
	w := newView(again)
	for name := range synced {
		if got := content(t, w, name); string(got) != strings.Repeat(name, 500) {
			t.Errorf("%s was synced, and is lost", name)
		}
	}
	must(t, again.Close())
	check(t, after)
}

// An fsync succeeds if its transaction is in the journal, even if the following checkpoint fails. The next one fails.
func TestCheckpointFails(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M", "-b", "4096", "-J", "size=4"))
	superblock := fault.Rule{Ops: []block.Op{block.Write}, To: 4096, Skip: 1} // after Open, only a checkpoint writes it
	bad := fault.New(d, fault.Config{Rules: []fault.Rule{superblock}})
	s, err := ext4.Open(bad, ext4.Config{Interval: time.Hour})
	must(t, err)
	v := newView(s)
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	n := 0
	for ; s.ReadOnly() == ""; n++ {
		if _, err := f.WriteAt([]byte("text"), int64(4*n)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatalf("fsync %d: %v", n, err)
		}
	}
	if err := f.Sync(); !errors.Is(err, linux.EIO) {
		t.Errorf("fsync afterwards: %v", err)
	}
	f.Close()
	s.Close()
	after := d.Snapshot()
	bad.Close()
	again := mount(t, after, ext4.Config{})
	if got := content(t, newView(again), "f"); string(got) != strings.Repeat("text", n) {
		t.Errorf("%d bytes after %d writes", len(got), n)
	}
	must(t, again.Close())
	check(t, after)
}

// If a write of Close fails, its transaction is not written to the blocks of the file system, unless the transaction's commit
// block is on the device. Otherwise files would have blocks without their content. The test repeats Close, and each time
// another write fails.
func TestCloseFails(t *testing.T) {
	base := loadImage(t, makeImage(t, "16M", "-b", "4096", "-J", "size=4"))
	leaveStale(t, base, "stale")
	for _, c := range []struct {
		name  string
		times int
	}{{"once", 1}, {"from then on", 0}} {
		t.Run(c.name, func(t *testing.T) {
			opened, last := closeFails(t, base, fault.Rule{Skip: 1 << 30})
			for n := opened; n < last; n++ {
				closeFails(t, base, fault.Rule{Ops: []block.Op{block.Write}, Skip: n, Times: c.times})
			}
			if last-opened < 6 {
				t.Errorf("Close wrote %d times: fewer than the content, the log, the commit block and their places take", last-opened)
			}
		})
	}
}

// leaveStale writes a text to the free blocks of a file system, which stay free.
func leaveStale(t *testing.T, d block.Device, text string) {
	t.Helper()
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	v := newView(s)
	f, err := v.Open(v.Dir, "filler", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	b := []byte(strings.Repeat(text+"\n", 1<<16))
	for {
		if _, err := f.Write(b); err != nil {
			break // the device is full
		}
	}
	must(t, f.Sync())
	must(t, f.Close())
	must(t, v.Unlink(v.Dir, "filler"))
	must(t, s.Close())
}

// closeFails makes a durable file and two others, and closes the file system on a device with a rule. It returns the numbers
// of writes before and after Close.
func closeFails(t *testing.T, base *memory.Device, rule fault.Rule) (opened, closed int) {
	t.Helper()
	d := base.Snapshot()
	bad := fault.New(d, fault.Config{Rules: []fault.Rule{rule}})
	s := mount(t, bad, ext4.Config{Interval: time.Hour, Now: func() time.Time { return time.UnixMilli(1e12) }})
	v := newView(s)
	write := func(name string) {
		f, err := v.Open(v.Dir, name, fs.ReadWrite|fs.Create, 0o644)
		must(t, err)
		_, err = f.Write([]byte(strings.Repeat(name, 5000)))
		must(t, errors.Join(err, f.Close()))
	}
	write("durable")
	must(t, s.Sync())
	write("a")
	write("b")
	opened = int(bad.Stats().Done[block.Write])
	err := s.Close()
	closed = int(bad.Stats().Done[block.Write])
	if failed := bad.Counts().Failed > 0; failed != (err != nil) {
		t.Errorf("write %d of Close: a write failed: %v; Close returned %v", rule.Skip-opened, failed, err)
	}
	after := d.Snapshot()
	bad.Close()
	again := mount(t, after, ext4.Config{})
	w := newView(again)
	for _, name := range []string{"durable", "a", "b"} {
		_, err := w.Lookup(w.Dir, name, true)
		if errors.Is(err, linux.ENOENT) && name != "durable" {
			continue
		}
		if got := content(t, w, name); string(got) != strings.Repeat(name, 5000) {
			t.Errorf("write %d of Close failed: %q has %d bytes that begin with %.20q", rule.Skip-opened, name, len(got), got)
		}
	}
	must(t, again.Close())
	check(t, after)
	return opened, closed
}
