package mem

// Action is the kind of an Effect.
type Action uint8

// Actions on page tables.
const (
	// Unmap removes all translations of a range.
	Unmap Action = iota
	// Restrict removes the permissions that are not in Prot from the translations of a
	// range. It adds none.
	Restrict
	// Install makes a translation, and replaces one that exists. A range of BlockSize
	// bytes begins at a block boundary, and its pages are contiguous from an aligned Page.
	Install
	// Offer makes a translation where there is none, and otherwise does nothing.
	Offer
)

// Effect is one change of page tables: of the addresses from Start to End.
type Effect struct {
	Action     Action
	Prot       Prot // Restrict, Install, Offer
	Page       Page // Install, Offer: the page at Start
	Start, End uint64
}

// Tables are the page tables of one process.
type Tables interface {
	// Apply makes the changes in the order given. It returns only when no processor can
	// use a translation, or a permission, that was removed. The slice is valid until it returns.
	// The map's lock is held.
	Apply([]Effect)
}

// batch collects what an operation changes outside the map.
type batch struct {
	effects  []Effect
	released []Page  // references to drop after the effects were applied
	reserve  [4]Page // keeps single releases off the heap
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

// keptEffects bounds the capacity that an idle batch keeps.
const keptEffects = 64

// apply passes the effects of an operation to the page tables, and releases pages after it.
func (m *Map) apply() {
	b := &m.batch
	if len(b.effects) > 0 {
		m.tables.Apply(b.effects)
	}
	for _, p := range b.released {
		Release(m.memory, p)
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
}

func (m *Map) lock() { m.mu.Lock() }

// unlock applies what an operation has changed and ends it.
func (m *Map) unlock() {
	m.apply()
	m.mu.Unlock()
}
