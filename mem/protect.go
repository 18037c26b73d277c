package mem

import "loam/abi/linux"

// Flags in the argument prot of mprotect(2), in addition to the permissions.
const (
	ProtSem       = 0x8 // ignored, as on Linux
	ProtGrowsDown = 0x01000000
	ProtGrowsUp   = 0x02000000
)

// Mprotect changes the permissions of a range. It stops with an error at the first hole, and at the first region that
// may not have the permissions. As on Linux, the regions before that point are changed although the call fails. Errors
// are those of mprotect(2).
func (m *Map) Mprotect(addr, length uint64, prot uint32) error {
	grows := prot & (ProtGrowsDown | ProtGrowsUp)
	prot &^= grows
	if grows == ProtGrowsDown|ProtGrowsUp || !aligned(addr) {
		return linux.EINVAL
	}
	if length == 0 {
		return nil
	}
	end := addr + up(length)
	if end <= addr {
		return linux.ENOMEM
	}
	if prot&^(uint32(Read|Write|Exec)|ProtSem) != 0 {
		return linux.EINVAL
	}
	m.lock()
	defer m.unlock()
	r := m.regions.find(addr)
	switch {
	case r == nil:
		return linux.ENOMEM
	case grows == ProtGrowsDown:
		if r.start >= end {
			return linux.ENOMEM
		}
		if !r.has(GrowsDown) {
			return linux.EINVAL
		}
		addr = r.start
	case r.start > addr:
		return linux.ENOMEM
	case grows == ProtGrowsUp:
		return linux.EINVAL
	}
	return m.protect(addr, end, Prot(prot)&(Read|Write|Exec))
}

func (m *Map) protect(addr, end uint64, prot Prot) error {
	for addr < end {
		r := m.regions.at(addr)
		if r == nil {
			return linux.ENOMEM
		}
		if prot&Write != 0 && r.has(MayNotWrite) || prot&Exec != 0 && r.has(MayNotExec) || m.hardening.refuses(r.prot, prot) {
			return linux.EACCES
		}
		if r.has(Sealed) {
			return linux.EPERM
		}
		to := min(end, r.end)
		if prot != r.prot {
			if err := m.reprotect(r, addr, to, prot); err != nil {
				return err
			}
		}
		addr = to
	}
	return nil
}

// reprotect changes the permissions of a part of a region. The account is charged for memory that becomes private and
// writable. If such memory loses that property without having been stored to, the charge is returned.
func (m *Map) reprotect(r *Region, start, end uint64, prot Prot) error {
	flags, size := r.flags, end-start
	pages := int64(size >> PageShift)
	switch {
	case prot&Write != 0 && !r.data() && isData(prot, flags) && exceeds(m.sizes.data, size, m.limits.Data):
		return linux.ENOMEM
	case m.regions.count+m.splits(start, end) > m.account.MaxRegions():
		return linux.ENOMEM
	case prot&Write != 0 && r.prot&Write == 0 && !r.has(Charged|SharedRegion|NoReserve|Special):
		if err := m.account.charge(pages); err != nil {
			return err
		}
		flags |= Charged
	case prot&Write == 0 && r.has(Charged) && r.object == nil && !r.touched:
		m.account.refund(pages)
		flags &^= Charged
	}
	m.change(start, end, func(r *Region) { r.prot, r.flags = prot, flags })
	m.batch.restrict(start, end, prot&^Write)
	return nil
}

// change applies the function edit to the part of a region between start and end. The
// result is merged with its neighbours if possible.
func (m *Map) change(start, end uint64, edit func(*Region)) {
	m.split(start)
	m.split(end)
	r := m.regions.at(start)
	m.take(r)
	edit(r)
	m.insert(r)
	m.detach(r) // insert has attached the object once more; undo that
}
