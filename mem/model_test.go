package mem_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"loam/abi/linux"
	"loam/internal/race"
	"loam/mem"
	"loam/mem/memtest"
)

// The model of a process is a Go map from page numbers to cells. Private memory is copied cell by cell at a fork; a
// cell of shared memory is referenced by several processes. Sequences of operations run on the model and on maps, and
// every load must agree.

const (
	windowStart = 1 << 40
	windowPages = 3 * mem.BlockPages // small, so that operations overlap often
)

type cell struct{ value byte }

type modelPage struct {
	cell       *cell
	prot       mem.Prot
	shared     sharedCells // cells of the shared object; nil: private memory
	index      int         // index in shared; an access beyond its end is a bus error
	wipe, skip bool
}

// sharedCells are the pages of a shared object.
type sharedCells []*cell

func newShared(count uint64) (all sharedCells) {
	for range count {
		all = append(all, &cell{})
	}
	return all
}

// beyond reports whether the page is beyond its object's end.
func (v modelPage) beyond() bool { return v.shared != nil && v.index >= len(v.shared) }

// at returns a page like v, n pages further.
func (v modelPage) at(n int) modelPage {
	v.index += n
	v.cell = &cell{}
	if v.shared != nil && !v.beyond() {
		v.cell = v.shared[v.index]
	}
	return v
}

type process struct {
	m      *mem.Map
	tables *memtest.Tables
	pages  map[uint64]modelPage // by page number within the tested window of addresses
}

// world runs a sequence of operations on the model and on maps.
type world struct {
	testing.TB
	memory    *memtest.Memory
	account   *mem.Account
	processes []*process
	input     []byte
	blocks    mem.Blocks
	log       []string
}

func newWorld(t testing.TB, input []byte) *world {
	w := &world{TB: t, memory: memtest.NewMemory(24), account: &mem.Account{Total: 1 << 20}, input: input}
	w.memory.Poisoned = !race.Enabled
	if w.pick(2) == 0 {
		w.blocks.SetPolicy(mem.Everyone)
	}
	first := &process{tables: memtest.NewTables(w.memory), pages: map[uint64]modelPage{}}
	first.m = mem.New(mem.Config{
		Memory: w.memory, Tables: first.tables, Account: w.account, Blocks: &w.blocks,
		Layout: mem.NewLayout(8<<20, nil),
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: 8 << 20, Memlock: mem.Infinite},
	})
	w.processes = []*process{first}
	return w
}

// pick takes a number below n from the input; at its end it returns 0.
func (w *world) pick(n int) int {
	if len(w.input) < 2 {
		w.input = nil
		return 0
	}
	v := int(w.input[0]) | int(w.input[1])<<8
	w.input = w.input[2:]
	return v % n
}

// span returns a range of the window: often whole blocks, often few pages.
func (w *world) span() (first, count uint64) {
	if w.pick(4) == 0 {
		first = uint64(w.pick(3)) * mem.BlockPages
		return first, mem.BlockPages
	}
	first = uint64(w.pick(windowPages))
	count = 1 + uint64(w.pick(1<<w.pick(10)))
	return first, min(count, windowPages-first)
}

func address(page uint64) uint64 { return windowStart + page*mem.PageSize }

func (w *world) run() {
	for len(w.input) > 0 {
		p := w.processes[w.pick(len(w.processes))]
		w.step(p)
	}
	for _, p := range w.processes {
		w.compare(p)
	}
	w.counts()
	for _, p := range w.processes {
		p.m.Destroy()
	}
	if n := w.memory.Used(); n != 0 {
		w.fail("%d pages are left after all processes have ended", n)
	}
	if n := w.account.Committed(); n != 0 {
		w.fail("%d pages are charged after all processes have ended", n)
	}
	if use := w.blocks.Use(); use.Now != 0 {
		w.fail("%d blocks are left after all processes have ended", use.Now)
	}
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Fatalf(format+"\nafter %v", append(args, w.log)...)
}

// step does one operation on the map and on the model.
func (w *world) step(p *process) {
	first, count := w.span()
	op := w.pick(18)
	w.log = append(w.log, fmt.Sprintf("%d:%d+%d", op, first, count))
	if len(w.log) > 12 {
		w.log = w.log[1:]
	}
	switch op {
	case 0, 1, 2:
		w.mmap(p, first, count)
	case 3:
		w.must(p.m.Munmap(address(first), count*mem.PageSize))
		p.each(first, count, func(n uint64, _ modelPage) { delete(p.pages, n) })
	case 4:
		w.mprotect(p, first, count)
	case 5:
		w.mremap(p, first, count)
	case 6:
		w.madvise(p, first, count)
	case 7:
		w.fork(p)
	case 8:
		w.exit(p)
	case 9:
		w.useBlocks(p, first, count)
	case 10, 11:
		w.mapBlocks(p)
	default:
		w.touch(p, first, count)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.fail("%v", err)
	}
}

func (p *process) each(first, count uint64, f func(uint64, modelPage)) {
	for n := first; n < first+count; n++ {
		if v, ok := p.pages[n]; ok {
			f(n, v)
		}
	}
}

func (p *process) covered(first, count uint64) bool {
	n := uint64(0)
	p.each(first, count, func(uint64, modelPage) { n++ })
	return n == count
}

func (w *world) mmap(p *process, first, count uint64) {
	q := mem.Request{Addr: address(first), Length: count * mem.PageSize, Prot: mem.Prot(w.pick(8)), Flags: mem.MapFixed | mem.MapPrivate}
	if w.pick(4) == 0 {
		q.Flags = mem.MapFixed | mem.MapShared
	}
	if w.pick(8) == 0 {
		q.Flags |= mem.MapPopulate
	}
	_, err := p.m.Mmap(q)
	w.must(err)
	like := modelPage{prot: q.Prot}
	if q.Flags&mem.MapShared != 0 {
		like.shared = newShared(count)
	}
	for n := range count {
		p.pages[first+n] = like.at(int(n))
	}
}

// mapBlocks maps private memory that may have blocks, and stores to it.
func (w *world) mapBlocks(p *process) {
	first := uint64(w.pick(3)) * mem.BlockPages
	count := min(uint64(1+w.pick(2))*mem.BlockPages, windowPages-first)
	_, err := p.m.Mmap(mem.Request{
		Addr: address(first), Length: count * mem.PageSize, Prot: mem.Read | mem.Write, Flags: mem.MapFixed | mem.MapPrivate,
	})
	w.must(err)
	w.must(p.m.Madvise(address(first), count*mem.PageSize, mem.AdviseHugePage))
	for n := range count {
		p.pages[first+n] = modelPage{prot: mem.Read | mem.Write}.at(0)
	}
	for range 1 + w.pick(6) {
		n := first + uint64(w.pick(int(count)))
		w.load(p, n)
		w.store(p, n, byte(w.pick(256)))
	}
	if w.pick(2) == 0 { // the block becomes single pages, and a block again
		n := first + uint64(w.pick(int(count)))
		w.must(p.m.Madvise(address(n), mem.PageSize, mem.AdviseDontNeed))
		p.pages[n] = p.pages[n].advised(mem.AdviseDontNeed)
		_ = p.m.Madvise(address(first), count*mem.PageSize, mem.AdviseCollapse)
	}
}

func (w *world) mprotect(p *process, first, count uint64) {
	prot := mem.Prot(w.pick(8))
	err := p.m.Mprotect(address(first), count*mem.PageSize, uint32(prot))
	if covered := p.covered(first, count); covered != (err == nil) {
		w.fail("mprotect of covered %v: %v", covered, err)
	}
	for n := first; n < first+count; n++ {
		v, ok := p.pages[n]
		if !ok {
			break // mprotect changes only the regions before the first hole
		}
		v.prot = prot
		p.pages[n] = v
	}
}

func (w *world) madvise(p *process, first, count uint64) {
	advice := []int{mem.AdviseDontNeed, mem.AdviseFree, mem.AdviseDontFork, mem.AdviseDoFork,
		mem.AdviseWipeOnFork, mem.AdviseKeepOnFork, mem.AdviseRemove, mem.AdviseHugePage}[w.pick(8)]
	for n := first; n < first+count; n++ { // page by page, because the model has no partial effects
		v, mapped := p.pages[n]
		err := p.m.Madvise(address(n), mem.PageSize, advice)
		switch {
		case !mapped && err != linux.ENOMEM:
			w.fail("madvise of a hole: %v", err)
		case err == nil:
			p.pages[n] = v.advised(advice)
		}
	}
}

// useBlocks changes which memory may have blocks, or makes blocks. The content of memory does not change.
func (w *world) useBlocks(p *process, first, count uint64) {
	switch advice := []int{mem.AdviseHugePage, mem.AdviseNoHugePage, mem.AdviseCollapse, mem.AdviseCollapse, 0}[w.pick(5)]; {
	case advice == mem.AdviseCollapse && w.pick(2) == 0:
		first, count = first&^(mem.BlockPages-1), mem.BlockPages
		fallthrough
	case advice != 0:
		err := p.m.Madvise(address(first), count*mem.PageSize, advice)
		if advice != mem.AdviseCollapse && p.covered(first, count) != (err == nil) {
			w.fail("advice %d: %v", advice, err)
		}
	case w.pick(4) > 0:
		w.blocks.SetPolicy(mem.Policy(w.pick(3)))
	default:
		p.m.SetSmallPages(w.pick(4) == 0)
	}
}

func (v modelPage) advised(advice int) modelPage {
	switch advice {
	case mem.AdviseDontNeed, mem.AdviseFree:
		if v.shared == nil {
			v.cell = &cell{}
		}
	case mem.AdviseRemove:
		v.cell.value = 0
	case mem.AdviseDontFork, mem.AdviseDoFork:
		v.skip = advice == mem.AdviseDontFork
	case mem.AdviseWipeOnFork, mem.AdviseKeepOnFork:
		v.wipe = advice == mem.AdviseWipeOnFork
	}
	return v
}

// mremap moves or resizes within the window, to a fixed address.
func (w *world) mremap(p *process, first, count uint64) {
	to, length := w.span()
	flags := uint32(mem.MremapMayMove | mem.MremapFixed)
	if w.pick(4) == 0 {
		flags |= mem.MremapDontUnmap
		length = min(count, windowPages-to)
		count = length
	}
	got, err := p.m.Mremap(address(first), count*mem.PageSize, length*mem.PageSize, flags, address(to))
	if err != nil {
		return // errors of such calls are compared with Linux by linux_test.go
	}
	if got != address(to) {
		w.fail("mremap to %x returns %x", address(to), got)
	}
	old := map[uint64]modelPage{}
	p.each(first, count, func(n uint64, v modelPage) { old[n-first] = v; delete(p.pages, n) })
	like := old[0]
	for n := range length {
		v, ok := old[n]
		if !ok {
			v = like.at(int(n))
		}
		p.pages[to+n] = v
	}
	if flags&mem.MremapDontUnmap != 0 {
		for n := range count {
			v := old[n]
			if v.shared == nil {
				v.cell = &cell{}
			}
			p.pages[first+n] = v
		}
	}
}

func (w *world) fork(p *process) {
	if len(w.processes) >= 5 {
		return
	}
	child := &process{tables: memtest.NewTables(w.memory), pages: map[uint64]modelPage{}}
	m, err := p.m.Fork(child.tables)
	w.must(err)
	child.m = m
	for n, v := range p.pages {
		if v.skip {
			continue
		}
		if v.shared == nil {
			v.cell = &cell{v.cell.value}
		}
		if v.wipe {
			v.cell = &cell{}
		}
		child.pages[n] = v
	}
	w.processes = append(w.processes, child)
}

func (w *world) exit(p *process) {
	if len(w.processes) == 1 {
		return
	}
	w.compare(p)
	p.m.Destroy()
	for i, other := range w.processes {
		if other == p {
			w.processes = append(w.processes[:i:i], w.processes[i+1:]...)
		}
	}
	w.counts()
}

// touch stores to and loads from a few pages of a range.
func (w *world) touch(p *process, first, count uint64) {
	step := 1 + uint64(w.pick(16))
	store := w.pick(2) == 0
	for n := first; n < first+count; n += step {
		if value := byte(w.pick(256)); store {
			w.store(p, n, value)
		}
		w.load(p, n)
	}
}

func (w *world) store(p *process, n uint64, value byte) {
	v, ok := p.pages[n]
	want := mem.Mapped
	switch {
	case !ok:
		want = mem.MapError
	case v.prot&mem.Write == 0:
		want = mem.AccessError
	case v.beyond():
		want = mem.BusError
	}
	if got := p.tables.Store(p.m, address(n)+123, value); got != want {
		w.fail("store to page %d: %v, want %v", n, got, want)
	}
	if want == mem.Mapped {
		v.cell.value = value
	}
}

func (w *world) load(p *process, n uint64) {
	v, ok := p.pages[n]
	want := mem.Mapped
	switch {
	case !ok:
		want = mem.MapError
	case v.prot == 0:
		want = mem.AccessError
	case v.beyond():
		want = mem.BusError
	}
	value, got := p.tables.Load(p.m, address(n)+123)
	if got != want {
		w.fail("load from page %d: %v, want %v", n, got, want)
	}
	if want == mem.Mapped && value != v.cell.value {
		w.fail("page %d has %d, want %d", n, value, v.cell.value)
	}
}

// compare loads every page of a process.
func (w *world) compare(p *process) {
	for n := range uint64(windowPages) {
		w.load(p, n)
	}
}

func (w *world) counts() {
	var maps []*mem.Map
	for _, p := range w.processes {
		maps = append(maps, p.m)
	}
	w.must(mem.CheckReferences(w.memory, w.memory.Used(), maps...))
}

// TestModel: after any sequence of operations on the memory of processes, each page has the same content and the same
// number of owners as in a simple model.
func TestModel(t *testing.T) {
	runs := 300
	if race.Enabled {
		runs = 20
	}
	for seed := range uint64(runs) {
		input := make([]byte, 4000)
		r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
		_, _ = r.Read(input)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newWorld(t, input).run() })
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte("a map, a touch, a fork"))
	r := rand.NewChaCha8([32]byte{1})
	input := make([]byte, 600)
	for range 3 {
		_, _ = r.Read(input)
		f.Add(append([]byte{}, input...))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		newWorld(t, input[:min(len(input), 4000)]).run()
	})
}
