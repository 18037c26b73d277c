package ext4_test

import (
	"testing"

	"loam/fs"
	"loam/fs/ext4"
	"loam/fs/memfs"
)

// cached returns a view of a disk that is mounted below a root in memory, with a file whose name is cached.
func cached(b *testing.B) (v *fs.View, path string) {
	s := mount(b, loadImage(b, makeImage(b, "16M")), ext4.Config{})
	b.Cleanup(func() { s.Close() })
	v = newView(memfs.New(memfs.Config{}))
	must(b, v.Mkdir(v.Root, "/data", 0o755))
	at, err := v.Lookup(v.Root, "/data", true)
	must(b, err)
	must(b, v.Tree.Mount(s, at, false))
	must(b, v.Mkdir(v.Root, "/data/a", 0o755))
	must(b, v.Mkdir(v.Root, "/data/a/b", 0o755))
	writeFile(b, v, "/data/a/b/file", "x")
	return v, "/data/a/b/file"
}

// BenchmarkStatCached resolves the path of a file and reads its attributes.
func BenchmarkStatCached(b *testing.B) {
	v, path := cached(b)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if found, err := v.Lookup(v.Root, path, true); err != nil || found.Node.Attr().Size != 1 {
				b.Error(err)
			}
		}
	})
}

// BenchmarkOpenCached opens and closes a file.
func BenchmarkOpenCached(b *testing.B) {
	v, path := cached(b)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			f, err := v.Open(v.Root, path, fs.ReadOnly, 0)
			if err != nil {
				b.Error(err)
				return
			}
			f.Close()
		}
	})
}
