package mem

// Copying between the kernel and a process. The kernel may also copy through its page
// tables; then a page must not be freed meanwhile, which the kernel ensures by ending a copy
// before Tables.Apply returns. These methods need no page tables: they serve exec, ptrace,
// /proc/PID/mem, and tests.

// ReadAt copies memory from addr into b, as the process could read it. It returns the bytes copied and,
// if these are not all, the reason.
func (m *Map) ReadAt(b []byte, addr uint64) (int, Result) {
	return m.transfer(addr, len(b), demand{access: Load}, func(page []byte, done int) { copy(b[done:], page) })
}

// ReadForced and WriteForced copy as ReadAt and WriteAt do, but for a debugger: permissions of private memory do not matter.
// A write to such memory, a breakpoint for example, makes a private copy of the page, with the permissions of the region.
func (m *Map) ReadForced(b []byte, addr uint64) (int, Result) {
	return m.transfer(addr, len(b), demand{Load, true}, func(page []byte, done int) { copy(b[done:], page) })
}

// WriteForced is the counterpart of ReadForced.
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

// WriteAt copies b into memory at addr, as the process could write it.
func (m *Map) WriteAt(b []byte, addr uint64) (int, Result) {
	return m.transfer(addr, len(b), demand{access: Store}, func(page []byte, done int) { copy(page, b[done:]) })
}

// transfer calls use for each piece of a page, under the map's lock.
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

// use calls f with n bytes at addr, if the page is present and can be accessed as it is.
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

// presentPage returns the page at addr if the access needs no change of the map, or 0.
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

// Location identifies a byte of memory independently of the address under which a process sees it. It is
// comparable: two futexes are the same if their Locations are equal.
type Location struct {
	Object Object // object of a shared region; nil: private
	Map    *Map   // of a private region
	Offset uint64 // bytes in the object, or the address
}

// Locate returns the location of an address, and false where there is no region. private says that
// the caller knows that no other process shares the memory (FUTEX_PRIVATE_FLAG): no region is then looked for.
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
