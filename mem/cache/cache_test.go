package cache_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"loam/mem"
	"loam/mem/cache"
	"loam/mem/memtest"
)

// storage is a Pager whose pages are read from and written to a slice of bytes.
type storage struct {
	mu            sync.Mutex
	data          []byte
	reads, writes int
	fail          error
	pause         func(func())
}

func (s *storage) ReadPage(index uint64, page []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	clear(page)
	if at := index * mem.PageSize; at < uint64(len(s.data)) {
		copy(page, s.data[at:])
	}
	return s.fail
}

func (s *storage) WritePages(first uint64, pages [][]byte, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.resize(size)
	for i, p := range pages {
		if at := (first + uint64(i)) * mem.PageSize; at < uint64(size) {
			s.writes++
			s.pause(func() { copy(s.data[at:], p) })
		}
	}
	return nil
}

// resize sets the size; callers hold mu.
func (s *storage) resize(size int64) {
	if int64(len(s.data)) > size {
		s.data = s.data[:size]
	}
	s.data = append(s.data, make([]byte, size-int64(len(s.data)))...)
}

func (s *storage) truncate(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resize(size)
}

type fixture struct {
	*testing.T
	memory  *memtest.Memory
	cache   *cache.Cache
	storage *storage
	file    *cache.File
	m       *mem.Map
	tables  *memtest.Tables
	base    uint64 // address of a shared mapping of the file
}

const filePages = 24

func newFixture(t *testing.T, limits cache.Limits) *fixture {
	f := &fixture{T: t, memory: memtest.NewMemory(2), storage: &storage{data: make([]byte, filePages*mem.PageSize)}}
	for i := range f.storage.data {
		f.storage.data[i] = byte(i / mem.PageSize)
	}
	f.cache = cache.New(f.memory, limits)
	f.file = f.cache.NewFile(f.storage, filePages*mem.PageSize, mem.Label{Path: "/file"})
	f.tables = memtest.NewTables(f.memory)
	f.storage.pause = f.tables.Pause
	f.m = mem.New(mem.Config{
		Memory: f.memory, Tables: f.tables, Account: &mem.Account{Total: 1 << 20}, Layout: mem.NewLayout(8<<20, nil),
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite},
	})
	f.base = f.mmap(mem.MapShared)
	return f
}

func (f *fixture) mmap(flags uint32) uint64 {
	addr, err := f.m.Mmap(mem.Request{Length: 2 * filePages * mem.PageSize, Prot: mem.Read | mem.Write, Flags: flags, Object: f.file})
	if err != nil {
		f.Fatal(err)
	}
	return addr
}

func (f *fixture) end() {
	f.m.Destroy()
	f.file.Drop()
	if n := f.memory.Used(); n != 0 {
		f.Errorf("%d pages are left", n)
	}
	if pages, dirty := f.cache.Pages(); pages != 0 || dirty != 0 {
		f.Errorf("%d pages, %d dirty are counted", pages, dirty)
	}
}

// TestOneCache: bytes that are stored in one way (write, or a store through a mapping) are seen in every other way.
func TestOneCache(t *testing.T) {
	f := newFixture(t, cache.Limits{})
	defer f.end()
	f.tables.Store(f.m, f.base+3*mem.PageSize+7, 77)
	b := make([]byte, 8)
	if _, err := f.file.ReadAt(b, 3*mem.PageSize); err != nil || b[7] != 77 {
		t.Errorf("read %v, %v after a store through the mapping", b, err)
	}
	if _, err := f.file.WriteAt([]byte{88}, 3*mem.PageSize+8); err != nil {
		t.Error(err)
	}
	if v, _ := f.tables.Load(f.m, f.base+3*mem.PageSize+8); v != 88 {
		t.Errorf("mapping loads %d after a write", v)
	}
	private := f.mmap(mem.MapPrivate)
	f.tables.Store(f.m, private+3*mem.PageSize+8, 99)
	if v, _ := f.tables.Load(f.m, f.base+3*mem.PageSize+8); v != 88 {
		t.Errorf("shared mapping loads %d after a private store", v)
	}
	if v, _ := f.tables.Load(f.m, private+3*mem.PageSize+7); v != 77 {
		t.Errorf("private mapping loads %d", v)
	}
}

// TestWriteBack: a dirty page is written back when its age reaches a limit; a store after that makes it dirty again.
func TestWriteBack(t *testing.T) {
	f := newFixture(t, cache.Limits{})
	defer f.end()
	now := time.Unix(1000, 0)
	f.cache.Step(now)
	f.tables.Store(f.m, f.base, 1)
	if f.cache.Step(now.Add(29 * time.Second)); f.storage.writes != 0 {
		t.Error("a page was written after 29 s")
	}
	if next := f.cache.Step(now.Add(30 * time.Second)); f.storage.writes != 1 || next.Sub(now) != 35*time.Second {
		t.Errorf("%d pages were written after 30 s, next at %v", f.storage.writes, next.Sub(now))
	}
	if f.storage.data[0] != 1 {
		t.Error("the store was not written")
	}
	f.tables.Store(f.m, f.base, 2)
	if _, dirty := f.cache.Pages(); dirty != 1 {
		t.Error("a store after write-back left the page clean")
	}
	if err := f.m.Msync(f.base, mem.PageSize, mem.MsSync); err != nil || f.storage.data[0] != 2 {
		t.Errorf("msync: %v, storage has %d", err, f.storage.data[0])
	}
}

// TestShareOfDirty: if more pages are dirty than the background limit, they are written back before they are old.
// Above the second limit, a writer writes pages back itself.
func TestShareOfDirty(t *testing.T) {
	f := newFixture(t, cache.Limits{Background: 4, Dirty: 8})
	defer f.end()
	write := func(page int64) {
		if _, err := f.file.WriteAt([]byte{9}, page*mem.PageSize); err != nil {
			t.Fatal(err)
		}
	}
	for page := range int64(5) {
		write(page)
	}
	if f.cache.Step(time.Unix(1, 0)); f.storage.writes != 5 {
		t.Errorf("%d pages written in the background", f.storage.writes)
	}
	for page := range int64(10) {
		write(page)
	}
	if f.storage.writes != 14 {
		t.Errorf("%d pages written after the writer wrote", f.storage.writes)
	}
}

// TestFailedWriteBack: after a failed write-back, the page stays dirty, and fsync reports the error once.
func TestFailedWriteBack(t *testing.T) {
	f := newFixture(t, cache.Limits{})
	defer f.end()
	f.tables.Store(f.m, f.base, 1)
	f.storage.fail = errors.New("medium error")
	if err := f.file.Sync(0, 1); err == nil {
		t.Error("sync succeeded")
	}
	f.storage.fail = nil
	if err := f.file.Sync(0, 1); err != nil || f.storage.data[0] != 1 {
		t.Errorf("second sync: %v, storage has %d", err, f.storage.data[0])
	}
	f.storage.fail = errors.New("medium error")
	if _, r := f.tables.Load(f.m, f.base+9*mem.PageSize); r != mem.BusError {
		t.Errorf("load of an unreadable page: %v", r)
	}
	f.storage.fail = nil
}

// TestReclaim: clean pages that were not used since the last pass of reclaim are evicted; dirty pages stay.
func TestReclaim(t *testing.T) {
	f := newFixture(t, cache.Limits{})
	defer f.end()
	for page := range uint64(filePages) {
		f.tables.Load(f.m, f.base+page*mem.PageSize)
	}
	f.tables.Store(f.m, f.base+5*mem.PageSize, 55)
	if n := f.cache.Reclaim(1000); n != filePages-1 {
		t.Errorf("%d pages evicted", n)
	}
	if f.memory.Used() != 1 {
		t.Errorf("%d pages remain", f.memory.Used())
	}
	if v, _ := f.tables.Load(f.m, f.base+6*mem.PageSize); v != 6 {
		t.Errorf("an evicted page loads %d", v)
	}
}

// TestTruncate: after truncation, an access to a page behind the end is a bus error, and the rest of the last page
// reads as zeros.
func TestTruncate(t *testing.T) {
	f := newFixture(t, cache.Limits{})
	defer f.end()
	f.tables.Load(f.m, f.base+4*mem.PageSize)
	f.storage.truncate(3*mem.PageSize + 10)
	if err := f.file.Truncate(3*mem.PageSize + 10); err != nil {
		t.Fatal(err)
	}
	if _, r := f.tables.Load(f.m, f.base+4*mem.PageSize); r != mem.BusError {
		t.Errorf("load behind the end: %v", r)
	}
	if v, _ := f.tables.Load(f.m, f.base+3*mem.PageSize+10); v != 0 {
		t.Errorf("the rest of the last page has %d", v)
	}
	if v, _ := f.tables.Load(f.m, f.base+3*mem.PageSize+9); v != 3 {
		t.Errorf("the last byte is %d", v)
	}
}

// TestModel: random reads, writes, mapped accesses, write-back, eviction and truncation agree with a byte slice.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		f := newFixture(t, cache.Limits{Background: 6})
		model := bytes.Clone(f.storage.data)
		r := rand.New(rand.NewPCG(seed, 9))
		for step := range 400 {
			if err := f.step(r, &model, step); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		if err := f.file.Sync(0, 1<<40); err != nil || !bytes.Equal(model, f.storage.data) {
			t.Errorf("seed %d: storage differs after sync (%v)", seed, err)
		}
		f.end()
	}
}

func (f *fixture) step(r *rand.Rand, model *[]byte, step int) error {
	at := r.Int64N(filePages * mem.PageSize)
	value := byte(r.Uint32())
	switch r.IntN(8) {
	case 0, 1:
		piece := bytes.Repeat([]byte{value}, 1+r.IntN(3*mem.PageSize))
		if _, err := f.file.WriteAt(piece, at); err != nil {
			return err
		}
		*model = append(*model, make([]byte, max(0, int(at)+len(piece)-len(*model)))...)
		copy((*model)[at:], piece)
	case 2:
		b := make([]byte, r.IntN(3*mem.PageSize))
		n, err := f.file.ReadAt(b, at)
		if want := (*model)[min(int(at), len(*model)):min(int(at)+len(b), len(*model))]; !bytes.Equal(b[:n], want) || err != nil && err != io.EOF {
			return fmt.Errorf("read of %d at %d: %d bytes, %v", len(b), at, n, err)
		}
	case 3:
		if f.tables.Store(f.m, f.base+uint64(at), value) == mem.Mapped && at < int64(len(*model)) {
			(*model)[at] = value
		} else if at < int64(len(*model)) {
			return fmt.Errorf("store at %d failed", at)
		}
	case 4:
		if v, _ := f.tables.Load(f.m, f.base+uint64(at)); at < int64(len(*model)) && v != (*model)[at] {
			return fmt.Errorf("load at %d: %d, want %d", at, v, (*model)[at])
		}
	case 5:
		f.cache.Step(time.Unix(int64(step), 0))
	case 6:
		f.cache.Reclaim(r.IntN(20))
	case 7:
		if r.IntN(6) == 0 {
			*model = (*model)[:min(int(at), len(*model))]
			f.storage.truncate(int64(len(*model)))
			return f.file.Truncate(int64(len(*model)))
		}
	}
	return nil
}

// TestConcurrent: mappings, reads, write-back and eviction at once lose no store.
func TestConcurrent(t *testing.T) {
	f := newFixture(t, cache.Limits{})
	defer f.end()
	var group sync.WaitGroup
	for g := range uint64(2) {
		group.Go(func() {
			for i := range uint64(2000) {
				addr := f.base + i%filePages*mem.PageSize + g
				f.tables.Store(f.m, addr, byte(i))
				if v, r := f.tables.Load(f.m, addr); v != byte(i) || r != mem.Mapped {
					t.Errorf("load %d, %v, want %d", v, r, byte(i))
					return
				}
			}
		})
	}
	group.Go(func() {
		for range 300 {
			if err := f.file.Sync(0, filePages); err != nil {
				t.Error(err)
			}
			f.cache.Reclaim(filePages)
		}
	})
	group.Wait()
}

// TestHeap: the heap objects that describe pages take less than a sixteenth of the memory of the pages.
func TestHeap(t *testing.T) {
	const pages = 8 * mem.BlockPages
	memory := memtest.NewMemory(10)
	c := cache.New(memory, cache.Limits{})
	f := c.NewFile(&storage{}, pages*mem.PageSize, mem.Label{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range uint64(pages) {
		if err := f.Load(i); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / pages; n > mem.PageSize/16 {
		t.Errorf("%d bytes of heap for a page", n)
	} else {
		t.Logf("%d bytes of heap for a page", n)
	}
	f.Drop()
}
