package ninep_test

import (
	"os"
	"path/filepath"
	"testing"

	"loam/fs"
	"loam/fs/ninep/server"
	"loam/mem"
	"loam/mem/cache"
	"loam/mem/memtest"
)

// pager reads and writes the pages of a file, as package task does it.
type pager struct{ fs.Stored }

func (p pager) ReadPage(index uint64, page []byte) error {
	n, err := p.ReadStorage(page, int64(index)*mem.PageSize)
	clear(page[n:])
	return err
}

func (p pager) WritePages(first uint64, pages [][]byte, size int64) error {
	for i, b := range pages {
		at := int64(first+uint64(i)) * mem.PageSize
		if _, err := p.WriteStorage(b[:min(int64(len(b)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// The pages of a mapped file and all calls see the same content, whether a name, another handle, or an open with
// O_TRUNC reaches it. Data that was written back is in the file on the host.
func TestMapped(t *testing.T) {
	for name, c := range caches {
		t.Run(name, func(t *testing.T) {
			host := folder(t)
			v := view(export(t, host, c, server.Config{}))
			write(t, v, "f", "content of a file", 0)
			f, err := v.Open(v.Dir, "f", fs.ReadWrite, 0)
			must(t, err)
			h, err := f.Place().Node.Open(fs.ReadWrite)
			must(t, err)
			memory := memtest.NewMemory(2)
			m := cache.New(memory, cache.Limits{}).NewFile(pager{h.(fs.Stored)}, f.Attr().Size, mem.Label{})
			h.(fs.Stored).SetPages(m)
			page := func(store bool) []byte {
				t.Helper()
				must(t, m.Load(0))
				p, _, s := m.Page(0, store)
				if s != mem.Supplied {
					t.Fatalf("no page: %v", s)
				}
				return memory.Bytes(p)
			}
			same := func(what, want string) {
				t.Helper()
				if got := content(t, v, "f"); got != want {
					t.Errorf("%s: read has %q, want %q", what, got, want)
				}
				if got := string(page(false)[:len(want)+1]); got != want+"\x00" || m.Size() != int64(len(want)) {
					t.Errorf("%s: the page has %q, want %q; size %d", what, got, want, m.Size())
				}
			}
			same("mapped", "content of a file")
			copy(page(true), "CONTENT")
			same("a store", "CONTENT of a file")
			_, err = f.WriteAt([]byte("OF"), 8)
			must(t, err)
			same("a write", "CONTENT OF a file")
			write(t, v, "f", ".", fs.Append)
			same("an append", "CONTENT OF a file.")
			page(true)[18] = '?' // in the last page, behind the end of the file
			must(t, f.Truncate(9))
			same("a cut", "CONTENT O")
			must(t, f.Truncate(10))
			same("growth", "CONTENT O\x00")
			if a, ok := f.Handle().(fs.Allocator); ok && a.Allocate(fs.PunchHole|fs.KeepSize, 2, 3) == nil {
				same("a hole", "CO\x00\x00\x00NT O\x00")
			}
			page(true)[2] = 'n'
			must(t, f.Sync())
			if b, err := os.ReadFile(filepath.Join(host, "f")); err != nil || b[2] != 'n' {
				t.Errorf("the host has %q, %v after fsync", b, err)
			}
			page(true)[0] = 'L'
			write(t, v, "f", "new", fs.Truncate)
			same("an open with O_TRUNC", "new")
			must(t, m.Flush())
			must(t, os.WriteFile(filepath.Join(host, "f"), []byte("by the host"), 0))
			m.Renew(11)
			if got := string(page(false)[:12]); got != "by the host\x00" {
				t.Errorf("the page has %q after a change by the host", got)
			}
			h.(fs.Stored).SetPages(nil)
			m.Drop()
			must(t, h.Close())
			must(t, f.Close())
		})
	}
}
