package mem

import "loam/abi/linux"

// RemapFilePages makes a range of a shared mapping show the object from page index on (remap_file_pages(2)). As on Linux since
// 4.0, the range becomes a mapping of its own. prot must be 0. Errors are those of remap_file_pages(2).
func (m *Map) RemapFilePages(addr, length uint64, prot uint32, index uint64, flags uint32) error {
	addr, length = addr&^(PageSize-1), length&^(PageSize-1)
	count := length >> PageShift
	if prot != 0 || addr+length <= addr || index+count < index {
		return linux.EINVAL
	}
	populate, err := m.remapFilePages(addr, addr+length, index)
	if err == nil && populate && flags&MapNonBlock == 0 {
		m.populate(addr, addr+length)
	}
	return err
}

// remapFilePages maps the object of the region at start again. populate reports whether the new pages are made present.
func (m *Map) remapFilePages(start, end, index uint64) (populate bool, err error) {
	m.lock()
	defer m.unlock()
	r := m.regions.at(start)
	if r == nil || !r.has(SharedRegion) || !m.uniformTo(r, end) {
		return false, linux.EINVAL
	}
	if index > (maxObject-(end-start))>>PageShift {
		return false, linux.EOVERFLOW
	}
	if r.has(Locked) {
		if err := m.mayLock(end-start, linux.EAGAIN); err != nil {
			return false, err
		}
	}
	if m.hardening.refuses(r.prot, r.prot) {
		return false, linux.EACCES
	}
	pages := int64((end - start) >> PageShift)
	if r.has(Charged) {
		if err := m.account.charge(pages); err != nil {
			return false, err
		}
	}
	again := &Region{start: start, end: end, prot: r.prot, flags: r.flags&kept | m.future, object: r.object, offset: index}
	if err := m.put(again); err != nil {
		if r.has(Charged) {
			m.account.refund(pages)
		}
		return false, err
	}
	return true, nil
}

// kept are the attributes of a region that remap_file_pages keeps. Others, such as those of madvise, are lost.
const kept = SharedRegion | MayNotWrite | MayNotExec | Charged | Locked

// maxObject is the size of the largest object in bytes.
const maxObject = 1<<63 - 1

// uniformTo reports whether the addresses from the start of r to end are mapped by r and by regions like r without a hole.
func (m *Map) uniformTo(r *Region, end uint64) bool {
	for at := r; at.end < end; {
		next := m.regions.at(at.end)
		if next == nil || next.object != r.object || next.flags != r.flags || next.prot != r.prot {
			return false
		}
		at = next
	}
	return true
}
