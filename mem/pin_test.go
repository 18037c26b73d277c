package mem_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"loam/abi/linux"
	"loam/mem"
	"loam/mem/memtest"
)

const pinAt = 0x40000000

// pinned returns a map with pages of anonymous memory at pinAt, each filled with its number plus 1.
func pinned(t testing.TB, pages int, flags uint32) (*mem.Map, *memtest.Memory, *memtest.Tables) {
	t.Helper()
	m, memory, tables := newMap(t, 4)
	mustMap(t, m, mem.Request{Addr: pinAt, Length: uint64(pages) * mem.PageSize, Prot: rw, Flags: flags | mem.MapFixed})
	for i := range pages {
		m.WriteAt(bytes.Repeat([]byte{byte(i + 1)}, mem.PageSize), pinAt+uint64(i)*mem.PageSize)
	}
	return m, memory, tables
}

// mustPin pins n bytes at addr.
func mustPin(t *testing.T, m *mem.Map, addr uint64, n int, store bool) (pieces [][]byte, unpin func(bool)) {
	t.Helper()
	pieces, unpin = m.Pin(addr, n, store)
	if got := len(bytes.Join(pieces, nil)); got != n {
		t.Fatalf("%d bytes are pinned, want %d", got, n)
	}
	return pieces, unpin
}

// fill is a device that stores to pinned memory.
func fill(pieces [][]byte, v byte) {
	for _, p := range pieces {
		copy(p, bytes.Repeat([]byte{v}, len(p)))
	}
}

// wantByte fails unless the process reads v at addr.
func wantByte(t *testing.T, what string, m *mem.Map, tables *memtest.Tables, addr uint64, v byte) {
	t.Helper()
	if got, r := tables.Load(m, addr); got != v || r != mem.Mapped {
		t.Errorf("%s: byte %d, result %v; want %d", what, got, r, v)
	}
}

// Pins are pieces of pages, also of several mappings, and of memory that was never stored to.
func TestPin(t *testing.T) {
	for _, flags := range []uint32{mem.MapPrivate, mem.MapShared} {
		m, memory, tables := pinned(t, 2, flags|mem.MapAnonymous)
		mustMap(t, m, mem.Request{Addr: pinAt + 2*mem.PageSize, Length: mem.PageSize, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
		pieces, unpin := mustPin(t, m, pinAt+512, 3*mem.PageSize-1024, true)
		if len(pieces) != 3 || len(pieces[0]) != mem.PageSize-512 || pieces[0][0] != 1 || pieces[1][0] != 2 || pieces[2][0] != 0 {
			t.Errorf("%d pieces, %d bytes first", len(pieces), len(pieces[0]))
		}
		fill(pieces, 9)
		unpin(false)
		wantByte(t, "before the buffer", m, tables, pinAt+511, 1)
		wantByte(t, "first page", m, tables, pinAt+512, 9)
		wantByte(t, "last page", m, tables, pinAt+3*mem.PageSize-513, 9)
		wantByte(t, "after the buffer", m, tables, pinAt+3*mem.PageSize-512, 0)
		m.Destroy()
		if memory.Used() != 0 {
			t.Errorf("%d pages are left", memory.Used())
		}
	}
}

// Pin fails for memory that the process may not access, and for pages of a file. A failed call pins nothing.
func TestPinFails(t *testing.T) {
	m, memory, _ := pinned(t, 4, mem.MapPrivate)
	m.Mprotect(pinAt+mem.PageSize, mem.PageSize, uint32(mem.Read))
	m.Munmap(pinAt+3*mem.PageSize, mem.PageSize)
	for _, c := range []struct {
		addr  uint64
		n     int
		store bool
		ok    bool
	}{
		{pinAt, 2 * mem.PageSize, false, true}, {pinAt, 2 * mem.PageSize, true, false}, {pinAt, mem.PageSize, true, true},
		{pinAt + 2*mem.PageSize, 2 * mem.PageSize, false, false}, {mem.End - mem.PageSize, 2 * mem.PageSize, false, false},
	} {
		pieces, unpin := m.Pin(c.addr, c.n, c.store)
		if pieces != nil != c.ok {
			t.Errorf("pin of %d bytes at %#x, store %v: %d pieces", c.n, c.addr, c.store, len(pieces))
		}
		if pieces != nil {
			unpin(false)
		}
	}
	file := mem.NewFixed(mem.Label{}, memory.Allocate())
	for _, flags := range []uint32{mem.MapPrivate, mem.MapShared} {
		at := mustMap(t, m, mem.Request{Length: mem.PageSize, Prot: rw, Flags: flags, Object: file})
		if pieces, _ := m.Pin(at, mem.PageSize, false); pieces != nil {
			t.Error("a page of an object is pinned")
		}
	}
	if err := mem.CheckReferences(memory, memory.Used()-1, m); err != nil {
		t.Error(err)
	}
}

// A pinned page that the process unmaps, or that a process leaves behind at its end, is freed when the pin ends.
func TestPinOutlivesMapping(t *testing.T) {
	for name, end := range map[string]func(*mem.Map){
		"unmapped":  func(m *mem.Map) { m.Munmap(pinAt, 2*mem.PageSize) },
		"discarded": func(m *mem.Map) { m.Madvise(pinAt, 2*mem.PageSize, mem.AdviseDontNeed) },
		"end":       (*mem.Map).Destroy,
	} {
		m, memory, _ := pinned(t, 2, mem.MapPrivate)
		pieces, unpin := mustPin(t, m, pinAt, 2*mem.PageSize, true)
		_, again := mustPin(t, m, pinAt, mem.PageSize, false)
		end(m)
		if memory.Used() != 2 {
			t.Errorf("%s: %d pages are in use", name, memory.Used())
		}
		fill(pieces, 7)
		unpin(false)
		if again(false); memory.Used() != 0 {
			t.Errorf("%s: %d pages are in use after the pins", name, memory.Used())
		}
	}
}

// Memory that a failed device may still access is never reused.
func TestPinLost(t *testing.T) {
	m, memory, _ := pinned(t, 1, mem.MapPrivate)
	_, unpin := mustPin(t, m, pinAt, mem.PageSize, true)
	unpin(true)
	if m.Destroy(); memory.Used() != 1 {
		t.Errorf("%d pages are in use", memory.Used())
	}
}

// A store to a pinned page changes the page itself, also after its translation was dropped: the process sees what the device
// stores later.
func TestStoreToPinned(t *testing.T) {
	m, _, tables := pinned(t, 1, mem.MapPrivate)
	pieces, unpin := mustPin(t, m, pinAt, mem.PageSize, true)
	m.Mprotect(pinAt, mem.PageSize, uint32(mem.Read))
	m.Mprotect(pinAt, mem.PageSize, uint32(rw))
	tables.Store(m, pinAt+1, 5)
	pieces[0][0] = 6
	unpin(false)
	wantByte(t, "the program's store", m, tables, pinAt+1, 5)
	wantByte(t, "the device's store", m, tables, pinAt, 6)
}

// During a request, fork gives the child copies of the pinned pages. The parent keeps the pages, whatever both store.
func TestForkOfPinned(t *testing.T) {
	m, memory, tables := pinned(t, 3, mem.MapPrivate)
	pieces, unpin := mustPin(t, m, pinAt, 2*mem.PageSize, true)
	childTables := memtest.NewTables(memory)
	child, err := m.Fork(childTables)
	if err != nil || memory.Used() != 5 {
		t.Fatalf("%v, %d pages", err, memory.Used())
	}
	tables.Store(m, pinAt+1, 10)
	childTables.Store(child, pinAt+2, 11)
	fill(pieces[1:], 12)
	pieces[0][0] = 12
	unpin(false)
	wantByte(t, "the parent's store", m, tables, pinAt+1, 10)
	wantByte(t, "the child's store, in the parent", m, tables, pinAt+2, 1)
	wantByte(t, "the child's store", child, childTables, pinAt+2, 11)
	for i := range uint64(2) {
		wantByte(t, "the device's store, in the parent", m, tables, pinAt+i*mem.PageSize, 12)
		wantByte(t, "the device's store, in the child", child, childTables, pinAt+i*mem.PageSize, byte(i+1))
	}
	if err := mem.CheckReferences(memory, memory.Used(), m, child); err != nil {
		t.Error(err)
	}
	m.Destroy()
	if child.Destroy(); memory.Used() != 0 {
		t.Errorf("%d pages are left", memory.Used())
	}
}

// A device that stores to memory shared since a fork stores to a copy. For a device that only reads, such memory is not pinned.
func TestPinAfterFork(t *testing.T) {
	m, memory, tables := pinned(t, 1, mem.MapPrivate)
	childTables := memtest.NewTables(memory)
	child, err := m.Fork(childTables)
	if err != nil {
		t.Fatal(err)
	}
	if pieces, _ := m.Pin(pinAt, mem.PageSize, false); pieces != nil || memory.Used() != 1 {
		t.Errorf("%d pieces are pinned, %d pages", len(pieces), memory.Used())
	}
	pieces, unpin := mustPin(t, m, pinAt, mem.PageSize, true)
	fill(pieces, 8)
	unpin(false)
	wantByte(t, "parent", m, tables, pinAt, 8)
	wantByte(t, "child", child, childTables, pinAt, 1)
}

// Without memory for the copies, fork fails and leaves nothing behind.
func TestForkOfPinnedFails(t *testing.T) {
	m, memory, _ := pinned(t, 2, mem.MapPrivate)
	_, unpin := mustPin(t, m, pinAt, 2*mem.PageSize, true)
	var taken []mem.Page
	for p := memory.Allocate(); p != 0; p = memory.Allocate() {
		taken = append(taken, p)
	}
	mem.Release(memory, taken[0])
	if _, err := m.Fork(memtest.NewTables(memory)); err != mem.ErrNoPage {
		t.Errorf("error %v", err)
	}
	for _, p := range taken[1:] {
		mem.Release(memory, p)
	}
	unpin(false)
	if err := mem.CheckReferences(memory, memory.Used(), m); err != nil || memory.Used() != 2 {
		t.Errorf("%v, %d pages", err, memory.Used())
	}
}

// Fork copies pinned pages that mremap has moved, unless the device has failed: those pages are never freed.
func TestForkOfMoved(t *testing.T) {
	for _, lost := range []bool{false, true} {
		m, memory, _ := pinned(t, 3, mem.MapPrivate)
		_, unpin := mustPin(t, m, pinAt, mem.PageSize, true)
		if _, err := m.Mremap(pinAt, mem.PageSize, mem.PageSize, linux.MREMAP_MAYMOVE|linux.MREMAP_FIXED, pinAt+1<<30); err != nil {
			t.Fatal(err)
		}
		forked, left := 4, 0
		if lost {
			unpin(true)
			forked, left = 3, 1
		}
		child, err := m.Fork(memtest.NewTables(memory))
		if err != nil || memory.Used() != forked {
			t.Fatalf("lost %v: %v, %d pages after the fork", lost, err, memory.Used())
		}
		child.Destroy()
		if !lost {
			unpin(false)
		}
		if m.Destroy(); memory.Used() != left {
			t.Errorf("lost %v: %d pages are left", lost, memory.Used())
		}
	}
}

// counting is memory that counts the accesses to reference counts.
type counting struct {
	*memtest.Memory
	n int
}

func (c *counting) References(p mem.Page) *atomic.Int32 {
	c.n++
	return c.Memory.References(p)
}

// A fork beside a pin, also of memory that was unmapped or is shared, does not look at all pages of the process.
func TestForkBesidePin(t *testing.T) {
	memory := &counting{Memory: memtest.NewMemory(8)}
	m := mem.New(mem.Config{
		Memory: memory, Tables: memtest.NewTables(memory.Memory), Account: &mem.Account{Total: 1 << 20}, Layout: mem.NewLayout(8<<20, nil),
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: 8 << 20, Memlock: 8 << 20},
	})
	const blocks, each = 16, 64
	for i := range uint64(blocks) {
		mustMap(t, m, mem.Request{Addr: pinAt + i*mem.BlockSize, Length: each * mem.PageSize, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
		m.WriteAt(make([]byte, each*mem.PageSize), pinAt+i*mem.BlockSize)
	}
	at := mustMap(t, m, mem.Request{Length: mem.PageSize, Prot: rw, Flags: mem.MapShared | mem.MapAnonymous})
	for _, addr := range []uint64{pinAt, pinAt + mem.BlockSize, at} {
		_, unpin := mustPin(t, m, addr, mem.PageSize, true)
		defer unpin(false)
	}
	m.Munmap(pinAt+mem.BlockSize, mem.PageSize)
	memory.n = 0
	if _, err := m.Fork(memtest.NewTables(memory.Memory)); err != nil || memory.n > 4*each {
		t.Errorf("%v, %d accesses", err, memory.n)
	}
}

// BenchmarkPin pins and unpins 64 KiB.
func BenchmarkPin(b *testing.B) {
	const n = 16
	m, _, _ := pinned(b, n, mem.MapPrivate)
	for b.Loop() {
		_, unpin := m.Pin(pinAt, n*mem.PageSize, true)
		unpin(false)
	}
}
