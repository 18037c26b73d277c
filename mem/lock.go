package mem

import "loam/abi/linux"

// Flags of mlock2(2), mlockall(2) and msync(2).
const (
	MlockOnFault = 1

	MclCurrent = 1
	MclFuture  = 2
	MclOnFault = 4

	MsAsync      = 1
	MsInvalidate = 2
	MsSync       = 4
)

// Mlock locks a range in memory and makes its pages present. Nothing is ever swapped out. So locking private pages
// changes only which advice madvise refuses, and the count of locked memory. Errors are those of mlock2(2).
func (m *Map) Mlock(addr, length uint64, flags uint32) error {
	if flags&^MlockOnFault != 0 {
		return linux.EINVAL
	}
	set := Locked
	if flags&MlockOnFault != 0 {
		set |= LockOnFault
	}
	start, end, err := lockRange(addr, length)
	if err != nil || start == end {
		return err
	}
	if err := m.relock(start, end, set); err != nil || set&LockOnFault != 0 {
		return err
	}
	switch m.populate(start, end) {
	case Mapped:
		return nil
	case NoMemory:
		return linux.EAGAIN
	}
	return linux.ENOMEM
}

// Munlock unlocks a range. Errors are those of munlock(2).
func (m *Map) Munlock(addr, length uint64) error {
	start, end, err := lockRange(addr, length)
	if err != nil || start == end {
		return err
	}
	m.lock()
	defer m.unlock()
	return m.setLocked(start, end, 0)
}

// lockRange extends a range to whole pages.
func lockRange(addr, length uint64) (start, end uint64, err error) {
	length = up(length + addr - down(addr))
	start = down(addr)
	if end = start + length; end < start {
		return 0, 0, linux.EINVAL
	}
	return start, end, nil
}

func (m *Map) relock(start, end uint64, set Flags) error {
	m.lock()
	defer m.unlock()
	if err := m.mayLock(0, linux.ENOMEM); err != nil {
		return err
	}
	if err := m.mayLock(end-start-m.lockedIn(start, end), linux.ENOMEM); err != nil {
		return err
	}
	return m.setLocked(start, end, set)
}

func (m *Map) lockedIn(start, end uint64) (n uint64) {
	for r := m.regions.find(start); r != nil && r.start < end; r = m.regions.find(r.end) {
		if r.has(Locked) {
			n += min(r.end, end) - max(r.start, start)
		}
	}
	return n
}

// setLocked locks or unlocks the regions of a range, up to the first hole.
func (m *Map) setLocked(start, end uint64, set Flags) error {
	for start < end {
		r := m.regions.at(start)
		if r == nil {
			return linux.ENOMEM
		}
		to := min(end, r.end)
		if flags := r.flags&^(Locked|LockOnFault) | set; flags != r.flags && !r.has(Special) {
			if m.regions.count+m.splits(start, to) > m.account.MaxRegions() {
				return linux.ENOMEM
			}
			m.change(start, to, func(r *Region) { r.flags = flags })
		}
		start = to
	}
	return nil
}

// Mlockall locks all existing regions (MCL_CURRENT), all regions that are mapped later (MCL_FUTURE), or both. Errors
// are those of mlockall(2).
func (m *Map) Mlockall(flags uint32) error {
	if flags == 0 || flags&^(MclCurrent|MclFuture|MclOnFault) != 0 || flags == MclOnFault {
		return linux.EINVAL
	}
	set := Locked
	if flags&MclOnFault != 0 {
		set |= LockOnFault
	}
	all, err := m.lockAll(flags, set)
	if err == nil && set&LockOnFault == 0 {
		for _, r := range all {
			m.populate(r[0], r[1])
		}
	}
	return err
}

// lockAll locks all regions and returns their ranges.
func (m *Map) lockAll(flags uint32, set Flags) (all [][2]uint64, err error) {
	m.lock()
	defer m.unlock()
	if err := m.mayLock(0, linux.ENOMEM); err != nil {
		return nil, err
	}
	if flags&MclCurrent != 0 && !m.limits.LockAny && m.sizes.total > m.limits.Memlock {
		return nil, linux.ENOMEM
	}
	m.future = 0
	if flags&MclFuture != 0 {
		m.future = set
	}
	if flags&MclCurrent != 0 {
		all = m.lockEach(set)
	}
	return all, nil
}

func (m *Map) lockEach(set Flags) (all [][2]uint64) {
	for _, r := range m.regions.within(0, End) {
		all = append(all, [2]uint64{r.start, r.end})
	}
	for _, r := range all {
		_ = m.setLocked(r[0], r[1], set) // cannot fail: the range is a whole region, without a hole or a split
	}
	return all
}

// Munlockall unlocks all regions. Regions that are mapped later are no longer locked either.
func (m *Map) Munlockall() {
	m.lock()
	defer m.unlock()
	m.future = 0
	m.lockEach(0)
}

// Mincore reports for each page of a range whether it is present, as a private page or in the region's object. Errors
// are those of mincore(2).
func (m *Map) Mincore(addr, length uint64, present []byte) error {
	if !aligned(addr) {
		return linux.EINVAL
	}
	if addr > End || length > End-addr {
		return linux.ENOMEM
	}
	m.lock()
	defer m.unlock()
	for i := range up(length) >> PageShift {
		a := addr + i<<PageShift
		r := m.regions.at(a)
		if r == nil {
			return linux.ENOMEM
		}
		present[i] = 0
		if m.resident(r, a) {
			present[i] = 1
		}
	}
	return nil
}

func (m *Map) resident(r *Region, addr uint64) bool {
	if r.private() {
		if p, _ := m.private.get(addr >> PageShift); p != 0 {
			return true
		}
	}
	return r.object != nil && r.object.Peek(r.index(addr)) != 0
}

// Msync writes the dirty shared pages of a range back. With MsAsync it does nothing: the page cache knows the dirty
// pages and writes them back when they are old. Errors are those of msync(2).
func (m *Map) Msync(addr, length uint64, flags uint32) error {
	if flags&^(MsAsync|MsInvalidate|MsSync) != 0 || !aligned(addr) || flags&MsAsync != 0 && flags&MsSync != 0 {
		return linux.EINVAL
	}
	end := addr + up(length)
	if end < addr || up(length) < length {
		return linux.ENOMEM
	}
	all, hole, err := m.extents(addr, end, func(r *Region) error {
		if flags&MsInvalidate != 0 && r.has(Locked) {
			return linux.EBUSY
		}
		return nil
	})
	defer m.settle(all)
	if flags&MsSync != 0 {
		for _, e := range all {
			if err := e.object.Sync(e.from, e.to); err != nil {
				return err
			}
		}
	}
	if err == nil && hole {
		err = linux.ENOMEM
	}
	return err
}
