package mem

import (
	"slices"
	"sync"

	"loam/abi/linux"
)

// Pinned pages: memory of a process that a device reads or writes by its physical address, for direct I/O (open(2), O_DIRECT).
//
// A pin is a reference to a page, so a page that the process unmaps meanwhile is freed after the last pin has ended. It is no
// owner: a store to a pinned private page with one owner needs no copy. Otherwise the process would continue with the copy,
// and lose what the device stores. For the same reason, Fork copies pinned pages at once, and the parent keeps the
// pinned ones. The pages of a device that has failed are copied only at the addresses at which they were pinned.
//
// A page that several processes share since a fork is not pinned: if all but one unmap it, that one may store to it, and the device
// would read what it stores. Pages of files are not pinned either. The page cache may write such a page back, and then drop it, before the device has stored to it.

// pinUnit is the number that a pin adds to the reference count of a page. The bits below it count the owners of the page.
const pinUnit = 1 << 23

// MaxOwners is the maximum number of owners of a page. A map owns a page once, and once more while it makes its own copy of
// shared leaves. So the caller must have fewer than MaxOwners/2 maps.
const MaxOwners = pinUnit - 1

// maxPins is the maximum number of pins of one page.
const maxPins = 1 << 7

// owners returns the number of owners from a reference count.
func owners(references int32) int32 { return references & (pinUnit - 1) }

// pins are the pages of one call of Pin. They are reused, so that a call allocates no memory.
type pins struct {
	m      *Map
	zero   Page // the page of zeros
	pages  []pinned
	pieces [][]byte
	lost   bool
	unpin  func(lost bool) // the method end
}

// pinned is a pinned page, and the number at which it was private, or shared.
type pinned struct {
	page   Page
	number uint64
}

// shared is the number of a page that is not private: the child has the same page after a fork.
const shared = ^uint64(0)

var unused sync.Pool

// Pin returns the n bytes at addr in place: one piece for each page, in order. store reports that the memory will be stored to.
// pieces is valid until then. The pages stay in memory, and belong to the process as far as they are mapped, until the caller calls unpin. With lost,
// unpin never frees the pages: a device that has failed may still access them. Pin returns nil if the process may not access
// the memory, if no page is free, and for memory that can only be copied, such as pages of a file.
func (m *Map) Pin(addr uint64, n int, store bool) (pieces [][]byte, unpin func(lost bool)) {
	p, _ := unused.Get().(*pins)
	if p == nil {
		p = &pins{}
		p.unpin = p.end
	}
	p.m, p.zero = m, m.memory.Zero()
	d := demand{access: Load}
	if store {
		d.access = Store
	}
	for done := 0; done < n; {
		k, mayResolve := p.add(addr+uint64(done), n-done, d)
		if done += k; done < n && !(mayResolve && m.resolve(addr+uint64(done), d).Result == Mapped) {
			p.unpin(false)
			return nil, nil
		}
	}
	return p.pieces, p.unpin
}

// add pins the pages of n bytes at addr up to the first page that is not present for the access. It returns the number of
// bytes before that page, and whether a fault may make the page present.
func (p *pins) add(addr uint64, n int, d demand) (done int, mayResolve bool) {
	m := p.m
	m.lock()
	defer m.unlock()
	near := reader{table: &m.private}
	for done < n {
		at := addr + uint64(done)
		r := m.regions.at(at)
		if r == nil {
			return done, true // a stack may grow
		}
		if !d.allowed(r) {
			return done, false
		}
		private := r.private()
		for ; done < n && at < r.end; at = addr + uint64(done) {
			number, page, may := shared, Page(0), false
			if private {
				number = at >> PageShift
				page, may = p.pinPrivate(r, number, d.access == Store, &near)
			} else {
				page, may = p.pinShared(r, at, d.access == Store)
			}
			if page == 0 {
				return done, may
			}
			if len(p.pages) == 0 {
				m.pins = append(m.pins, p)
			}
			piece := m.memory.Bytes(page)[at%PageSize:]
			piece = piece[:min(len(piece), n-done)]
			p.pages, p.pieces = append(p.pages, pinned{page, number}), append(p.pieces, piece)
			done += len(piece)
		}
	}
	return done, true
}

// pinPrivate pins a page of a private region, and returns it. If it cannot be pinned, pinPrivate returns 0 and whether a fault may
// help. near reads the private pages.
func (p *pins) pinPrivate(r *Region, number uint64, store bool, near *reader) (page Page, mayResolve bool) {
	page, exclusive := near.get(number)
	if page == 0 || page == p.zero {
		if store || page == 0 {
			return 0, store || r.object == nil
		}
		return page, true
	}
	references := p.m.memory.References(page)
	switch n := references.Load(); {
	case !exclusive || owners(n) != 1:
		return 0, store // a store makes a private copy first
	case n >= maxPins*pinUnit:
		return 0, false
	}
	references.Add(pinUnit)
	return page, true
}

// pinShared is pinPrivate for the page at an address of a shared region.
func (p *pins) pinShared(r *Region, addr uint64, store bool) (page Page, mayResolve bool) {
	if _, anonymous := r.object.(*Shared); !anonymous {
		return 0, false
	}
	page = p.m.presentPage(r, addr, store)
	if page == 0 || page == p.zero {
		return page, true
	}
	references := p.m.memory.References(page)
	if references.Load() >= maxPins*pinUnit {
		return 0, false
	}
	references.Add(pinUnit)
	return page, true
}

// end drops the pins, and makes p reusable. Lost pins stay in the list of the map.
func (p *pins) end(lost bool) {
	m := p.m
	m.lock()
	if p.lost = lost; lost {
		m.unlock()
		return
	}
	m.pins = slices.DeleteFunc(m.pins, func(other *pins) bool { return other == p })
	for _, v := range p.pages {
		if v.page != p.zero && m.memory.References(v.page).Add(-pinUnit) == 0 {
			m.memory.Free(v.page)
		}
	}
	m.unlock()
	p.m, p.pages, p.pieces = nil, p.pages[:0], p.pieces[:0]
	unused.Put(p)
}

// ErrNoPage is the error of Fork if no page is free. It is an ENOMEM, but Fork may succeed when the caller has freed pages.
var ErrNoPage error = noPage{}

type noPage struct{}

func (noPage) Error() string      { return "mem: no page is free" }
func (noPage) Errno() linux.Errno { return linux.ENOMEM }

// separate replaces the pinned pages of a child's table by copies. It returns ErrNoPage if no page is free.
func (m *Map) separate(child *table) error {
	moved := false
	for _, p := range m.pins {
		for _, v := range p.pages {
			if v.page == p.zero || v.number == shared {
				continue
			}
			if at, _ := m.private.get(v.number); at != v.page {
				moved = moved || !p.lost && owners(m.memory.References(v.page).Load()) > 0 // by mremap(2)
			} else if err := m.separatePage(child, v.number, v.page); err != nil {
				return err
			}
		}
	}
	if !moved {
		return nil
	}
	return m.separateAll(child)
}

// separateAll is like separate, but finds pinned pages at any address.
func (m *Map) separateAll(child *table) (err error) {
	m.private.each(0, End>>PageShift, func(number uint64, p Page) {
		if err == nil && p != m.memory.Zero() && m.memory.References(p).Load() >= pinUnit {
			err = m.separatePage(child, number, p)
		}
	})
	return err
}

// separatePage replaces one pinned page of a child's table by a copy, unless it was replaced before.
func (m *Map) separatePage(child *table, number uint64, page Page) error {
	if at, _ := child.get(number); at != page {
		return nil
	}
	c := m.memory.Allocate()
	if c == 0 {
		return ErrNoPage
	}
	copy(m.memory.Bytes(c), m.memory.Bytes(page))
	Release(m.memory, child.set(number, c, m.memory))
	return nil
}
