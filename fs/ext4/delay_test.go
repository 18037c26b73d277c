package ext4_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
)

// extentsOf returns the number of extents that debugfs lists for a file.
func extentsOf(t *testing.T, d *memory.Device, name string) int {
	t.Helper()
	path := saveImage(t, d)
	out, err := tool(t, "debugfs", "-R", "dump_extents -l "+name, path)
	must(t, err)
	return strings.Count(out, "\n 0/") + strings.Count(out, "\n 1/") + strings.Count(out, "\n 2/")
}

// Files that grow at the same time get contiguous blocks: blocks are chosen at the commit, not at the write.
func TestDelayedAllocation(t *testing.T) {
	d := loadImage(t, makeImage(t, "64M", "-b", "4096"))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	v := newView(s)
	const files, pieces, piece = 4, 64, 4096
	var open [files]*fs.File
	for i := range open {
		f, err := v.Open(v.Dir, fmt.Sprint("f", i), fs.ReadWrite|fs.Create, 0o644)
		must(t, err)
		open[i] = f
	}
	free := s.Usage().BlocksFree
	for p := range pieces {
		for i, f := range open {
			_, err := f.WriteAt(bytes.Repeat([]byte{byte('a' + i)}, piece), int64(p)*piece)
			must(t, err)
		}
	}
	if used := free - s.Usage().BlocksFree; used != files*pieces {
		t.Errorf("%d blocks are used before the commit, want %d", used, files*pieces)
	}
	if n := open[0].Place().Node.Attr().Blocks; n != pieces*piece/512 {
		t.Errorf("a file has %d sectors before the commit, want %d", n, pieces*piece/512)
	}
	must(t, s.Sync())
	for i, f := range open {
		if got := content(t, v, fmt.Sprint("f", i)); !bytes.Equal(got, bytes.Repeat([]byte{byte('a' + i)}, pieces*piece)) {
			t.Errorf("f%d has other content after the commit", i)
		}
		must(t, f.Close())
	}
	must(t, s.Close())
	for i := range open {
		if n := extentsOf(t, d, fmt.Sprint("/f", i)); n != 1 {
			t.Errorf("f%d has %d extents, want 1", i, n)
		}
	}
	check(t, d)
}

// A file that is removed before the commit is not written to the device.
func TestDelayedAndRemoved(t *testing.T) {
	d := loadImage(t, makeImage(t, "64M", "-b", "4096"))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	v := newView(s)
	before, free := d.Stats().WriteBytes, s.Usage().BlocksFree
	for range 10 {
		f, err := v.Open(v.Dir, "temporary", fs.ReadWrite|fs.Create, 0o644)
		must(t, err)
		_, err = f.Write(make([]byte, 1<<20))
		must(t, err)
		must(t, f.Truncate(100_000))
		must(t, v.Unlink(v.Dir, "temporary"))
		must(t, f.Close())
	}
	if n := s.Usage().BlocksFree; n != free {
		t.Errorf("%d blocks are free after the removal, and %d before", n, free)
	}
	must(t, s.Sync())
	if n := d.Stats().WriteBytes - before; n > 200_000 {
		t.Errorf("%d bytes were written for files that are gone", n)
	}
	must(t, s.Close())
	check(t, d)
}

// On a full device write(2) fails, and a later fsync does not: a write whose allocation is delayed reserves its
// blocks. The files are fragmented, so that their extent trees need many nodes.
func TestDelayedOnFullDevice(t *testing.T) {
	for _, args := range [][]string{{"-b", "4096"}, {"-b", "1024"}} {
		d := loadImage(t, makeImage(t, "16M", append(args, "-N", "256", "-J", "size=4")...))
		s := mount(t, d, ext4.Config{Interval: time.Hour})
		v := newView(s)
		full := 0
		for i := 0; full < 3; i++ {
			f, err := v.Open(v.Dir, fmt.Sprint("f", i%7), fs.ReadWrite|fs.Create, 0o644)
			must(t, err)
			n, err := f.WriteAt(bytes.Repeat([]byte{byte(i)}, 9000), int64(i)*20_000)
			switch {
			case errors.Is(err, linux.ENOSPC):
				full++
				if i%7 == 3 { // removes every seventh file, so that the free space is in pieces
					must(t, f.Truncate(int64(i)*10_000))
				}
			case err != nil || n == 0:
				t.Fatalf("write %d: %d, %v", i, n, err)
			}
			if i%50 == 0 {
				must(t, f.Sync())
			}
			must(t, f.Close())
		}
		if free := s.Usage().BlocksFree; full == 3 && free > 200 {
			t.Errorf("%v: the device is full with %d free blocks", args, free)
		}
		must(t, s.Sync())
		if why := s.ReadOnly(); why != "" {
			t.Errorf("%v: read-only: %s", args, why)
		}
		must(t, s.Close())
		check(t, d)
	}
}
