package mem

// Action is the kind of an Effect.
type Action uint8

// Values of Action: changes of the page tables.
const (
	// Unmap removes all translations of a range.
	Unmap Action = iota
	// Restrict removes the permissions that are not in Prot from the translations of a range. It never adds
	// permissions.
	Restrict
	// Install makes a translation, and replaces an existing one. A range of BlockSize bytes starts at a block boundary;
	// its physical pages are contiguous, and the first is aligned to a block.
	Install
	// Offer makes a translation where there is none, and otherwise does nothing.
	Offer
)

// Effect is one change of page tables, for the addresses from Start up to but not including End.
type Effect struct {
	Action     Action
	Prot       Prot // for Restrict, Install and Offer
	Page       Page // for Install and Offer: the physical page for the address Start
	Start, End uint64
}

// Tables are the page tables of one process.
type Tables interface {
	// Apply makes changes in order. It returns only when no processor can use a removed translation or a removed
	// permission. The slice is valid until Apply returns. The caller holds the map's lock. Apply returns false if an Install
	// failed, because no page is free for a page table.
	Apply([]Effect) bool
	// Size returns the number of pages that the page tables need for the translations.
	Size() int64
}

// batch collects the effects of one operation and the pages that it releases.
type batch struct {
	effects  []Effect
	released []Page  // references to drop after the effects have been applied
	reserve  [4]Page // initial array of released, which avoids an allocation for a few pages
	detached []Object
}

func (b *batch) unmap(start, end uint64) {
	if start >= end {
		return
	}
	if n := len(b.effects); n > 0 {
		if last := &b.effects[n-1]; last.Action == Unmap && last.End == start {
			last.End = end
			return
		}
	}
	b.effects = append(b.effects, Effect{Action: Unmap, Start: start, End: end})
}

func (b *batch) restrict(start, end uint64, prot Prot) {
	if start < end {
		b.effects = append(b.effects, Effect{Action: Restrict, Prot: prot, Start: start, End: end})
	}
}

func (b *batch) install(start, size uint64, p Page, prot Prot) {
	b.effects = append(b.effects, Effect{Action: Install, Prot: prot, Page: p, Start: start, End: start + size})
}

func (b *batch) offer(start uint64, p Page, prot Prot) {
	b.effects = append(b.effects, Effect{Action: Offer, Prot: prot, Page: p, Start: start, End: start + PageSize})
}

func (b *batch) release(p Page) { b.released = append(b.released, p) }

// keptEffects is the maximum capacity of effects that a batch keeps between operations.
const keptEffects = 64

// apply passes the collected effects to the page tables, and then releases the collected pages. It returns false if no page
// was free for a page table.
func (m *Map) apply() bool {
	b := &m.batch
	ok := len(b.effects) == 0 || m.tables.Apply(b.effects)
	for pages := b.released; len(pages) > 0; {
		n := 1
		if isBlock(pages) {
			n = BlockPages
			releaseBlock(m.memory, pages[0])
		} else {
			Release(m.memory, pages[0])
		}
		pages = pages[n:]
	}
	for _, o := range b.detached {
		o.Detach(m)
	}
	b.effects, b.released, b.detached = b.effects[:0], b.released[:0], nil
	if cap(b.effects) > keptEffects {
		b.effects = nil
	}
	if cap(b.released) > len(b.reserve) {
		b.released = b.reserve[:0]
	}
	return ok
}

func (m *Map) lock() { m.mu.Lock() }

// unlock applies the effects of an operation and then unlocks the map.
func (m *Map) unlock() {
	m.apply()
	m.mu.Unlock()
}
