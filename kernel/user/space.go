package user

import (
	"sync"
	"sync/atomic"

	"loam/arch/amd64"
	"loam/kernel"
	"loam/kernel/space"
)

// Space holds the page tables of one process: a lower half of its own, and the upper half that all spaces share with
// the kernel. The page tables are only a cache of the process's mappings, so a translation may be dropped at any time.
//
// The caller owns the mapped pages: Space neither counts nor frees them. It frees only page tables.
type Space struct {
	mu     sync.RWMutex // read-locked while memory is copied through the window, write-locked while page tables change
	tables amd64.Tables
	pages  *Pages
	active *uint64      // bit set of the CPUs that may have translations; it is in the page at physical address page
	page   uint64       // physical address of the page that contains active
	big    bool         // big pages were installed
	size   atomic.Int64 // number of page tables below the root
	unseen bool         // a table was added to gone since the last flush
	gone   []uint64     // page tables that were removed from the tree, and that a CPU may still have cached
}

// NewSpace returns a space with an empty lower half. The caller releases it by Close. It returns ErrProcessor if
// the CPU cannot run ring 3, and ErrMemory if no memory is left.
func NewSpace() (*Space, error) {
	if !kernel.CanRunUser() {
		return nil, ErrProcessor
	}
	pa, ok := shared.takeTable()
	if !ok {
		return nil, ErrMemory
	}
	var second uint64
	if kernel.Isolated() {
		if second, ok = shared.takeTable(); !ok {
			shared.giveTable(pa)
			return nil, ErrMemory
		}
	}
	root, errno := kernelCall(kernel.CallSpace, uintptr(second), 0)
	if errno != 0 {
		shared.giveTable(pa)
		if second != 0 {
			shared.giveTable(second)
		}
		return nil, ErrMemory
	}
	shared.adoptTable()
	return newSpace(&shared, uint64(root), second, pa), nil
}

// newSpace returns a space that uses these pages: root for its root table, second for that of ring 3 unless second is 0, and
// pa, which is zeroed, for the set active.
func newSpace(p *Pages, root, second, pa uint64) *Space {
	return &Space{
		tables: amd64.Tables{Root: root, Second: second, Window: p.window},
		pages:  p,
		active: p.word(pa), page: pa,
	}
}

// Close releases the page tables. No context may use the space any more.
func (s *Space) Close() {
	s.Apply([]Change{{Action: Unmap, End: Limit}})
	kernelCall(kernel.CallRetire, uintptr(s.tables.Root), uintptr(atomic.LoadUint64(s.active)))
	s.freeGone()
	s.pages.giveTable(s.tables.Root)
	if s.tables.Second != 0 {
		s.pages.giveTable(s.tables.Second)
	}
	s.pages.giveTable(s.page)
}

// Action is the kind of a Change.
type Action uint8

const (
	// Unmap removes all translations of a range. A big page is removed as a whole.
	Unmap Action = iota
	// Restrict removes the rights that are not in Rights from the translations of a range.
	Restrict
	// Install maps a page or a big page, and replaces an existing mapping.
	Install
	// Offer maps a page where nothing is mapped, and otherwise does nothing.
	Offer
)

// Change is a change of the page tables for the addresses from Start to End. Both are page boundaries, and not above Limit.
type Change struct {
	Action     Action
	Rights     space.Rights // for Restrict, Install and Offer
	Start, End uint64
	Physical   uint64 // for Install and Offer: physical address of the page at Start
	Reserve    bool   // for Install: a page table may come from the kernel's reserve
}

// Apply makes changes in order. When it returns, no CPU and no copy uses a removed translation or a removed right, so
// the caller may free the pages. On ErrMemory or ErrAddress, the changes after the failing one are not made.
func (s *Space) Apply(changes []Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var stale extent
	var err error
	for i := range changes {
		if err = s.change(&changes[i], &stale); err != nil {
			break
		}
	}
	s.flush(&stale)
	return err
}

// extent is the range of addresses whose translations have to be flushed.
type extent struct{ start, end uint64 }

// add enlarges the range so that it contains the addresses from start to end.
func (e *extent) add(start, end uint64) {
	if e.end == 0 {
		*e = extent{start, end}
		return
	}
	e.start, e.end = min(e.start, start), max(e.end, end)
}

// change makes one change of the page tables. It adds the addresses whose translations
// must be flushed to the range stale.
func (s *Space) change(c *Change, stale *extent) error {
	if c.Start > c.End || c.End > Limit || (c.Start|c.End|c.Physical)%amd64.PageSize != 0 {
		return ErrAddress
	}
	switch c.Action {
	case Unmap:
		start, end := s.whole(c.Start), c.End
		if last := s.whole(end); last < end {
			end = last + amd64.BigPageSize
		}
		if s.tables.Remove(start, end, s.dropTable) {
			stale.add(start, end)
		}
		return nil
	case Restrict:
		s.restrict(c, stale)
		return nil
	case Offer:
		if entry, _ := s.tables.Lookup(c.Start); entry != 0 {
			return nil
		}
	}
	return s.install(c, stale)
}

// dropTable records a page table that was removed from the tree of tables. flush frees the table later.
func (s *Space) dropTable(pa uint64) { s.gone, s.unseen = append(s.gone, pa), true }

// restrict removes rights from the pages of a range. A big page that is only partly in the range is unmapped.
func (s *Space) restrict(c *Change, stale *extent) {
	for _, va := range [...]uint64{c.Start, c.End} {
		if start := s.whole(va); start < va {
			s.tables.Remove(start, start+amd64.BigPageSize, s.dropTable)
			stale.add(start, start+amd64.BigPageSize)
		}
	}
	allowed := flagsOf(c.Rights)
	s.tables.Each(c.Start, c.End, func(va, entry, size uint64) uint64 {
		limited := entry&^(amd64.PageWrite&^allowed) | allowed&amd64.PageNoExecute
		if c.Rights == 0 {
			limited = 0
		}
		if limited != entry {
			stale.add(va, va+size)
		}
		return limited
	})
}

// whole returns the start of the big page that is mapped at va, or va if there is none.
func (s *Space) whole(va uint64) uint64 {
	if s.big && va%amd64.BigPageSize != 0 {
		if _, size := s.tables.Lookup(va); size > amd64.PageSize {
			return va &^ (size - 1)
		}
	}
	return va
}

// install maps one page or big page. A big page replaces a table of small pages, and a small page replaces a big page. A big
// page that is mapped already stays: several threads may have faulted in it. Before the size changes, install flushes the old
// translations: a CPU must not have both sizes at once (Intel SDM, volume 3A, 4.10.2; CVE-2018-12207).
func (s *Space) install(c *Change, stale *extent) error {
	size := c.End - c.Start
	if size != amd64.PageSize && size != amd64.BigPageSize || (c.Start|c.Physical)%size != 0 {
		return ErrAddress
	}
	entry, old := s.tables.Lookup(c.Start)
	if size == amd64.BigPageSize {
		const rights = amd64.PageWrite | amd64.PageNoExecute
		if old == size && amd64.Physical(entry) == c.Physical && entry&rights == flagsOf(c.Rights) {
			return nil
		}
		s.big = true
	}
	if size == amd64.BigPageSize || old > size {
		if s.tables.Remove(c.Start, c.End, s.dropTable) {
			stale.add(c.Start&^(amd64.BigPageSize-1), c.Start&^(amd64.BigPageSize-1)+amd64.BigPageSize)
		}
		entry = 0
	}
	if s.big && entry == 0 {
		s.flush(stale)
	}
	take := s.takeTable
	if c.Reserve {
		take = s.takeTableAnyway
	}
	if !s.tables.Map(c.Start, c.Physical, size, flagsOf(c.Rights)|amd64.PageUser, take) {
		return ErrMemory
	}
	if entry != 0 {
		stale.add(c.Start, c.End)
	}
	return nil
}

// Size returns the number of page tables below the root. Any goroutine may call it.
func (s *Space) Size() int64 { return s.size.Load() }

// takeTable returns a zeroed page for a table below the root.
func (s *Space) takeTable() (uint64, bool) { return s.counted(s.pages.takeTable()) }

// takeTableAnyway is takeTable, but takes the page from the kernel's reserve if no other is free.
func (s *Space) takeTableAnyway() (uint64, bool) { return s.counted(s.pages.takeTableAnyway()) }

func (s *Space) counted(pa uint64, ok bool) (uint64, bool) {
	if ok {
		s.size.Add(1)
	}
	return pa, ok
}

// flagsOf translates rights into flags of a page. Every mapped page is readable.
func flagsOf(rights space.Rights) uint64 {
	flags := uint64(amd64.PageNoExecute)
	if rights&space.Execute != 0 {
		flags = 0
	}
	if rights&space.Write != 0 {
		flags |= amd64.PageWrite
	}
	return flags
}

// flush flushes stale translations on the CPUs that use the space, and then frees removed tables. Most often only the
// calling CPU uses the space, so no other CPU is interrupted.
//
// An idle CPU does not use a stale translation, but it may read a removed table speculatively. Such tables are kept until a
// later flush finds that the CPU has flushed its translations. Only if there are many of them, the CPU is interrupted, and flush
// waits for it. Afterwards, stale is empty.
func (s *Space) flush(stale *extent) {
	const (
		few  = 32 // number of pages; for more, a flush of all translations is faster
		many = 16 // number of tables
	)
	if stale.end == 0 && !s.unseen {
		return
	}
	start, count := stale.start, (stale.end-stale.start)/amd64.PageSize
	if count > few || s.unseen {
		count = 0
	}
	*stale, s.unseen = extent{}, false
	// Adding 0 is a full barrier: the changes of the page tables are visible before the set is read. A CPU that is not yet in the
	// set adds itself before it reads the tables.
	if atomic.AddUint64(s.active, 0) != 0 {
		if others := forget(s.active, s.tables.Root, start, count); others != 0 && !flushed(others, len(s.gone) > many) {
			return
		}
	}
	s.freeGone()
}

// freeGone frees the removed tables, which no CPU has cached.
func (s *Space) freeGone() {
	s.size.Add(-int64(len(s.gone)))
	for _, pa := range s.gone {
		s.pages.giveTable(pa)
	}
	s.gone = s.gone[:0]
}

// flushed makes a set of CPUs drop all translations, and waits for those that are not idle; with idleToo, for all. It reports
// whether all have done so.
func flushed(cpus uint64, idleToo bool) bool {
	wait := uintptr(0)
	if idleToo {
		wait = 1
	}
	left, _ := kernelCall(kernel.CallFlush, uintptr(cpus), wait)
	return left == 0
}

// Barrier makes each CPU that may run a thread of the space execute a full memory barrier and an instruction that
// serialises (membarrier(2)).
func (s *Space) Barrier() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if others := forget(s.active, s.tables.Root, 0, 0); others != 0 {
		flushed(others, false)
	}
}

// CPUs returns how many CPUs may have translations of this space.
func (s *Space) CPUs() int {
	n := 0
	for set := atomic.LoadUint64(s.active); set != 0; set &= set - 1 {
		n++
	}
	return n
}
