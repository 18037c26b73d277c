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
