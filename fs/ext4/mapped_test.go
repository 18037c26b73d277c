package ext4_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4"
	"loam/internal/race"
	"loam/mem"
	"loam/mem/cache"
	"loam/mem/memtest"
)

// Mapped files: the pages of a page cache and the calls read(2), write(2), truncate(2) and fallocate(2) see the same
// content.

var mappedSteps = flag.Int("mapped-steps", 0, "steps of TestMappedFile; 0: few")

// mapping is a shared mapping of a whole file, made as package task makes it.
type mapping struct {
	*cache.File
	handle fs.Stored
	memory *memtest.Memory
}

// mapFile maps a file that is open.
func mapFile(t testing.TB, pages *cache.Cache, memory *memtest.Memory, f *fs.File) *mapping {
	t.Helper()
	h, err := f.Place().Node.Open(fs.ReadWrite)
	must(t, err)
	m := &mapping{handle: h.(fs.Stored), memory: memory}
	m.File = pages.NewFile(m, f.Attr().Size, mem.Label{})
	m.handle.SetPages(m.File)
	return m
}

// unmap ends the mapping. Changed pages are written back.
func (m *mapping) unmap() error {
	err := m.Flush()
	m.handle.SetPages(nil)
	m.Drop()
	return errors.Join(err, m.handle.Close())
}

// ReadPage implements cache.Pager.
func (m *mapping) ReadPage(index uint64, page []byte) error {
	n, err := m.handle.ReadStorage(page, int64(index)*mem.PageSize)
	clear(page[n:])
	return err
}

// WritePages implements cache.Pager.
func (m *mapping) WritePages(first uint64, pages [][]byte, size int64) error {
	for i, p := range pages {
		at := int64(first+uint64(i)) * mem.PageSize
		if at >= size {
			break
		}
		if _, err := m.handle.WriteStorage(p[:min(int64(len(p)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// Sync implements cache.Syncer.
func (m *mapping) Sync() error { return m.handle.SyncStorage() }

// touch calls access with a part of a page, which begins at the given offset, as a load or store of a program reaches
// it. The error EFAULT stands for SIGBUS.
func (m *mapping) touch(at int64, store bool, access func([]byte)) error {
	for {
		p, _, supply := m.Page(uint64(at)/mem.PageSize, store)
		switch supply {
		case mem.Supplied:
			access(m.memory.Bytes(p)[at%mem.PageSize:])
			return nil
		case mem.Beyond:
			return linux.EFAULT
		}
		if err := m.Load(uint64(at) / mem.PageSize); err != nil {
			return err
		}
	}
}

// access loads b from the mapping, or stores b to it, at an offset.
func (m *mapping) access(b []byte, at int64, store bool) error {
	for len(b) > 0 {
		n := min(len(b), int(mem.PageSize-at%mem.PageSize))
		err := m.touch(at, store, func(page []byte) {
			if store {
				copy(page, b[:n])
			} else {
				copy(b[:n], page)
			}
		})
		if err != nil {
			return err
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// Calls and stores change a mapped file in random order, and make the same changes to a slice of bytes. Reads and
// loads see the content of the slice, and access to a page behind the end raises SIGBUS. Memory is scarce, so that
// pages are evicted.
func TestMappedFile(t *testing.T) {
	steps := *mappedSteps
	if steps == 0 {
		steps = 4000
	}
	for _, args := range []string{"1024", "4096"} {
		t.Run(args, func(t *testing.T) { mappedFile(t, args, steps/2) })
	}
}

// mappedFile makes random steps on a file system with one size of blocks.
//
// long: it has one case for each call.
func mappedFile(t *testing.T, blockSize string, steps int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := loadImage(t, makeImage(t, "32M", "-b", blockSize))
	s := mount(t, d, ext4.Config{CacheBytes: 1 << 20, Interval: time.Hour})
	v := newView(s)
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	memory := memtest.NewMemory(2)
	pages := cache.New(memory, cache.Limits{Background: 60, Dirty: 90})
	var hog []mem.Page // uses up the memory, except for about a hundred pages
	for memory.Used() < 2*mem.BlockPages-102 {
		p := memory.Allocate()
		if p == 0 {
			break
		}
		hog = append(hog, p)
	}
	m := mapFile(t, pages, memory, f)
	w := &model{rnd: rand.New(rand.NewPCG(seed, 2)), block: int(s.Usage().BlockSize)}
	now := time.Unix(0, 0)
	for step := range steps {
		call := "store"
		switch w.rnd.IntN(12) {
		case 0, 1, 2, 3: // a store of the program
			if len(w.b) == 0 {
				continue
			}
			at := w.rnd.IntN(len(w.b))
			data := make([]byte, 1+w.rnd.IntN(min(20_000, len(w.b)-at)))
			for i := range data {
				data[i] = byte(w.rnd.Uint32()) | 1
			}
			copy(w.b[at:], data)
			must(t, m.access(data, int64(at), true))
			// The store also wrote behind the end of the file, in its last page. Those bytes are not in the file.
			if rest := mem.PageSize - len(w.b)%mem.PageSize; rest < mem.PageSize && at+len(data) == len(w.b) {
				must(t, m.access(bytes.Repeat([]byte{7}, rest), int64(len(w.b)), true))
			}
		case 4:
			call = "sync"
			now = now.Add(time.Minute)
			w.sync(t, s, f, m, pages, now)
		case 5:
			call = "SIGBUS"
			end := (int64(len(w.b)) + mem.PageSize - 1) / mem.PageSize * mem.PageSize
			if err := m.touch(end, w.rnd.IntN(2) == 0, func([]byte) {}); err != linux.EFAULT {
				t.Fatalf("step %d: an access behind the end: %v", step, err)
			}
		case 6:
			call = "map again"
			if w.rnd.IntN(10) == 0 {
				must(t, m.unmap())
				m = mapFile(t, pages, memory, f)
			}
		default:
			var do func() error
			var want error
			call, do, want = w.change(f)
			if err := do(); !errors.Is(err, want) {
				t.Fatalf("step %d: %s: %v, want %v", step, call, err, want)
			}
		}
		if f.Attr().Size != int64(len(w.b)) || m.Size() != int64(len(w.b)) {
			t.Fatalf("step %d: %s: the size is %d, of the pages %d, want %d", step, call, f.Attr().Size, m.Size(), len(w.b))
		}
		if len(w.b) == 0 {
			continue
		}
		if what := w.compare(f, m, step%64 == 0); what != "" {
			t.Fatalf("step %d: after %s, %s", step, call, what)
		}
	}
	must(t, m.unmap())
	if got := content(t, v, "f"); !bytes.Equal(got, w.b) {
		t.Error("without the mapping, the content differs")
	}
	for _, p := range hog {
		mem.Release(memory, p)
	}
	if n := memory.Used(); n != 0 {
		t.Errorf("%d pages are left", n)
	}
	must(t, f.Close())
	must(t, s.Close())
	check(t, d)
	s = mount(t, d, ext4.Config{})
	if got := content(t, newView(s), "f"); !bytes.Equal(got, w.b) {
		t.Error("opened again, the content differs")
	}
	must(t, s.Close())
}

// compare reads or loads a part of the file, or all of it, and compares it with the model. It returns a description
// of the difference, or "".
func (w *model) compare(f *fs.File, m *mapping, all bool) (difference string) {
	at := w.rnd.IntN(len(w.b))
	n := 1 + w.rnd.IntN(min(50_000, len(w.b)-at))
	if all {
		at, n = 0, len(w.b)
	}
	got := make([]byte, n)
	kind, err := "read", error(nil)
	if w.rnd.IntN(2) == 0 {
		_, err = io.ReadFull(io.NewSectionReader(f, int64(at), int64(n)), got)
	} else {
		kind, err = "load", m.access(got, int64(at), false)
	}
	if err == nil && bytes.Equal(got, w.b[at:at+n]) {
		return ""
	}
	i := 0
	for i < n-1 && got[i] == w.b[at+i] {
		i++
	}
	return fmt.Sprintf("a %s of %d bytes at %d differs at %d of %d: %v", kind, n, at, at+i, len(w.b), err)
}

// sync writes changed pages back by one of several calls, chosen at random, or evicts clean pages.
func (w *model) sync(t *testing.T, s *ext4.FileSystem, f *fs.File, m *mapping, pages *cache.Cache, now time.Time) {
	switch w.rnd.IntN(5) {
	case 0:
		must(t, f.Sync())
	case 1:
		must(t, s.Sync())
	case 2:
		must(t, m.File.Sync(0, 1<<40))
	case 3:
		pages.Step(now)
	case 4:
		pages.Reclaim(50)
	}
}

// One goroutine stores, one calls write, one makes the file longer and shorter, and one writes changed pages back.
// The goroutines that store and write change different pages, so a page has the bytes that its goroutine stored or wrote
// last.
func TestMappedConcurrently(t *testing.T) {
	d := loadImage(t, makeImage(t, "32M"))
	s := mount(t, d, ext4.Config{})
	v := newView(s)
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	const pagesOfAll, tail = 8, 5000
	const size = pagesOfAll * mem.PageSize
	must(t, f.Truncate(size+tail))
	memory := memtest.NewMemory(2)
	pages := cache.New(memory, cache.Limits{})
	m := mapFile(t, pages, memory, f)
	const rounds = 300
	var wg sync.WaitGroup
	failed := make(chan error, 8) // capacity: one error for each goroutine; received at the end
	owner := func(first int, put, get func(b []byte, at int64) error) {
		wg.Go(func() {
			for round := range rounds {
				// Only this goroutine accesses these pages, so the race detector sees no conflict.
				for page := first; page < pagesOfAll; page += 2 {
					b := bytes.Repeat([]byte{byte(round + 1)}, 100)
					at := int64(page*mem.PageSize + round%3000)
					if err := put(b, at); err != nil {
						failed <- err
						return
					}
					got := make([]byte, len(b))
					if err := get(got, at); err != nil || !bytes.Equal(got, b) {
						failed <- fmt.Errorf("round %d, page %d: %v, %v", round, page, got[:4], err)
						return
					}
				}
			}
		})
	}
	read := func(b []byte, at int64) error { _, err := f.ReadAt(b, at); return err }
	owner(0, func(b []byte, at int64) error { return m.access(b, at, true) }, read)
	owner(1, func(b []byte, at int64) error { _, err := f.WriteAt(b, at); return err }, func(b []byte, at int64) error { return m.access(b, at, false) })
	wg.Go(func() {
		for i := range rounds {
			if err := f.Truncate(size + int64(i%2*tail)); err != nil {
				failed <- err
				return
			}
		}
	})
	if !race.Enabled { // a store during write-back is a race in Go; the page is written back again, so the result is correct
		wg.Go(func() {
			for range rounds {
				if err := f.Sync(); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	must(t, m.unmap())
	must(t, f.Close())
	must(t, s.Close())
	check(t, d)
}
