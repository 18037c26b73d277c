package ext4_test

import (
	"testing"

	"loam/fs/ext4"
	"loam/fs/memfs"
)

// BenchmarkStatCached resolves the path of a file on a disk that is mounted below a root in memory, and reads its attributes.
func BenchmarkStatCached(b *testing.B) {
	s := mount(b, loadImage(b, makeImage(b, "16M")), ext4.Config{})
	defer s.Close()
	v := newView(memfs.New(memfs.Config{}))
	must(b, v.Mkdir(v.Root, "/data", 0o755))
	at, err := v.Lookup(v.Root, "/data", true)
	must(b, err)
	must(b, v.Tree.Mount(s, at, false))
	must(b, v.Mkdir(v.Root, "/data/a", 0o755))
	must(b, v.Mkdir(v.Root, "/data/a/b", 0o755))
	writeFile(b, v, "/data/a/b/file", "x")
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if found, err := v.Lookup(v.Root, "/data/a/b/file", true); err != nil || found.Node.Attr().Size != 1 {
				b.Error(err)
			}
		}
	})
}
