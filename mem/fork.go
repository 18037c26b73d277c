package mem

// Fork returns a map for a child: the same regions, with private pages shared until one of the two
// stores to them. Regions with DontFork are left out, those with WipeOnFork are empty. Locks
// of mlock are not inherited. Errors: ENOMEM.
func (m *Map) Fork(tables Tables) (*Map, error) {
	m.lock()
	defer m.unlock()
	child := &Map{
		memory: m.memory, tables: tables, account: m.account, layout: m.layout, limits: m.limits, big: m.big,
		brkStart: m.brkStart, brkEnd: m.brkEnd, stack: m.stack,
	}
	child.batch.released = child.batch.reserve[:0]
	if err := m.account.charge(m.inherited()); err != nil {
		return nil, err
	}
	// The child is not visible to other goroutines yet, so the lock of a second map is free to take.
	child.lock()
	defer child.unlock()
	child.regions = tree{m.regions.root.clone(), m.regions.count}
	child.private = m.private.share()
	child.sizes = m.sizes
	m.share(child)
	for _, r := range child.regions.within(0, End) {
		child.adopt(r)
	}
	return child, nil
}

// inherited returns how many pages a child is charged for.
func (m *Map) inherited() (pages int64) {
	m.regions.each(func(r *Region) bool {
		if r.has(Charged) && !r.has(DontFork) {
			pages += int64(r.size() >> PageShift)
		}
		return true
	})
	return pages
}

// share attaches the objects to the child, and makes private pages read-only here.
func (m *Map) share(child *Map) {
	m.regions.each(func(r *Region) bool {
		if r.object != nil && !r.has(DontFork) {
			r.object.Attach(child)
		}
		if r.private() && r.prot&Write != 0 {
			m.batch.restrict(r.start, r.end, r.prot&^Write)
		}
		return true
	})
}

// adopt adapts an inherited region. The child's page tables are empty: nothing has to be applied.
func (m *Map) adopt(r *Region) {
	if r.has(DontFork) {
		m.take(r)
		m.drop(r.start, r.end)
		return
	}
	if r.has(WipeOnFork) {
		m.drop(r.start, r.end)
	}
	if r.has(Locked) {
		m.take(r)
		r.flags &^= Locked | LockOnFault
		m.add(r)
	}
}
