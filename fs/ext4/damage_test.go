package ext4_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
)

// Damaged and malicious images. They have no checksums, so that every change passes the checksum
// tests and reaches the checks of structure.

// victims returns small images with files of all types, which the tests then damage.
func victims(t testing.TB) []*memory.Device {
	var all []*memory.Device
	for _, args := range []string{"-O ^metadata_csum -J size=1", "-O ^metadata_csum,^has_journal,^extent,^64bit", "-O ^metadata_csum,inline_data,^has_journal"} {
		d := loadImage(t, makeImage(t, "4M", append(strings.Fields(args), "-b", "1024", "-N", "256")...))
		s := mount(t, d, ext4.Config{})
		if s.ReadOnly() == "" {
			fill(t, s)
		}
		must(t, s.Close())
		all = append(all, d)
	}
	return all
}

func fill(t testing.TB, s *ext4.FileSystem) {
	v := newView(s)
	must(t, v.Mkdir(v.Dir, "d", 0o755))
	for i := range 120 {
		must(t, v.Symlink(strings.Repeat("t", 1+i), v.Dir, fmt.Sprintf("d/a rather long name %d", i)))
	}
	f, err := v.Open(v.Dir, "fragments", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	for i := range 300 {
		f.WriteAt([]byte("x"), int64(i)*3000)
	}
	must(t, v.SetXattr(f.Place(), "user.large", make([]byte, 500), 0))
	must(t, f.Close())
}

// visit mounts an image, walks a limited part of its tree, and creates, writes, renames and removes files.
func visit(d *memory.Device) {
	s, err := ext4.Open(d, ext4.Config{CacheBytes: 1 << 20, Interval: time.Hour})
	if err != nil {
		return
	}
	v := newView(s)
	budget := 300
	walk(v, "/", &budget)
	v.Mkdir(v.Dir, "/new", 0o755)
	for i := range 20 {
		name := fmt.Sprintf("/d/new%d", i)
		if f, err := v.Open(v.Dir, name, fs.ReadWrite|fs.Create, 0o644); err == nil {
			f.WriteAt(make([]byte, 3000), int64(i)*5000)
			f.Close()
		}
		v.Rename(v.Dir, name, v.Dir, "/new/x", 0)
	}
	v.Unlink(v.Dir, "/fragments")
	s.Close()
}

func walk(v *fs.View, dir string, budget *int) {
	f, err := v.Open(v.Dir, dir, fs.ReadOnly|fs.MustBeDir, 0)
	if err != nil {
		return
	}
	defer f.Close()
	var names []string
	f.ReadDir(func(e fs.Entry) bool {
		names = append(names, e.Name)
		return len(names) < 300
	})
	for _, name := range names {
		if *budget--; *budget < 0 || name == "." || name == ".." || len(dir) > 200 {
			continue
		}
		path := dir + "/" + name
		p, err := v.Lookup(v.Dir, path, false)
		if err != nil {
			continue
		}
		v.Xattrs(p)
		v.Readlink(v.Dir, path)
		if f, err := v.Open(v.Dir, path, fs.ReadWrite, 0); err == nil {
			b := make([]byte, 10_000)
			f.ReadAt(b, 0)
			f.Seek(0, fs.SeekHole)
			f.WriteAt([]byte("y"), 5000)
			f.Truncate(2000)
			f.Close()
		}
		walk(v, path, budget)
		v.Unlink(v.Dir, path)
	}
}

// FuzzImage changes bytes of an image. data is the index of an image in victims, then pairs of an offset (3 bytes)
// and a value (2 bytes).
func FuzzImage(f *testing.F) {
	all := victims(f)
	f.Add([]byte{0, 0, 4, 0, 1, 2})
	f.Add([]byte{1, 0, 8, 10, 255, 255, 0, 12, 3, 1, 0})
	f.Add([]byte{2, 1, 0, 0, 9, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		d := all[int(data[0])%len(all)].Snapshot()
		for data = data[1:]; len(data) >= 5; data = data[5:] {
			at := int64(data[0])<<16 | int64(data[1])<<8 | int64(data[2])
			alter(d, at%(2<<20), binary.LittleEndian.Uint16(data[3:]))
		}
		visit(d)
	})
}

// alter changes two bytes of a device.
func alter(d *memory.Device, at int64, value uint16) {
	io := block.NewIO(d)
	sector := make([]byte, 512)
	io.ReadAt(sector, at&^511)
	binary.LittleEndian.PutUint16(sector[at&510:], value)
	io.WriteAt(sector, at&^511)
}

// TestDamage changes used blocks of images at random: no change may cause a panic or a hang.
func TestDamage(t *testing.T) {
	all := victims(t)
	rnd := rand.New(rand.NewPCG(11, 11))
	values := []uint16{0, 1, 0xffff, 0x8000, 0x7fff, 2, 4, 12, 0x400}
	var full [][]int64
	for _, d := range all {
		image := d.Image()
		var places []int64
		for at := int64(1024); at+2 < int64(len(image)); at += 2 {
			if image[at] != 0 || image[at+1] != 0 {
				places = append(places, at)
			}
		}
		full = append(full, places)
	}
	for i := range 600 {
		which := i % len(all)
		d := all[which].Snapshot()
		for range 1 + rnd.IntN(6) {
			value := values[rnd.IntN(len(values))]
			if rnd.IntN(2) == 0 {
				value = uint16(rnd.Uint32())
			}
			at := full[which][rnd.IntN(len(full[which]))]
			if rnd.IntN(2) == 0 {
				// The first used blocks hold the superblock, descriptors and inodes.
				at = full[which][rnd.IntN(min(2000, len(full[which])))]
			}
			alter(d, at, value)
		}
		done := make(chan struct{})
		go func() { defer close(done); visit(d) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatalf("image %d: hangs", i)
		}
	}
}

// TestUnknownFeatures: an unknown feature is refused, and the error names it.
func TestUnknownFeatures(t *testing.T) {
	for args, want := range map[string]string{
		"-O encrypt":                   "unsupported features: encrypt",
		"-O mmp":                       "unsupported features: mmp",
		"-O ea_inode":                  "unsupported features: ea_inode",
		"-O casefold -E encoding=utf8": "unsupported features: casefold",
	} {
		d := loadImage(t, makeImage(t, "16M", strings.Fields(args)...))
		if _, err := ext4.Open(d, ext4.Config{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestFull: a full file system returns ENOSPC, keeps its contents, and has room again after a file
// is removed.
func TestFull(t *testing.T) {
	for _, args := range []string{"-b 1024 -N 64 -J size=1", "-b 4096 -N 64 -O ^has_journal"} {
		d := loadImage(t, makeImage(t, "6M", strings.Fields(args)...))
		s := mount(t, d, ext4.Config{})
		v := newView(s)
		rnd := rand.New(rand.NewPCG(5, 5))
		before := s.Usage().BlocksFree
		for round := range 3 {
			full := map[string]int{}
			for i := range 400 {
				name := fmt.Sprint("f", i%50)
				if rnd.IntN(4) == 0 {
					if err := v.Mkdir(v.Dir, fmt.Sprint("d", i%70), 0o755); errors.Is(err, linux.ENOSPC) {
						full["mkdir"]++
					}
				}
				f, err := v.Open(v.Dir, name, fs.ReadWrite|fs.Create, 0o644)
				if errors.Is(err, linux.ENOSPC) {
					full["create"]++
					continue
				}
				must(t, err)
				n, err := f.WriteAt(make([]byte, 30_000), int64(rnd.IntN(200_000)))
				if n < 30_000 {
					full["write"]++
					if n > 0 != (err == nil) {
						t.Errorf("a write: %d, %v", n, err)
					}
				}
				if err := v.SetXattr(f.Place(), "user.x", make([]byte, 600), 0); errors.Is(err, linux.ENOSPC) {
					full["setxattr"]++
				}
				must(t, f.Close())
			}
			if full["write"] == 0 || full["create"] == 0 {
				t.Errorf("round %d: never full: %v", round, full)
			}
			must(t, s.Sync())
			check(t, clean(t, d))
			for i := range 70 {
				v.Unlink(v.Dir, fmt.Sprint("f", i))
				v.Rmdir(v.Dir, fmt.Sprint("d", i))
			}
		}
		if after := s.Usage().BlocksFree; after+16 < before {
			t.Errorf("%d blocks were free, and %d after all is removed", before, after)
		}
		must(t, s.Close())
		check(t, d)
	}
}

// clean returns a recovered copy of a device that is in use.
func clean(t *testing.T, d *memory.Device) *memory.Device {
	copied := d.Snapshot()
	must(t, mount(t, copied, ext4.Config{}).Close())
	return copied
}
