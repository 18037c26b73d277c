package mem

import "loam/abi/linux"

// Seal seals a range (mseal(2)): no call unmaps, moves or replaces its regions, or changes their permissions, until the process ends or
// executes another program. Nothing is sealed if the range has a hole. Errors are those of mseal(2).
func (m *Map) Seal(addr, length, flags uint64) error {
	size := up(length)
	end := addr + size
	if flags != 0 || !aligned(addr) || size < length || end < addr {
		return linux.EINVAL
	}
	if size == 0 {
		return nil
	}
	m.lock()
	defer m.unlock()
	switch {
	case end > End || m.mapped(addr, end) != size:
		return linux.ENOMEM
	case m.regions.count+m.splits(addr, end) > m.account.MaxRegions():
		return linux.ENOMEM
	}
	m.sealed = true
	for at := addr; at < end; {
		r := m.regions.at(at)
		from := at
		at = min(end, r.end)
		if !r.has(Sealed) {
			m.change(from, at, func(r *Region) { r.flags |= Sealed })
		}
	}
	return nil
}

// Removable returns EPERM if a region in a range is sealed, and otherwise nil. It returns nil for a range that Munmap rejects.
func (m *Map) Removable(start, end uint64) error {
	if !aligned(start) || end <= start {
		return nil
	}
	m.lock()
	defer m.unlock()
	return m.removable(start, end)
}

func (m *Map) removable(start, end uint64) error {
	if !m.sealed {
		return nil
	}
	for r := m.regions.find(start); r != nil && r.start < end; r = m.regions.find(r.end) {
		if r.has(Sealed) {
			return linux.EPERM
		}
	}
	return nil
}

// keepsContent reports whether a seal forbids advice that discards the content of a region of private anonymous memory. A program that
// may store to it may also discard it.
func (r *Region) keepsContent(advice int) bool {
	switch advice {
	case AdviseFree, AdviseDontNeed, AdviseDontNeedLocked, AdviseRemove, AdviseDontFork, AdviseWipeOnFork:
		return r.has(Sealed) && r.private() && r.object == nil && r.prot&Write == 0
	}
	return false
}
