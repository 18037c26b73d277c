package memfs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/mem/cache"
	"loam/mem/memtest"
)

const block = 4096

// model applies fallocate(2) to the content of a file.
func model(b []byte, mode fs.AllocateMode, offset, length int) ([]byte, error) {
	end := offset + length
	aligned := offset%block == 0 && length%block == 0
	switch mode {
	case 0:
		return append(b, make([]byte, max(0, end-len(b)))...), nil
	case fs.KeepSize:
		return b, nil
	case fs.PunchHole | fs.KeepSize, fs.ZeroRange | fs.KeepSize:
		clear(b[min(offset, len(b)):min(end, len(b))])
		return b, nil
	case fs.ZeroRange:
		clear(b[min(offset, len(b)):min(end, len(b))])
		return append(b, make([]byte, max(0, end-len(b)))...), nil
	case fs.CollapseRange:
		if !aligned || end >= len(b) {
			return b, linux.EINVAL
		}
		return append(b[:offset:offset], b[end:]...), nil
	case fs.InsertRange:
		if !aligned || offset >= len(b) {
			return b, linux.EINVAL
		}
		return append(append(b[:offset:offset], make([]byte, length)...), b[offset:]...), nil
	}
	return b, linux.EOPNOTSUPP
}

// Random changes by fallocate and write have the effect of the model: on pages, on content that is still in the
// archive below the pages, and on a mapped file. The file's number of blocks is the number of its pages.
func TestAllocate(t *testing.T) {
	modes := []fs.AllocateMode{
		0, fs.KeepSize, fs.PunchHole | fs.KeepSize, fs.ZeroRange, fs.ZeroRange | fs.KeepSize, fs.CollapseRange, fs.InsertRange,
		fs.PunchHole, fs.ZeroRange | fs.CollapseRange,
	}
	for _, kind := range []string{"pages", "base", "mapped", "cached"} {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		source := new(memfs.Source)
		if kind == "cached" {
			pages := cache.New(memtest.NewMemory(8), cache.Limits{})
			source.Set(func(base []byte, charge func(int64) error) fs.Content { return pages.NewMemory(base, charge) })
		}
		system := memfs.New(memfs.Config{Bytes: 1 << 30, Source: source})
		v := fs.NewView(fs.NewTree(system))
		f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, 10*block+100)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		if kind == "base" {
			if err := memfs.SetContent(f.Place().Node, bytes.Clone(want)); err != nil {
				t.Fatal(err)
			}
		} else if _, err := f.WriteAt(want, 0); err != nil {
			t.Fatal(err)
		}
		if kind == "mapped" {
			reserve := func(size int64) (fs.Memory, error) { return slice{make([]byte, 64<<20), new(int)}, nil }
			if _, err := f.Handle().(fs.Mappable).Map(64<<20, reserve); err != nil {
				t.Fatal(err)
			}
		}
		a := f.Handle().(fs.Allocator)
		for step := range 300 {
			mode := modes[rng.IntN(len(modes))]
			offset, length := rng.IntN(20*block), 1+rng.IntN(6*block)
			if rng.IntN(2) == 0 {
				offset, length = offset&^(block-1), max(block, length&^(block-1))
			}
			var wrong error
			want, wrong = model(want, mode, offset, length)
			if err := a.Allocate(mode, int64(offset), int64(length)); err != wrong {
				t.Fatalf("%s, seed %d, step %d: mode %#x, %d, %d: %v, want %v", kind, seed, step, mode, offset, length, err, wrong)
			}
			if at := rng.IntN(len(want) + 1); rng.IntN(3) == 0 && at < len(want) {
				want[at] = byte(step)
				f.WriteAt(want[at:at+1], int64(at))
			}
			got := make([]byte, len(want)+10)
			n, _ := f.ReadAt(got, 0)
			if f.Attr().Size != int64(len(want)) || !bytes.Equal(got[:n], want) {
				t.Fatalf("%s, seed %d, step %d: mode %#x, %d, %d: the content differs", kind, seed, step, mode, offset, length)
			}
		}
		if used := system.Usage().Blocks - system.Usage().BlocksFree; (kind == "pages" || kind == "cached") && int(used) > len(want)/block+1 {
			t.Errorf("%d pages are counted for %d bytes", used, len(want))
		}
		f.Truncate(0)
		if u := system.Usage(); u.Blocks != u.BlocksFree {
			t.Errorf("%s, seed %d: %d pages of an empty file are counted", kind, seed, u.Blocks-u.BlocksFree)
		}
	}
}

// lseek(2) finds a punched hole, the pages of the hole are freed, and a seal against writing forbids punching: on pages, and in
// the page cache.
func TestPunch(t *testing.T) {
	memory := memtest.NewMemory(8)
	source := new(memfs.Source)
	pages := cache.New(memory, cache.Limits{})
	source.Set(func(base []byte, charge func(int64) error) fs.Content { return pages.NewMemory(base, charge) })
	for kind, source := range map[string]*memfs.Source{"pages": nil, "cached": source} {
		testPunch(t, kind, memfs.New(memfs.Config{Bytes: 1 << 20, Source: source}))
	}
}

func testPunch(t *testing.T, kind string, system *memfs.FileSystem) {
	v := fs.NewView(fs.NewTree(system))
	f, err := v.OpenNameless(0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt(bytes.Repeat([]byte{1}, 8*block+100), 0)
	a := f.Handle().(fs.Allocator)
	if err := a.Allocate(fs.PunchHole|fs.KeepSize, 2*block-10, 3*block+20); err != nil {
		t.Fatal(err)
	}
	hole, _ := f.Seek(0, fs.SeekHole)
	data, _ := f.Seek(hole, fs.SeekData)
	if u := system.Usage(); hole != 2*block || data != 5*block || u.Blocks-u.BlocksFree != 6 {
		t.Errorf("%s: hole at %d, data at %d, %d pages", kind, hole, data, u.Blocks-u.BlocksFree)
	}
	if err := a.Allocate(fs.PunchHole|fs.KeepSize, 8*block, 100); err != nil {
		t.Fatal(err)
	}
	if u := system.Usage(); u.Blocks-u.BlocksFree != 5 {
		t.Errorf("%s: the last page is counted: %d pages", kind, u.Blocks-u.BlocksFree)
	}
	want := bytes.Repeat([]byte{1}, 8*block+100)
	clear(want[2*block-10 : 5*block+10])
	clear(want[8*block:])
	got := make([]byte, len(want))
	if n, _ := f.ReadAt(got, 0); n != len(want) || !bytes.Equal(got, want) {
		t.Errorf("%s: the content differs", kind)
	}
	if err := f.AddSeals(fs.SealWrite); err != nil {
		t.Fatal(err)
	}
	if err := a.Allocate(fs.PunchHole|fs.KeepSize, 0, block); err != linux.EPERM {
		t.Errorf("%s: a sealed file: %v", kind, err)
	}
}
