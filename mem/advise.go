package mem

import "loam/abi/linux"

// Advice of madvise(2), with Linux's values.
const (
	AdviseNormal         = 0
	AdviseRandom         = 1
	AdviseSequential     = 2
	AdviseWillNeed       = 3
	AdviseDontNeed       = 4
	AdviseFree           = 8
	AdviseRemove         = 9
	AdviseDontFork       = 10
	AdviseDoFork         = 11
	AdviseHugePage       = 14
	AdviseNoHugePage     = 15
	AdviseDontDump       = 16
	AdviseDoDump         = 17
	AdviseWipeOnFork     = 18
	AdviseKeepOnFork     = 19
	AdviseCold           = 20
	AdvisePageOut        = 21
	AdvisePopulateRead   = 22
	AdvisePopulateWrite  = 23
	AdviseDontNeedLocked = 24
	AdviseCollapse       = 25
)

// advised maps a value of advice to two sets of region attributes: those that it clears, and those that it sets.
var advised = map[int][2]Flags{
	AdviseNormal:     {Random | Sequential, 0},
	AdviseRandom:     {Sequential, Random},
	AdviseSequential: {Random, Sequential},
	AdviseDontFork:   {0, DontFork},
	AdviseDoFork:     {DontFork, 0},
	AdviseHugePage:   {NoHugePages, HugePages},
	AdviseNoHugePage: {HugePages, NoHugePages},
	AdviseDontDump:   {0, DontDump},
	AdviseDoDump:     {DontDump, 0},
	AdviseWipeOnFork: {0, WipeOnFork},
	AdviseKeepOnFork: {WipeOnFork, 0},
}

// Madvise applies advice to a range. Holes in the range are skipped, but make the call return ENOMEM at the end, as on
// Linux. Cold and PageOut have no effect: there is no swap space for anonymous pages. Errors are those of madvise(2).
func (m *Map) Madvise(addr, length uint64, advice int) error {
	if !aligned(addr) || !knownAdvice(advice) || up(length) < length {
		return linux.EINVAL
	}
	end := addr + up(length)
	switch {
	case end < addr:
		return linux.EINVAL
	case end == addr:
		return nil
	case advice == AdvisePopulateRead || advice == AdvisePopulateWrite:
		return m.prefault(addr, end, advice == AdvisePopulateWrite)
	case advice == AdviseRemove:
		return m.punch(addr, end)
	case advice == AdviseWillNeed:
		return m.willNeed(addr, end)
	case advice == AdviseCollapse:
		return m.collapse(addr, end)
	}
	m.lock()
	defer m.unlock()
	var hole error
	for addr < end {
		r := m.regions.find(addr)
		if r == nil || r.start >= end {
			return linux.ENOMEM
		}
		if r.start > addr {
			hole, addr = linux.ENOMEM, r.start
		}
		to := min(end, r.end)
		if err := m.advise(r, addr, to, advice); err != nil {
			return err
		}
		addr = to
	}
	return hole
}

func knownAdvice(advice int) bool {
	_, ok := advised[advice]
	switch advice {
	case AdviseWillNeed, AdviseDontNeed, AdviseFree, AdviseRemove, AdviseCold, AdvisePageOut,
		AdvisePopulateRead, AdvisePopulateWrite, AdviseDontNeedLocked, AdviseCollapse:
		return true
	}
	return ok
}

// advise applies advice to a part of one region.
func (m *Map) advise(r *Region, start, end uint64, advice int) error {
	if r.keepsContent(advice) {
		return linux.EPERM
	}
	switch advice {
	case AdviseDontNeed, AdviseFree, AdviseDontNeedLocked:
		return m.forget(r, start, end, advice)
	case AdviseCold, AdvisePageOut:
		if r.has(Locked | Special) {
			return linux.EINVAL
		}
		return nil
	case AdviseDoFork, AdviseDoDump, AdviseHugePage:
		if r.has(Special) {
			return linux.EINVAL
		}
	case AdviseWipeOnFork:
		if r.object != nil || r.has(SharedRegion) {
			return linux.EINVAL
		}
	}
	edit := advised[advice]
	if flags := r.flags&^edit[0] | edit[1]; flags != r.flags {
		if m.regions.count+m.splits(start, end) > m.account.MaxRegions() {
			return linux.ENOMEM
		}
		m.change(start, end, func(r *Region) { r.flags = flags })
	}
	return nil
}

// forget drops the pages of a range. For MADV_FREE it does so immediately, which madvise(2) allows.
func (m *Map) forget(r *Region, start, end uint64, advice int) error {
	if r.has(Special) || r.has(Locked) && advice != AdviseDontNeedLocked {
		return linux.EINVAL
	}
	if advice == AdviseFree && (r.object != nil || r.has(SharedRegion)) {
		return linux.EINVAL
	}
	m.batch.unmap(start, end)
	m.drop(start, end)
	return nil
}

// prefault implements MADV_POPULATE_READ and MADV_POPULATE_WRITE.
func (m *Map) prefault(addr, end uint64, store bool) error {
	access, need := Load, Read // the region must have PROT_READ, although this processor lets programs read other pages too
	if store {
		access, need = Store, Write
	}
	for addr < end {
		prot, ok := m.protection(addr)
		switch {
		case !ok:
			return linux.ENOMEM
		case prot&need == 0:
			return linux.EINVAL
		}
		f := m.Fault(addr, access)
		switch f.Result {
		case BusError:
			return linux.EFAULT
		case NoMemory:
			return linux.ENOMEM
		}
		addr = f.next(addr)
	}
	return nil
}

// extent is a range of pages of an object.
type extent struct {
	object   Object
	from, to uint64
}

// extents returns the ranges of objects that the regions of an address range map, in order. It attaches the map to each
// of these objects once more, so that none is freed before the caller calls settle. hole reports that a part of the
// address range has no region. An error of the function check ends the search.
func (m *Map) extents(addr, end uint64, check func(*Region) error) (all []extent, hole bool, err error) {
	m.lock()
	defer m.unlock()
	for addr < end {
		r := m.regions.find(addr)
		if r == nil || r.start >= end {
			return all, true, nil
		}
		hole = hole || r.start > addr
		if err := check(r); err != nil {
			return all, hole, err
		}
		addr = max(addr, r.start)
		to := min(end, r.end)
		if r.object != nil {
			r.object.Attach(m)
			all = append(all, extent{r.object, r.index(addr), r.index(addr) + (to-addr)>>PageShift})
		}
		addr = to
	}
	return all, hole, nil
}

// settle detaches the map from the objects to which extents has attached it.
func (m *Map) settle(all []extent) {
	m.lock()
	defer m.unlock()
	for _, e := range all {
		m.batch.detached = append(m.batch.detached, e.object)
	}
}

// punch implements MADV_REMOVE.
func (m *Map) punch(addr, end uint64) error {
	all, hole, err := m.extents(addr, end, func(r *Region) error {
		switch {
		case r.keepsContent(AdviseRemove):
			return linux.EPERM
		case r.has(Locked) || r.object == nil:
			return linux.EINVAL
		case r.private() || r.has(MayNotWrite):
			return linux.EACCES
		}
		return nil
	})
	defer m.settle(all)
	for _, e := range all {
		if err := e.object.Punch(e.from, e.to); err != nil {
			return err
		}
	}
	if err == nil && hole {
		err = linux.ENOMEM
	}
	return err
}

// willNeed loads absent pages of the objects in a range, up to readAhead pages of each region. For anonymous memory it has no
// effect, as on a Linux kernel with swap.
func (m *Map) willNeed(addr, end uint64) error {
	const readAhead = 512
	all, hole, err := m.extents(addr, end, func(*Region) error { return nil })
	defer m.settle(all)
	for _, e := range all {
		for i := e.from; i < min(e.to, e.from+readAhead); i++ {
			if e.object.Peek(i) == 0 && e.object.Load(i) != nil {
				break
			}
		}
	}
	if err == nil && hole {
		err = linux.ENOMEM
	}
	return err
}
