package mem

import "loam/abi/linux"

// Result is the outcome of a fault.
type Result uint8

// Values of Result.
const (
	Mapped      Result = iota // the page is in the page tables: repeat the access
	MapError                  // SIGSEGV, SEGV_MAPERR: no region contains the address
	AccessError               // SIGSEGV, SEGV_ACCERR: the region does not permit the access
	BusError                  // SIGBUS, BUS_ADRERR: beyond the end of a file, or the page of the file could not be read
	NoMemory                  // no page is free: the caller frees memory and repeats the fault
)

// Fault is the outcome of a fault. After Mapped, it has the page and the permissions with which the page is mapped.
type Fault struct {
	Result Result
	Page   Page
	Prot   Prot
	Block  bool // the whole block that contains the page is mapped with these permissions
}

// next returns the address after the memory at addr that the fault has mapped.
func (f Fault) next(addr uint64) uint64 {
	if f.Block {
		return blockDown(addr) + BlockSize
	}
	return addr + PageSize
}

// Fault resolves a page fault of a thread at addr. It may block while an object loads the page; no lock is held during
// that time.
func (m *Map) Fault(addr uint64, access Access) Fault { return m.resolve(addr, demand{access: access}) }

func (m *Map) resolve(addr uint64, d demand) Fault {
	for {
		f, wait := m.fault(addr, d)
		if wait.object == nil {
			return f
		}
		err := wait.object.Load(wait.index)
		m.waited(wait)
		if err != nil {
			return Fault{Result: BusError}
		}
	}
}

// wait describes a page that its object must load before a fault can continue. While the object loads, the map is
// attached to it once more, so that the object survives an munmap by another thread.
type wait struct {
	object Object
	index  uint64
}

// waited ends the additional attachment.
func (m *Map) waited(w wait) {
	m.lock()
	defer m.unlock()
	m.batch.detached = append(m.batch.detached, w.object)
}

func (m *Map) fault(addr uint64, d demand) (Fault, wait) {
	m.lock()
	defer m.unlock()
	r, result := m.faulting(addr)
	if r == nil {
		return Fault{Result: result}, wait{}
	}
	if !d.allowed(r) {
		return Fault{Result: AccessError}, wait{}
	}
	f, w := m.supply(r, down(addr), d.access == Store)
	if w.object != nil {
		w.object.Attach(m)
	}
	if !m.apply() {
		f = Fault{Result: NoMemory}
	}
	return f, w
}

// faulting returns the region that contains addr. If a stack can grow down to addr, faulting extends it.
func (m *Map) faulting(addr uint64) (*Region, Result) {
	r := m.regions.find(addr)
	switch {
	case r == nil || addr >= End:
		return nil, MapError
	case r.start <= addr:
		return r, Mapped
	case !r.has(GrowsDown) || !m.grow(r, down(addr)):
		return nil, MapError
	}
	return m.regions.at(addr), Mapped
}

// grow extends a stack down to the address start, if its limits and the guard gap allow it.
func (m *Map) grow(r *Region, start uint64) bool {
	more := r.start - start
	if start < m.layout.Floor || r.end-start > m.limits.Stack || m.room(more, 0, r.prot, r.flags) != nil {
		return false
	}
	if r.has(Locked) && m.mayLock(more, linux.EAGAIN) != nil {
		return false
	}
	if p := m.regions.before(r.start); p != nil && !p.has(GrowsDown) && p.prot != 0 && hole(p.end, start) < guardGap {
		return false
	}
	if p := m.regions.before(r.start); p != nil && p.end > start {
		return false
	}
	if r.has(Charged) && m.account.charge(int64(more>>PageShift)) != nil {
		return false
	}
	m.take(r)
	r.start, r.offset = start, r.offset-more>>PageShift
	m.add(r)
	return true
}

// supply makes one page present and maps it. If the page must be loaded first, it returns a wait.
func (m *Map) supply(r *Region, addr uint64, store bool) (Fault, wait) {
	if !r.private() {
		return m.shared(r, addr, store)
	}
	number := addr >> PageShift
	p, exclusive := m.private.get(number)
	switch {
	case p == m.memory.Zero() && store && m.mayHaveBlock(r, addr) && m.block(r, addr):
		p, _ = m.private.get(number)
		return m.present(r, addr, p, true), wait{}
	case p != 0 && store && !(exclusive && m.owned(p)):
		return m.copied(r, addr, p), wait{}
	case p != 0:
		return m.present(r, addr, p, exclusive), wait{}
	case r.object != nil:
		return m.fromObject(r, addr, store)
	case store && m.mayHaveBlock(r, addr) && m.block(r, addr):
		p, _ = m.private.get(number)
		return m.present(r, addr, p, true), wait{}
	}
	if !store {
		return m.store(r, addr, m.memory.Zero(), r.prot&^Write), wait{}
	}
	if p = m.memory.Allocate(); p == 0 {
		return Fault{Result: NoMemory}, wait{}
	}
	clear(m.memory.Bytes(p))
	return m.store(r, addr, p, r.prot), wait{}
}

// owned reports whether a page has exactly one owner.
func (m *Map) owned(p Page) bool {
	return p != 0 && p != m.memory.Zero() && owners(m.memory.References(p).Load()) == 1
}

// store makes p the private page at addr and maps it.
func (m *Map) store(r *Region, addr uint64, p Page, prot Prot) Fault {
	if old := m.private.set(addr>>PageShift, p, m.memory); old != 0 {
		m.batch.release(old)
	}
	r.touched = r.touched || p != m.memory.Zero()
	m.batch.install(addr, PageSize, p, prot)
	return Fault{Result: Mapped, Page: p, Prot: prot}
}

// copied replaces a page that has other owners by a private copy.
func (m *Map) copied(r *Region, addr uint64, from Page) Fault {
	p := m.memory.Allocate()
	if p == 0 {
		return Fault{Result: NoMemory}
	}
	if from == m.memory.Zero() {
		clear(m.memory.Bytes(p))
	} else {
		copy(m.memory.Bytes(p), m.memory.Bytes(from))
	}
	return m.store(r, addr, p, r.prot)
}

// shared maps a page of the object itself, for a shared region.
func (m *Map) shared(r *Region, addr uint64, store bool) (Fault, wait) {
	index := r.index(addr)
	p, writable, s := r.object.Page(index, store)
	if s != Supplied {
		return failed(r, index, s)
	}
	prot := r.prot
	if !writable {
		prot &^= Write
	}
	m.batch.install(addr, PageSize, p, prot)
	m.around(r, addr, func(a uint64) (Page, Prot) { return r.object.Peek(r.index(a)), r.prot &^ Write })
	return Fault{Result: Mapped, Page: p, Prot: prot}, wait{}
}

// fromObject maps a page of the object in a private region that has no private copy of it yet. A store makes the copy.
func (m *Map) fromObject(r *Region, addr uint64, store bool) (Fault, wait) {
	index := r.index(addr)
	p, _, s := r.object.Page(index, false)
	if s != Supplied {
		return failed(r, index, s)
	}
	if store {
		return m.copied(r, addr, p), wait{}
	}
	prot := r.prot &^ Write
	m.batch.install(addr, PageSize, p, prot)
	m.around(r, addr, func(a uint64) (Page, Prot) {
		if p, exclusive := m.private.get(a >> PageShift); p != 0 {
			return p, m.safe(r, p, exclusive)
		}
		return r.object.Peek(r.index(a)), prot
	})
	return Fault{Result: Mapped, Page: p, Prot: prot}, wait{}
}

func failed(r *Region, index uint64, s Supply) (Fault, wait) {
	switch s {
	case Loading:
		return Fault{}, wait{r.object, index}
	case Beyond:
		return Fault{Result: BusError}, wait{}
	}
	return Fault{Result: NoMemory}, wait{}
}

// safe returns the permissions with which a private page can be mapped. A page with another owner is mapped without
// write permission.
func (m *Map) safe(r *Region, p Page, exclusive bool) Prot {
	if exclusive && m.owned(p) {
		return r.prot
	}
	return r.prot &^ Write
}

// present maps an existing private page. If possible, it also maps the page's block, or the present pages around it.
func (m *Map) present(r *Region, addr uint64, p Page, exclusive bool) Fault {
	prot := m.safe(r, p, exclusive)
	f := Fault{Result: Mapped, Page: p, Prot: prot}
	l := m.private.leaf(addr >> PageShift)
	if l.big != nil && r.hasBlock(addr) && m.uniform(r, l, exclusive) {
		m.batch.install(blockDown(addr), BlockSize, l.pages[0], prot)
		f.Block = true
		return f
	}
	m.batch.install(addr, PageSize, p, prot)
	m.around(r, addr, func(a uint64) (Page, Prot) { // these pages are all in the same leaf
		p := l.get(int(a >> PageShift & leafMask))
		return p, m.safe(r, p, exclusive)
	})
	return f
}

// uniform reports whether all pages of a block are mapped with the same permissions. After a fork, the other process may
// have made copies of some pages, so that these have one owner and the rest have two. If such a block were mapped as a whole,
// faults in both kinds of pages would replace each other's translations, and an instruction that needs both would not end.
func (m *Map) uniform(r *Region, l *leaf, exclusive bool) bool {
	first := m.safe(r, l.pages[0], exclusive)
	for _, p := range l.pages {
		if m.safe(r, p, exclusive) != first {
			return false
		}
	}
	return true
}

// aroundSize is the size in bytes of the aligned window around a fault. A fault also maps the pages of the window that
// are present: 16 pages, as Linux's fault_around_bytes.
const aroundSize = 16 * PageSize

// around maps the pages in the window around addr that the function page returns, unless an address is already mapped.
func (m *Map) around(r *Region, addr uint64, page func(addr uint64) (Page, Prot)) {
	start := max(addr&^(aroundSize-1), r.start)
	end := min(addr&^(aroundSize-1)+aroundSize, r.end)
	for a := start; a < end; a += PageSize {
		if a == addr {
			continue
		}
		if p, prot := page(a); p != 0 {
			m.batch.offer(a, p, prot)
		}
	}
}
