package cache_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"loam/mem"
	"loam/mem/cache"
	"loam/mem/memtest"
)

var errFull = errors.New("full")

// memoryFile is a file in memory, and a model of its content for comparison.
type memoryFile struct {
	*testing.T
	*cache.File
	cache   *cache.Cache
	memory  *memtest.Memory
	m       *mem.Map
	tables  *memtest.Tables
	model   []byte
	address uint64
	charged int64
	bound   int64
}

const memoryPages = 16

func newMemoryFile(t *testing.T, base int) *memoryFile {
	f := &memoryFile{T: t, memory: memtest.NewMemory(2), bound: 1 << 20}
	f.cache = cache.New(f.memory, cache.Limits{})
	content := make([]byte, base)
	for i := range content {
		content[i] = byte(i*7 + i>>mem.PageShift)
	}
	f.model = bytes.Clone(content)
	f.File = f.cache.NewMemory(content, func(n int64) error {
		if n > 0 && f.charged+n > f.bound {
			return errFull
		}
		f.charged += n
		return nil
	})
	f.tables = memtest.NewTables(f.memory)
	f.m = mem.New(mem.Config{
		Memory: f.memory, Tables: f.tables, Account: &mem.Account{Total: 1 << 20}, Layout: mem.NewLayout(8<<20, nil),
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite},
	})
	var err error
	f.address, err = f.m.Mmap(mem.Request{
		Length: memoryPages * mem.PageSize, Prot: mem.Read | mem.Write, Flags: mem.MapShared, Object: f.File,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *memoryFile) end() {
	f.m.Destroy()
	f.Drop()
	if n := f.memory.Used(); n != 0 {
		f.Errorf("%d pages are left", n)
	}
	if f.charged != 0 {
		f.Errorf("%d pages are charged", f.charged)
	}
	if pages, dirty := f.cache.Pages(); pages != 0 || dirty != 0 {
		f.Errorf("%d pages, %d dirty are counted", pages, dirty)
	}
}

// step does one random operation on the file and on the model.
func (f *memoryFile) step(r *rand.Rand) {
	const size = memoryPages * mem.PageSize
	at := r.IntN(size)
	switch r.IntN(7) {
	case 0, 1:
		b := make([]byte, 1+r.IntN(min(3*mem.PageSize, size-at)))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if n, err := f.WriteAt(b, int64(at)); n != len(b) || err != nil {
			f.Fatalf("write %d at %d: %d, %v", len(b), at, n, err)
		}
		if end := at + len(b); end > len(f.model) {
			f.model = append(f.model, make([]byte, end-len(f.model))...)
		}
		copy(f.model[at:], b)
	case 2:
		if err := f.Truncate(int64(at)); err != nil {
			f.Fatalf("truncate %d: %v", at, err)
		}
		f.model = append(f.model[:min(len(f.model), at)], make([]byte, max(0, at-len(f.model)))...)
	case 3:
		from := r.IntN(memoryPages)
		to := from + r.IntN(4)
		if err := f.Punch(uint64(from), uint64(to)); err != nil {
			f.Fatalf("punch %d to %d: %v", from, to, err)
		}
		if from*mem.PageSize < len(f.model) {
			clear(f.model[from*mem.PageSize : min(len(f.model), to*mem.PageSize)])
		}
	case 4:
		f.cache.Reclaim(r.IntN(4))
	case 5:
		if at >= len(f.model) {
			return
		}
		v := byte(r.Uint32())
		if result := f.tables.Store(f.m, f.address+uint64(at), v); result != mem.Mapped {
			f.Fatalf("store at %d: %v", at, result)
		}
		f.model[at] = v
	case 6:
		if at >= len(f.model) {
			return
		}
		if v, result := f.tables.Load(f.m, f.address+uint64(at)); result != mem.Mapped || v != f.model[at] {
			f.Fatalf("load at %d: %d, %v; the model has %d", at, v, result, f.model[at])
		}
	}
}

// compare checks the whole content against the model, by reads.
func (f *memoryFile) compare() {
	if f.Size() != int64(len(f.model)) {
		f.Fatalf("%d bytes; the model has %d", f.Size(), len(f.model))
	}
	b := make([]byte, len(f.model)+1)
	if n, err := f.ReadAt(b, 0); n != len(f.model) || err != io.EOF || !bytes.Equal(b[:n], f.model) {
		f.Fatalf("%d bytes, %v; the content is another", n, err)
	}
}

// A file in memory has the same content as a simple model after random operations, both by read and through a
// mapping.
func TestMemoryModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := newMemoryFile(t, r.IntN(memoryPages*mem.PageSize))
		for range 60 {
			f.step(r)
			f.compare()
		}
		f.end()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A read allocates no pages. A page that is an unchanged copy of the base can be evicted; a page to which a program
// has stored cannot.
func TestMemoryBase(t *testing.T) {
	f := newMemoryFile(t, 4*mem.PageSize)
	defer f.end()
	f.compare()
	if n := f.memory.Used(); n != 0 {
		t.Errorf("a read made %d pages", n)
	}
	f.tables.Load(f.m, f.address)
	f.tables.Store(f.m, f.address+mem.PageSize, 9)
	f.model[mem.PageSize] = 9
	if f.charged != 1 {
		t.Errorf("%d pages are charged, want that of the store", f.charged)
	}
	if n := f.cache.Reclaim(10); n != 1 {
		t.Errorf("%d pages are evicted, want that of the load", n)
	}
	f.compare()
}

// If charge refuses a page, write returns the error, and a store through a mapping raises SIGBUS.
func TestMemoryFull(t *testing.T) {
	f := newMemoryFile(t, 2*mem.PageSize)
	defer f.end()
	f.bound = 1
	if n, err := f.WriteAt(make([]byte, 2*mem.PageSize), 2*mem.PageSize); n != mem.PageSize || err != errFull {
		t.Errorf("a write of two pages: %d, %v", n, err)
	}
	if result := f.tables.Store(f.m, f.address, 1); result != mem.BusError {
		t.Errorf("a store to a page of the base: %v", result)
	}
	if _, result := f.tables.Load(f.m, f.address); result != mem.Mapped {
		t.Errorf("a load of it: %v", result)
	}
}

// Next finds data and holes as lseek(2) describes.
func TestMemoryNext(t *testing.T) {
	f := newMemoryFile(t, mem.PageSize+5)
	defer f.end()
	f.WriteAt([]byte("x"), 5*mem.PageSize)
	f.model = append(f.model, make([]byte, 4*mem.PageSize-4)...)
	f.model[5*mem.PageSize] = 'x'
	for _, c := range []struct {
		offset int64
		data   bool
		want   int64
		ok     bool
	}{
		{0, true, 0, true}, {7, false, 2 * mem.PageSize, true}, {2*mem.PageSize + 1, true, 5 * mem.PageSize, true},
		{2*mem.PageSize + 1, false, 2*mem.PageSize + 1, true}, {5 * mem.PageSize, false, 6 * mem.PageSize, false},
	} {
		if at, ok := f.Next(c.offset, c.data); ok != c.ok || ok && at != c.want {
			t.Errorf("from %d, data %v: %d, %v; want %d, %v", c.offset, c.data, at, ok, c.want, c.ok)
		}
	}
	f.compare()
}
