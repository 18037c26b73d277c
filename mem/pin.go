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
	m       *Map
	pages   []Page
	numbers []uint64 // for each page the number at which it was private, or shared
	pieces  [][]byte
	lost    bool
	unpin   func(lost bool) // the method end
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
	p.m = m
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
	for done < n {
		at := addr + uint64(done)
		r := m.regions.at(at)
		if r == nil {
			return done, true // a stack may grow
		}
		for ; done < n && at < r.end; at = addr + uint64(done) {
			page, may := m.pinnable(r, at, d)
			if page == 0 {
				return done, may
			}
			piece := m.memory.Bytes(page)[at%PageSize:]
			piece = piece[:min(len(piece), n-done)]
			if len(p.pages) == 0 {
				m.pins = append(m.pins, p)
			}
			number := at >> PageShift
			if !r.private() {
				number = shared
			}
			p.pages, p.numbers, p.pieces = append(p.pages, page), append(p.numbers, number), append(p.pieces, piece)
			if page != m.memory.Zero() {
				m.memory.References(page).Add(pinUnit)
			}
			done += len(piece)
		}
	}
	return done, true
}

// pinnable returns the page at addr if it can be pinned, or 0 and whether a fault may help.
func (m *Map) pinnable(r *Region, addr uint64, d demand) (p Page, mayResolve bool) {
	if !d.allowed(r) {
		return 0, false
	}
	switch _, anonymous := r.object.(*Shared); {
	case !r.private() && !anonymous:
		return 0, false
	case r.private() && d.access != Store: // a store makes a private copy first
		p, exclusive := m.private.get(addr >> PageShift)
		if p == 0 && r.object != nil || p != 0 && p != m.memory.Zero() && !(exclusive && m.owned(p)) {
			return 0, false
		}
	}
	p = m.presentPage(r, addr, d.access == Store)
	if p != 0 && p != m.memory.Zero() && m.memory.References(p).Load() >= maxPins*pinUnit {
		return 0, false
	}
	return p, true
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
	for _, page := range p.pages {
		if page != m.memory.Zero() && m.memory.References(page).Add(-pinUnit) == 0 {
			m.memory.Free(page)
		}
	}
	m.unlock()
	p.m, p.pages, p.numbers, p.pieces = nil, p.pages[:0], p.numbers[:0], p.pieces[:0]
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
		for i, page := range p.pages {
			number := p.numbers[i]
			if page == m.memory.Zero() || number == shared {
				continue
			}
			if at, _ := m.private.get(number); at != page {
				moved = moved || !p.lost && owners(m.memory.References(page).Load()) > 0 // by mremap(2)
			} else if err := m.separatePage(child, number, page); err != nil {
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
