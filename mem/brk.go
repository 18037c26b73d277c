package mem

import "loam/abi/linux"

// SetBreak makes the heap start at an address, with size zero. exec calls it once.
func (m *Map) SetBreak(start uint64) {
	m.lock()
	defer m.unlock()
	m.brkStart, m.brkEnd = start, start
}

// Brk moves the end of the heap to addr and returns the new end. If it cannot, it returns the old end, as the system
// call brk(2) does.
func (m *Map) Brk(addr uint64) uint64 {
	m.lock()
	end, grown := m.moveBreak(addr)
	locked := m.future&Locked != 0 && m.future&LockOnFault == 0
	m.unlock()
	if locked && grown[0] < grown[1] {
		m.populate(grown[0], grown[1])
	}
	return end
}

// moveBreak moves the end of the heap. It returns the new end, and the range of addresses that was added.
func (m *Map) moveBreak(addr uint64) (end uint64, grown [2]uint64) {
	old, to := up(m.brkEnd), up(addr)
	switch {
	case addr < m.brkStart || addr > End || addr-m.brkStart > m.limits.Data, to < old && m.removable(to, old) != nil:
		return m.brkEnd, grown
	case to < old:
		m.carve(to, old)
	case to > old:
		if !m.free(old, to+PageSize) || !m.growBreak(old, to) {
			return m.brkEnd, grown
		}
		grown = [2]uint64{old, to}
	}
	m.brkEnd = addr
	return addr, grown
}

func (m *Map) growBreak(old, to uint64) bool {
	if m.future&Locked != 0 && m.mayLock(to-old, linux.EAGAIN) != nil {
		return false
	}
	return m.put(&Region{start: old, end: to, prot: Read | Write, flags: m.future}) == nil
}
