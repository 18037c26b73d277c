package mem

// Fork returns a map for a child process. It has the same regions. Private pages are shared until the parent or the
// child stores to them; pinned pages are copied at once. Regions with DontFork are omitted; regions with WipeOnFork are empty. Regions are not locked
// (mlock) in the child. It returns ENOMEM if the account refuses the memory, and ErrNoPage if no page is free for a copy.
func (m *Map) Fork(tables Tables) (*Map, error) {
	m.lock()
	defer m.unlock()
	child := &Map{
		id: created.Add(1), memory: m.memory, tables: tables, account: m.account, layout: m.layout, limits: m.limits, blocks: m.blocks, small: m.small,
		hardening: m.hardening.Inherited(), sealed: m.sealed,
		brkStart: m.brkStart, brkEnd: m.brkEnd, stack: m.stack,
	}
	child.batch.released = child.batch.reserve[:0]
	charged := m.inherited()
	if err := m.account.charge(charged); err != nil {
		return nil, err
	}
	// The child is not visible to other goroutines yet, so locking two maps cannot cause a deadlock.
	child.lock()
	defer child.unlock()
	child.regions = tree{m.regions.root.clone(), m.regions.count}
	child.private = m.private.share()
	if err := m.separate(&child.private); err != nil {
		child.private.clear(0, End>>PageShift, m.memory, func(p Page) { Release(m.memory, p) })
		m.account.refund(charged)
		return nil, err
	}
	child.sizes = m.sizes
	m.share(child)
	for _, r := range child.regions.within(0, End) {
		child.adopt(r)
	}
	return child, nil
}

// inherited returns the number of pages with which a child is charged.
func (m *Map) inherited() (pages int64) {
	m.regions.each(func(r *Region) bool {
		if r.has(Charged) && !r.has(DontFork) {
			pages += int64(r.size() >> PageShift)
		}
		return true
	})
	return pages
}

// share attaches the child to the objects, and makes the private pages of the parent read-only.
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

// adopt adapts a region that the child has inherited. No effects are needed, because the child's page tables are empty.
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
