package ext4_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"loam/fs"
	"loam/fs/ext4"
)

// TestConcurrent runs writers, readers and callers of fsync at the same time, with commits between
// them.
func TestConcurrent(t *testing.T) {
	d := loadImage(t, makeImage(t, "32M", "-J", "size=4"))
	s := mount(t, d, ext4.Config{Interval: 5 * time.Millisecond, CacheBytes: 1 << 20})
	v := newView(s)
	var group sync.WaitGroup
	for worker := range 6 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(worker), 3))
			for i := range 150 {
				name := fmt.Sprintf("/w%d-%d", worker, rnd.IntN(8))
				data := bytes.Repeat([]byte{byte('a' + worker)}, 1+rnd.IntN(20_000))
				f, err := v.Open(v.Dir, name, fs.ReadWrite|fs.Create, 0o644)
				if err != nil {
					t.Error(err)
					return
				}
				f.WriteAt(data, int64(rnd.IntN(30_000)))
				if rnd.IntN(5) == 0 {
					if err := f.Sync(); err != nil {
						t.Error(err)
					}
				}
				got := make([]byte, 10_000)
				n, _ := f.ReadAt(got, 0)
				for _, c := range got[:n] {
					if c != 0 && c != data[0] {
						t.Errorf("%s has a byte of another file", name)
						break
					}
				}
				f.Close()
				if rnd.IntN(6) == 0 {
					v.Unlink(v.Dir, name)
				}
				if i%10 == 0 {
					v.Rename(v.Dir, name, v.Dir, fmt.Sprintf("/w%d-%d", worker, rnd.IntN(8)), 0)
				}
			}
		})
	}
	group.Wait()
	must(t, s.Close())
	check(t, d)
}

// BenchmarkCreate creates and removes files.
func BenchmarkCreate(b *testing.B) {
	s := mount(b, loadImage(b, makeImage(b, "64M")), ext4.Config{})
	defer s.Close()
	v := newView(s)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprint("f", i%2000)
		f, err := v.Open(v.Dir, name, fs.ReadWrite|fs.Create, 0o644)
		must(b, err)
		f.Close()
		if i%2000 > 1000 {
			v.Unlink(v.Dir, fmt.Sprint("f", i%2000-1000))
		}
	}
}

// BenchmarkWrite overwrites a file in pieces of 4 KiB. BenchmarkRead reads the file in such pieces. BenchmarkStat
// looks up a name.
func BenchmarkWrite(b *testing.B) { transfer(b, (*fs.File).WriteAt) }
func BenchmarkRead(b *testing.B)  { transfer(b, (*fs.File).ReadAt) }

func transfer(b *testing.B, do func(*fs.File, []byte, int64) (int, error)) {
	s := mount(b, loadImage(b, makeImage(b, "64M")), ext4.Config{})
	defer s.Close()
	v := newView(s)
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	must(b, err)
	defer f.Close()
	f.WriteAt(make([]byte, 8<<20), 0)
	p := make([]byte, 4096)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := do(f, p, int64(i%2048)*4096); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStat(b *testing.B) {
	s := mount(b, loadImage(b, makeImage(b, "64M")), ext4.Config{})
	defer s.Close()
	v := newView(s)
	must(b, v.Mkdir(v.Dir, "d", 0o755))
	must(b, v.Mkdir(v.Dir, "d/e", 0o755))
	b.ReportAllocs()
	for b.Loop() {
		p, err := v.Lookup(v.Dir, "/d/e", true)
		must(b, err)
		p.Node.Attr()
	}
}
