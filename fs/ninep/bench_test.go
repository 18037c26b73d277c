package ninep_test

import (
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"testing"

	"loam/fs/ninep"
	"loam/fs/ninep/server"
)

// BenchmarkTree walks a tree of 4,000 small files, as a program on the host and through a server, and reads them.
func BenchmarkTree(b *testing.B) {
	dir := folder(b)
	const dirs, files = 40, 100
	for d := range dirs {
		must(b, os.Mkdir(fmt.Sprintf("%s/%d", dir, d), 0o755))
		for f := range files {
			must(b, os.WriteFile(fmt.Sprintf("%s/%d/%d", dir, d, f), make([]byte, 1000), 0o644))
		}
	}
	host := func(b *testing.B, read bool) {
		for b.Loop() {
			filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
				must(b, err)
				_, err = os.Lstat(path)
				must(b, err)
				if read && !d.IsDir() {
					_, err := os.ReadFile(path)
					must(b, err)
				}
				return nil
			})
		}
	}
	served := func(b *testing.B, read bool) {
		for b.Loop() {
			v := view(export(b, dir, ninep.Config{}, server.Config{}))
			var visit func(string)
			if read {
				visit = func(path string) { content(b, v, path) }
			}
			walk(b, v, ".", visit)
		}
	}
	b.Run("walk/host", func(b *testing.B) { host(b, false) })
	b.Run("walk/ninep", func(b *testing.B) { served(b, false) })
	b.Run("read/host", func(b *testing.B) { host(b, true) })
	b.Run("read/ninep", func(b *testing.B) { served(b, true) })
}

// BenchmarkChange creates a file of 1000 bytes and removes it, through a server in memory.
func BenchmarkChange(b *testing.B) {
	v := view(exportMemory(b, folder(b), ninep.Config{}))
	text := string(make([]byte, 1000))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprint(i)
		write(b, v, name, text, 0)
		must(b, v.Unlink(v.Dir, name))
	}
}
