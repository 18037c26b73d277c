package mem

import "loam/abi/linux"

// Seal seals a range (mseal(2)): no call changes or removes its regions until the process ends or executes another program. Nothing is
// sealed if the range has a hole. Errors are those of mseal(2).
func (m *Map) Seal(addr, length, flags uint64) error {
	size := up(length)
	end := addr + size
	if flags != 0 || !aligned(addr) || size < length || end < addr {
		return linux.EINVAL
	}
	m.lock()
	defer m.unlock()
	switch {
	case end > End || m.mapped(addr, end) != size:
		return linux.ENOMEM
	case size != 0 && m.regions.count+m.splits(addr, end) > m.account.MaxRegions():
		return linux.ENOMEM
	}
	for at := addr; at < end; {
		r := m.regions.at(at)
		from := at
		at = min(end, r.end)
		if m.sealed = true; !r.has(Sealed) {
			m.change(from, at, func(r *Region) { r.flags |= Sealed })
		}
	}
	return nil
}

// Removable returns nil if no region in a range is sealed, and otherwise EPERM.
func (m *Map) Removable(start, end uint64) error {
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

// keepsContent reports whether a seal forbids advice that discards the content of a region. A program that may store to private memory
// may also discard it.
func (r *Region) keepsContent(advice int) bool {
	switch advice {
	case AdviseFree, AdviseDontNeed, AdviseDontNeedLocked, AdviseRemove, AdviseDontFork, AdviseWipeOnFork:
		return r.has(Sealed) && r.private() && r.prot&Write == 0
	}
	return false
}
