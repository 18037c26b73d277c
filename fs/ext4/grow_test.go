package ext4_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
	"loam/internal/race"
)

// larger returns a device of size bytes that begins with the content of another.
func larger(t testing.TB, from *memory.Device, size int64) *memory.Device {
	t.Helper()
	d := memory.New(size, memory.Config{})
	in, out := block.NewIO(from), block.NewIO(d)
	b, zeros := make([]byte, piece), make([]byte, piece)
	for at := int64(0); at < from.Size(); at += piece {
		n, err := in.ReadAt(b, at)
		if n == 0 {
			t.Fatal(err)
		}
		if !bytes.Equal(b[:n], zeros[:n]) {
			_, err = out.WriteAt(b[:n], at)
			must(t, err)
		}
	}
	return d
}

// dirt fills a device from an offset on with bytes other than 0, so that a test finds what growth should have
// cleared.
func dirt(t testing.TB, d *memory.Device, from int64) {
	t.Helper()
	b := bytes.Repeat([]byte{0xa5}, piece)
	for ; from < d.Size(); from += piece {
		_, err := block.NewIO(d).WriteAt(b[:min(piece, d.Size()-from)], from)
		must(t, err)
	}
}

// A mounted file system grows, in steps. Files are created before the first step, between steps and after the last.
// e2fsck finds nothing wrong after each step, and every file has its content.
func TestGrow(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		args  string
		size  string
		sizes []int64 // sizes of the file system after each step, in MiB
	}{
		// This growth needs a second, and then a third block of group descriptors.
		{"-b 1024 -g 1024 -N 512", "12M", []int64{13, 15, 24, 70}},
		{"-b 1024", "16M", []int64{20, 100, 180}},
		{"-b 4096", "20M", []int64{33, 150, 400}},
		{"-b 4096 -O ^metadata_csum,uninit_bg", "20M", []int64{300}},
		{"-b 4096 -O ^metadata_csum,^uninit_bg", "20M", []int64{300}},
		{"-b 1024 -g 1024 -O ^metadata_csum,^64bit,^flex_bg -N 512", "12M", []int64{60}},
		{"-b 4096 -O ^has_journal", "20M", []int64{300}},
		{"-b 1024 -g 1024 -O ^resize_inode -N 512", "12M", []int64{15}},
		{"-b 1024 -g 1024 -O ^sparse_super,^resize_inode -N 512", "12M", []int64{14, 15}},
	} {
		if race.Enabled && !strings.Contains(c.args, "-g 1024") {
			continue
		}
		t.Run(c.args, func(t *testing.T) {
			d := loadImage(t, makeImage(t, c.size, strings.Fields(c.args)...))
			v, names := fs.View{}, map[string]string{}
			for round, size := range c.sizes {
				old := d.Size()
				d = larger(t, d, size*mib)
				dirt(t, d, old)
				s := mount(t, d, ext4.Config{Interval: time.Hour})
				v = *newView(s)
				fillFolder(t, &v, fmt.Sprintf("before%d", round), names)
				before := s.Usage()
				must(t, s.Grow(uint64(d.Size()/before.BlockSize)))
				if after := s.Usage(); after.Blocks <= before.Blocks || after.BlocksFree <= before.BlocksFree || after.Files < before.Files {
					t.Errorf("%d MiB: %+v became %+v", size, before, after)
				}
				now := crashCopy(t, d) // the state that a power failure now would leave
				check(t, now)
				checkCopies(t, now, names)
				fillFolder(t, &v, fmt.Sprintf("after%d", round), names)
				must(t, s.Grow(uint64(d.Size()/before.BlockSize))) // the file system has this size already
				must(t, s.Close())
				check(t, d)
				s = mount(t, d, ext4.Config{})
				v = *newView(s)
				for name, want := range names {
					if got := content(t, &v, name); string(got) != want {
						t.Errorf("%d MiB: %s has %d bytes, want %d", size, name, len(got), len(want))
					}
				}
				must(t, s.Close())
			}
		})
	}
}

// crashCopy returns a copy of a device whose journal is recovered.
func crashCopy(t *testing.T, d *memory.Device) *memory.Device {
	t.Helper()
	copied := d.Snapshot()
	must(t, mount(t, copied, ext4.Config{}).Close())
	return copied
}

// fillFolder creates a directory with files of 2 MiB in total, and records their contents in names.
func fillFolder(t *testing.T, v *fs.View, dir string, names map[string]string) {
	t.Helper()
	must(t, v.Mkdir(v.Dir, dir, 0o755))
	for i := range 20 {
		name := fmt.Sprintf("%s/%d", dir, i)
		names[name] = strings.Repeat(name, 100_000/len(name))
		f, err := v.Open(v.Dir, name, fs.WriteOnly|fs.Create, 0o644)
		must(t, err)
		_, err = f.Write([]byte(names[name]))
		must(t, errors.Join(err, f.Close()))
	}
}

// checkCopies destroys the superblock and the descriptors. It has e2fsck repair them from their first backup copy,
// and then checks that the size is the same and that the files are there.
func checkCopies(t *testing.T, d *memory.Device, names map[string]string) {
	t.Helper()
	s := mount(t, d, ext4.Config{ReadOnly: true})
	usage := s.Usage()
	must(t, s.Close())
	path := saveImage(t, d)
	out, _ := tool(t, "dumpe2fs", path)
	_, at, ok := strings.Cut(out, "Backup superblock at ")
	if at, _, _ = strings.Cut(at, ","); !ok {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0x5a}, int(2*usage.BlockSize)), 1024)
	must(t, errors.Join(err, f.Close()))
	tool(t, "e2fsck", "-fy", "-b", at, "-B", fmt.Sprint(usage.BlockSize), path)
	repaired := loadImage(t, path)
	check(t, repaired)
	s = mount(t, repaired, ext4.Config{ReadOnly: true})
	if got := s.Usage(); got.Blocks != usage.Blocks || got.Files != usage.Files {
		t.Errorf("repaired, the file system has %d blocks and %d inodes; want %d and %d", got.Blocks, got.Files, usage.Blocks, usage.Files)
	}
	for name, want := range names {
		if got := content(t, newView(s), name); string(got) != want {
			t.Errorf("repaired: %s has %d bytes, want %d", name, len(got), len(want))
		}
	}
	must(t, s.Close())
}

func TestGrowErrors(t *testing.T) {
	const blocks = 4096 // size of the file system, in blocks of 4 KiB
	for _, c := range []struct {
		args   string
		blocks uint64
		config ext4.Config
		want   error
	}{
		{"-b 4096", blocks - 1, ext4.Config{}, linux.EINVAL},
		{"-b 4096", 2*blocks + 1, ext4.Config{}, linux.ENOSPC},
		{"-b 4096", 2 * blocks, ext4.Config{ReadOnly: true}, linux.EROFS},
		{"-b 4096 -O meta_bg,^resize_inode", 2 * blocks, ext4.Config{}, linux.EOPNOTSUPP},
		{"-b 4096 -O sparse_super2,^resize_inode", 2 * blocks, ext4.Config{}, linux.EOPNOTSUPP},
		{"-b 4096 -g 256 -O ^resize_inode -N 512", 2 * blocks, ext4.Config{}, nil},
		{"-b 4096 -g 256 -O ^resize_inode -N 512", 8 * blocks, ext4.Config{}, linux.EOPNOTSUPP},
	} {
		d := larger(t, loadImage(t, makeImage(t, "16M", strings.Fields(c.args)...)), 4096*int64(max(2*blocks, c.blocks&^1)))
		if c.want == linux.ENOSPC {
			d = larger(t, d, 2*blocks*4096)
		}
		s := mount(t, d, c.config)
		if err := s.Grow(c.blocks); !errors.Is(err, c.want) {
			t.Errorf("%s, %d blocks: %v, want %v", c.args, c.blocks, err, c.want)
		}
		must(t, s.Close())
		check(t, d)
	}
}

// The power fails while the file system grows. The test builds the images that each prefix of the log of writes can
// leave, with losses after the last flush. This package recovers all of them, and e2fsck some. Both find all files.
func TestGrowPowerLoss(t *testing.T) {
	for name, args := range map[string][]string{
		"groups of 1 MiB": {"-b", "1024", "-g", "1024", "-N", "512", "-J", "size=1"},
		"no checksums":    {"-b", "1024", "-g", "1024", "-N", "512", "-J", "size=1", "-O", "^metadata_csum,^64bit"},
		"4 KiB blocks":    {"-b", "4096", "-g", "1024", "-N", "512", "-J", "size=4"},
	} {
		if race.Enabled && name != "groups of 1 MiB" {
			continue
		}
		t.Run(name, func(t *testing.T) { growPowerLoss(t, args, name == "groups of 1 MiB" && !race.Enabled) })
	}
}

// sameSize fails the test unless a file system has the same size when it is opened the first time after a crash, with a
// journal that may hold a larger superblock, and the second time.
func sameSize(t *testing.T, d *memory.Device) {
	t.Helper()
	var usage [2]fs.Usage
	for i := range usage {
		s := mount(t, d, ext4.Config{Interval: time.Hour})
		usage[i] = s.Usage()
		must(t, s.Close())
	}
	if usage[0] != usage[1] {
		t.Fatalf("after the recovery %+v, and then %+v", usage[0], usage[1])
	}
}

func growPowerLoss(t *testing.T, args []string, every bool) {
	base := larger(t, loadImage(t, makeImage(t, "13M", args...)), 24<<20)
	dirt(t, base, 13<<20)
	r := &recorder{Device: base.Snapshot()}
	s := mount(t, r, ext4.Config{Interval: time.Hour})
	v := newView(s)
	names := map[string]string{}
	fillFolder(t, v, "before", names)
	must(t, s.Sync())
	synced := r.length()
	for size := r.Size() * 3 / 5; size <= r.Size(); size += r.Size() / 5 { // grows in three steps, and creates a file in each
		must(t, s.Grow(uint64(size/s.Usage().BlockSize)))
		f, err := v.Open(v.Dir, fmt.Sprint("new", size), fs.WriteOnly|fs.Create, 0o644)
		must(t, err)
		_, err = f.Write(make([]byte, 3<<20))
		must(t, errors.Join(err, f.Sync(), f.Close()))
	}
	must(t, s.Close())
	check(t, r.Device)
	rnd := rand.New(rand.NewPCG(4, 4))
	want := promise{files: names, later: map[string]bool{}}
	images := 0
	for cut := synced; cut <= len(r.events); cut++ {
		if race.Enabled && cut%few != 0 {
			continue
		}
		for kind := range 3 {
			events := r.events[:cut]
			if kind > 0 {
				events = lossy(events, rnd)
			}
			if kind == 0 {
				sameSize(t, apply(base, events))
			}
			trial(t, apply(base, events), want, fmt.Sprintf("%d of %d events, kind %d", cut, len(r.events), kind), (cut+kind)%5 == 0 || kind == 0 && every)
			images++
		}
	}
	t.Logf("%d images", images)
}
