package mem

import "loam/abi/linux"

// Flags of mremap(2).
const (
	MremapMayMove   = 1
	MremapFixed     = 2
	MremapDontUnmap = 4
)

// remap holds the arguments of a call of mremap(2), with lengths rounded up to whole pages.
type remap struct {
	addr, old, new uint64
	flags          uint32
	to             uint64 // with MremapFixed, the requested new address; with MremapDontUnmap, a hint
}

// Mremap resizes or moves a range within one region, and returns its new address. Errors are those of mremap(2).
func (m *Map) Mremap(addr, oldLength, newLength uint64, flags uint32, to uint64) (uint64, error) {
	q := remap{addr, up(oldLength), up(newLength), flags, to}
	if !q.valid() {
		return 0, linux.EINVAL
	}
	result, populate, err := m.remap(q)
	if err == nil && populate && q.new > q.old {
		m.populate(result+q.old, result+q.new)
	}
	return result, err
}

// valid makes the checks for which no region has to be looked up.
func (q remap) valid() bool {
	const all = MremapMayMove | MremapFixed | MremapDontUnmap
	if q.flags&^all != 0 || !aligned(q.addr) || q.new == 0 || q.new > End {
		return false
	}
	if q.flags&(MremapFixed|MremapDontUnmap) == 0 {
		return true
	}
	if q.flags&MremapMayMove == 0 || q.flags&MremapDontUnmap != 0 && q.old != q.new {
		return false
	}
	if !aligned(q.to) || q.to > End-q.new {
		return false
	}
	return q.flags&MremapFixed == 0 || q.addr+q.old <= q.to || q.to+q.new <= q.addr
}

func (m *Map) remap(q remap) (addr uint64, populate bool, err error) {
	m.lock()
	defer m.unlock()
	r := m.regions.at(q.addr)
	if r == nil {
		return 0, false, linux.EFAULT
	}
	if r.has(Sealed) {
		return 0, false, linux.EPERM
	}
	populate = r.has(Locked)
	if q.flags&(MremapFixed|MremapDontUnmap) == 0 && q.new <= q.old {
		if q.new < q.old {
			err = m.shrink(q)
		} else if q.old > r.end-q.addr {
			err = linux.EFAULT
		}
		return q.addr, false, err
	}
	if err := m.remappable(r, q); err != nil {
		return 0, false, err
	}
	if q.flags&(MremapFixed|MremapDontUnmap) == 0 && m.extend(r, q) {
		return q.addr, populate, nil
	}
	if q.flags&MremapMayMove == 0 {
		return 0, false, linux.ENOMEM
	}
	addr, err = m.move(r, q)
	return addr, populate, err
}

// shrink unmaps the end of a range, which may contain several regions.
func (m *Map) shrink(q remap) error {
	start, end := q.addr+q.new, q.addr+q.old
	if q.addr > End || q.old > End-q.addr {
		return linux.EINVAL
	}
	if m.punchesTooMany(start, end) {
		return linux.ENOMEM
	}
	if err := m.removable(start, end); err != nil {
		return err
	}
	m.carve(start, end)
	return nil
}

// remappable makes the checks that depend on the region, including the limits on size.
func (m *Map) remappable(r *Region, q remap) error {
	more := q.new - min(q.old, q.new)
	if q.flags&MremapDontUnmap != 0 {
		more = q.new
	}
	switch {
	case q.old == 0 && r.private():
		return linux.EINVAL
	case q.flags&MremapDontUnmap != 0 && r.has(Special):
		return linux.EINVAL
	case min(q.old, q.new) > r.end-q.addr, q.new > q.old && q.old > r.end-q.addr:
		return linux.EFAULT
	case q.new <= q.old && q.flags&MremapDontUnmap == 0:
		return nil
	case r.index(q.addr)+q.new>>PageShift < r.index(q.addr):
		return linux.EINVAL
	case r.has(Special):
		return linux.EFAULT
	}
	if r.has(Locked) {
		if err := m.mayLock(more, linux.EAGAIN); err != nil {
			return err
		}
	}
	return m.room(more, 0, r.prot, r.flags)
}

// extend enlarges a region in place, if the range ends at the region's end and the addresses after it are free.
func (m *Map) extend(r *Region, q remap) bool {
	end := q.addr + q.new
	if q.addr+q.old != r.end || end < q.addr || end > End || m.regions.overlaps(r.end, end) {
		return false
	}
	if r.has(Charged) && m.account.charge(int64((q.new-q.old)>>PageShift)) != nil {
		return false
	}
	m.take(r)
	r.end = end
	m.insert(r)
	m.detach(r)
	return true
}

// move maps the range at another address, moves its pages there, and unmaps the old range.
func (m *Map) move(r *Region, q remap) (uint64, error) {
	if m.regions.count+3 > m.account.MaxRegions() {
		return 0, linux.ENOMEM
	}
	to, err := m.target(r, q)
	if err == nil {
		err = m.removable(to, to+q.new)
	}
	if err == nil && q.old > q.new {
		err = m.removable(q.addr+q.new, q.addr+q.old)
	}
	if err != nil {
		return 0, err
	}
	if r.has(Charged) {
		if err := m.account.charge(int64(q.new >> PageShift)); err != nil {
			return 0, err
		}
	}
	if q.flags&MremapFixed != 0 {
		m.carve(to, to+q.new)
	}
	if q.old > q.new {
		m.carve(q.addr+q.new, q.addr+q.old)
		q.old = q.new
	}
	r = m.regions.at(q.addr) // carve may have split the region
	moved := r.part(q.addr, q.addr+q.old)
	moved.start, moved.end = to, to+q.new
	from, pages := q.addr>>PageShift, q.old>>PageShift
	if r.object == nil && !r.touched {
		moved.offset = to >> PageShift // the region has no private pages, so it gets the offset of its new address and can be merged with regions there
	}
	m.batch.unmap(q.addr, q.addr+q.old)
	m.private.move(from, to>>PageShift, pages, m.memory)
	m.insert(moved)
	m.leave(q)
	return to, nil
}

// leave handles the old range after its pages have moved: it is unmapped, or left empty with MREMAP_DONTUNMAP.
func (m *Map) leave(q remap) {
	switch {
	case q.flags&MremapDontUnmap == 0:
		m.carve(q.addr, q.addr+q.old)
	default:
		m.change(q.addr, q.addr+q.old, func(r *Region) { r.flags &^= Locked | LockOnFault })
	}
}

// target chooses the new address of a range.
func (m *Map) target(r *Region, q remap) (uint64, error) {
	if q.flags&MremapFixed == 0 {
		hint := uint64(0)
		if q.flags&MremapDontUnmap != 0 {
			hint = q.to
		}
		return m.place(hint, q.new, r.object == nil && q.new%BlockSize == 0)
	}
	if q.to < m.layout.Floor {
		return 0, linux.EPERM
	}
	return q.to, nil
}
