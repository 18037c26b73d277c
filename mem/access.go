package mem

// Copies between the kernel and the memory of a process that need no page tables. They are used by exec, ptrace,
// /proc/PID/mem, and tests. The kernel can also copy through the page tables of a process. A page must not be freed
// during such a copy, so the kernel completes the copy before Tables.Apply returns.

// ReadAt copies memory from addr to b, with the rights that the process has. It returns the number of bytes copied and,
// if the number is less than len(b), the reason.
func (m *Map) ReadAt(b []byte, addr uint64) (int, Result) {
	return m.transfer(addr, len(b), demand{access: Load}, func(page []byte, done int) { copy(b[done:], page) })
}

// ReadForced is ReadAt for a debugger: for private memory, it ignores the permissions of the region.
func (m *Map) ReadForced(b []byte, addr uint64) (int, Result) {
	return m.transfer(addr, len(b), demand{Load, true}, func(page []byte, done int) { copy(b[done:], page) })
}

// WriteForced is WriteAt for a debugger: for private memory, it ignores the permissions of the region. A write, for
// example of a breakpoint, makes a private copy of the page, which is mapped with the region's permissions.
func (m *Map) WriteForced(b []byte, addr uint64) (int, Result) {
	return m.transfer(addr, len(b), demand{Store, true}, func(page []byte, done int) { copy(page, b[done:]) })
}

// demand is an access to memory. If forced is set, the protection of private memory is ignored.
type demand struct {
	access Access
	forced bool
}

// allowed reports whether a region permits the access.
func (d demand) allowed(r *Region) bool {
	return r.prot.allowed(d.access) || d.forced && r.private()
}

// WriteAt copies b to memory at addr, with the rights that the process has. It returns the same as ReadAt.
func (m *Map) WriteAt(b []byte, addr uint64) (int, Result) {
	return m.transfer(addr, len(b), demand{access: Store}, func(page []byte, done int) { copy(page, b[done:]) })
}

// transfer splits a range at page boundaries, and calls the function use for each part, with the map's lock held.
func (m *Map) transfer(addr uint64, length int, d demand, use func(page []byte, done int)) (int, Result) {
	done := 0
	for done < length {
		at := addr + uint64(done)
		if at < addr {
			return done, MapError
		}
		n := min(length-done, int(PageSize-at%PageSize))
		if !m.use(at, n, d, func(page []byte) { use(page, done) }) {
			if f := m.resolve(at, d); f.Result != Mapped {
				return done, f.Result
			}
			continue
		}
		done += n
	}
	return done, Mapped
}

// use calls f with n bytes of memory at addr, if the page is present and the access needs no change of the map. It
// reports whether it did.
func (m *Map) use(addr uint64, n int, d demand, f func([]byte)) bool {
	m.lock()
	defer m.unlock()
	r := m.regions.at(addr)
	if r == nil || !d.allowed(r) {
		return false
	}
	p := m.presentPage(r, addr, d.access == Store)
	if p == 0 {
		return false
	}
	f(m.memory.Bytes(p)[addr%PageSize:][:n])
	return true
}

// presentPage returns the page at addr, or 0 if the access needs a change of the map first.
func (m *Map) presentPage(r *Region, addr uint64, store bool) Page {
	if r.private() {
		p, exclusive := m.private.get(addr >> PageShift)
		switch {
		case p != 0 && (!store || exclusive && m.owned(p)):
			return p
		case p != 0 || store || r.object == nil:
			return 0
		}
	}
	p, writable, s := r.object.Page(r.index(addr), store)
	if s != Supplied || store && !writable {
		return 0
	}
	return p
}

// Location identifies a byte of memory independently of the virtual address at which a process accesses it. It is
// comparable: two futexes are the same if their Locations are equal.
type Location struct {
	Object Object // object of a shared region; nil: private
	Map    *Map   // the map of a private region
	Offset uint64 // offset in the object in bytes; for a private region, the address
}

// Hash returns a hash of the location, in which all bits of the result depend on the location.
func (l Location) Hash() uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: nearby locations get distant hashes
	h := l.Offset >> 2
	if l.Map != nil {
		h += l.Map.id << 32
	}
	h *= odd
	return h ^ h>>32
}

// Locate returns the location of an address; false if no region contains the address. private means that the caller
// guarantees that no other process shares the memory (FUTEX_PRIVATE_FLAG): Locate then does not search the regions.
func (m *Map) Locate(addr uint64, private bool) (Location, bool) {
	if private {
		return Location{Map: m, Offset: addr}, true
	}
	m.lock()
	defer m.unlock()
	r := m.regions.at(addr)
	switch {
	case r == nil:
		return Location{}, false
	case r.private():
		return Location{Map: m, Offset: addr}, true
	}
	return Location{Object: r.object, Offset: r.index(addr)<<PageShift + addr%PageSize}, true
}
