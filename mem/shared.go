package mem

import "sync"

// Shared is shared anonymous memory (MAP_SHARED|MAP_ANONYMOUS), which several regions map: regions of one map, or of
// several maps after a fork. Pages are zero-filled at the first access. The last Detach frees them.
type Shared struct {
	memory Memory
	size   uint64 // number of pages; mremap of a mapping to a larger size does not change it

	// label and regions are set by NewSegment and not changed afterwards.
	label   func() Label
	regions func(n int)

	mu      sync.Mutex // no other lock is taken while mu is held; Map.mu is taken before it
	pages   table
	mappers Mappers
	kept    bool // pages are kept even while no region maps them
}

// NewShared returns shared memory of size pages. It has no pages yet, and no map is attached to it.
func NewShared(m Memory, size uint64) *Shared { return &Shared{memory: m, size: size} }

// NewSegment returns shared memory whose pages stay even if no region maps them, until Drop is called. The function
// regions is called with 1 when a region begins to map the memory, and with -1 when one ends, with the map's lock held.
func NewSegment(m Memory, size uint64, label func() Label, regions func(n int)) *Shared {
	return &Shared{memory: m, size: size, label: label, regions: regions, kept: true}
}

// Segment returns the size in bytes. ok reports whether NewSegment has made the memory.
func (s *Shared) Segment() (size uint64, ok bool) { return s.size << PageShift, s.regions != nil }

// Drop frees the pages of a segment: immediately if no region maps it, otherwise when the last region ends.
func (s *Shared) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = false
	s.free()
}

// Resident returns the number of pages that are present.
func (s *Shared) Resident() (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages.each(0, End>>PageShift, func(uint64, Page) { n++ })
	return n
}

// free releases all pages, unless a region maps them or they are kept for a segment. The caller holds mu.
func (s *Shared) free() {
	if !s.kept && s.mappers.None() {
		s.pages.clear(0, End>>PageShift, s.memory, func(p Page) { Release(s.memory, p) })
	}
}

// Page implements Object.
func (s *Shared) Page(index uint64, _ bool) (Page, bool, Supply) {
	if index >= s.size {
		return 0, false, Beyond
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, _ := s.pages.get(index); p != 0 {
		return p, true, Supplied
	}
	p := s.memory.Allocate()
	if p == 0 {
		return 0, false, Exhausted
	}
	clear(s.memory.Bytes(p))
	s.pages.set(index, p, s.memory)
	return p, true, Supplied
}

// Peek implements Object.
func (s *Shared) Peek(index uint64) Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.pages.get(index)
	return p
}

// next returns the first index in [from, to) that has a page; to if there is none.
func (s *Shared) next(from, to uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages.next(from, to)
}

// Load implements Object. It does nothing: Page never asks for it.
func (s *Shared) Load(uint64) error { return nil }

// Attach implements Object.
func (s *Shared) Attach(m *Map) {
	s.mu.Lock()
	s.mappers.Add(m)
	s.mu.Unlock()
	if s.regions != nil {
		s.regions(1)
	}
}

// Detach implements Object.
func (s *Shared) Detach(m *Map) {
	s.mu.Lock()
	s.mappers.Remove(m)
	s.free()
	s.mu.Unlock()
	if s.regions != nil {
		s.regions(-1)
	}
}

// Sync implements Object. It does nothing: there is no storage.
func (s *Shared) Sync(uint64, uint64) error { return nil }

// Punch implements Object.
func (s *Shared) Punch(from, to uint64) error {
	var gone []Page
	s.mu.Lock()
	s.pages.clear(from, to, s.memory, func(p Page) { gone = append(gone, p) })
	maps := s.mappers.List()
	s.mu.Unlock()
	for _, m := range maps {
		m.Revoke(s, from, to, false)
	}
	for _, p := range gone {
		Release(s.memory, p)
	}
	return nil
}

// Label implements Object. Without a label of its own, the memory has the name that Linux shows.
func (s *Shared) Label() Label {
	if s.label != nil {
		return s.label()
	}
	return Label{Path: "/dev/zero (deleted)", Minor: 1, Memory: true}
}

// Mappers counts, for each map, the regions that map an object. The object's lock guards it.
type Mappers struct{ regions map[*Map]int }

// Add counts a region of m.
func (s *Mappers) Add(m *Map) {
	if s.regions == nil {
		s.regions = map[*Map]int{}
	}
	s.regions[m]++
}

// Remove undoes one call of Add.
func (s *Mappers) Remove(m *Map) {
	if s.regions[m]--; s.regions[m] == 0 {
		delete(s.regions, m)
	}
}

// None reports whether no region maps the object.
func (s *Mappers) None() bool { return len(s.regions) == 0 }

// List returns the maps that have regions over the object.
func (s *Mappers) List() []*Map {
	all := make([]*Map, 0, len(s.regions))
	for m := range s.regions {
		all = append(all, m)
	}
	return all
}

// Fixed is an object with a fixed list of pages, such as the vDSO. It holds its own references to the pages.
type Fixed struct {
	pages []Page
	label Label
}

// NewFixed returns an object that supplies the given pages. The pages must stay valid as long as the object is used.
func NewFixed(label Label, pages ...Page) *Fixed { return &Fixed{pages, label} }

// Page implements Object.
func (f *Fixed) Page(index uint64, _ bool) (Page, bool, Supply) {
	if index >= uint64(len(f.pages)) {
		return 0, false, Beyond
	}
	return f.pages[index], true, Supplied
}

// Peek implements Object.
func (f *Fixed) Peek(index uint64) Page {
	p, _, _ := f.Page(index, false)
	return p
}

// Load implements Object.
func (f *Fixed) Load(uint64) error { return nil }

// Attach implements Object.
func (f *Fixed) Attach(*Map) {}

// Detach implements Object.
func (f *Fixed) Detach(*Map) {}

// Sync implements Object.
func (f *Fixed) Sync(uint64, uint64) error { return nil }

// Punch implements Object.
func (f *Fixed) Punch(uint64, uint64) error { return nil }

// Label implements Object.
func (f *Fixed) Label() Label { return f.label }
