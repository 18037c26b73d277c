package mem

import "loam/abi/linux"

// Flags of mmap(2), with Linux's values. MAP_PRIVATE and MAP_SHARED calls ignore all other flags, as on Linux.
const (
	MapShared         = 0x01
	MapPrivate        = 0x02
	MapSharedValidate = 0x03
	mapType           = 0x0f
	MapFixed          = 0x10
	MapAnonymous      = 0x20
	Map32Bit          = 0x40
	MapGrowsDown      = 0x100
	MapLocked         = 0x2000
	MapNoReserve      = 0x4000
	MapPopulate       = 0x8000
	MapNonBlock       = 0x10000
	MapStack          = 0x20000
	MapHugeTLB        = 0x40000
	MapFixedNoReplace = 0x100000

	// known are the flags that MAP_SHARED_VALIDATE allows: all above, MAP_DENYWRITE, MAP_EXECUTABLE.
	known = mapType | MapFixed | Map32Bit | MapGrowsDown | MapLocked | MapNoReserve | MapPopulate | MapNonBlock |
		MapStack | MapFixedNoReplace | MapAnonymous | MapHugeTLB | 0x800 | 0x1000
)

// Request is a call of mmap(2).
type Request struct {
	Addr, Length uint64
	Prot         Prot
	Flags        uint32
	Object       Object // the object to map; nil: an anonymous mapping
	Offset       uint64 // offset in Object in bytes, a multiple of the page size
	// Deny has the permissions that cannot be added later, because of how the file was opened: MayNotWrite, MayNotExec.
	Deny Flags
	// Unreadable means that the file was not opened for reading.
	Unreadable bool
	// Sealed means that the file is sealed against writes, so stores must not go to it.
	Sealed bool
	// Special marks a region that the kernel makes itself, such as the vDSO.
	Special bool
}

// Mmap maps a region and returns its address. Errors are those of mmap(2). For MAP_POPULATE and MAP_LOCKED it then
// makes the pages present, as far as possible; failures of that are ignored.
func (m *Map) Mmap(q Request) (uint64, error) {
	addr, populate, err := m.mmap(q)
	if err == nil && populate {
		m.populate(addr, addr+up(q.Length))
	}
	return addr, err
}

func (m *Map) mmap(q Request) (addr uint64, populate bool, err error) {
	if q.Length == 0 || !aligned(q.Offset) {
		return 0, false, linux.EINVAL
	}
	size := up(q.Length)
	switch {
	case q.Flags&(MapHugeTLB|MapAnonymous) == MapHugeTLB: // no file system has files of huge pages
		return 0, false, linux.EINVAL
	case q.Flags&MapHugeTLB != 0 && !q.knowsHugeSize():
		return 0, false, linux.EINVAL
	case q.Flags&MapHugeTLB != 0: // no huge pages are reserved, as by default on Linux
		return 0, false, linux.ENOMEM
	case size == 0:
		return 0, false, linux.ENOMEM
	case q.Offset+size < q.Offset:
		return 0, false, linux.EOVERFLOW
	}
	m.lock()
	defer m.unlock()
	if m.regions.count > m.account.MaxRegions() {
		return 0, false, linux.ENOMEM
	}
	if addr, err = m.choose(q, size); err != nil {
		return 0, false, err
	}
	flags, err := m.attributes(q, size)
	if err == nil && m.hardening.refuses(q.Prot, q.Prot) {
		err = linux.EACCES
	}
	if err != nil {
		return 0, false, err
	}
	r := &Region{start: addr, end: addr + size, prot: q.Prot, flags: flags, object: q.Object, offset: q.Offset >> PageShift}
	if err := m.put(r); err != nil {
		return 0, false, err
	}
	return addr, q.Flags&(MapPopulate|MapNonBlock) == MapPopulate || flags&Locked != 0 && flags&LockOnFault == 0, nil
}

// knowsHugeSize reports whether the processor has huge pages of the size that the flags name: 2 MiB, which is the default, or 1 GiB.
func (q *Request) knowsHugeSize() bool {
	const sizeShift, medium, large = 26, 21, 30 // the sizes are binary logarithms
	n := q.Flags >> sizeShift
	return n == 0 || n == medium || n == large
}

// choose returns the address at which a request is mapped.
func (m *Map) choose(q Request, size uint64) (uint64, error) {
	if q.Flags&(MapFixed|MapFixedNoReplace) == 0 {
		if q.Flags&Map32Bit != 0 {
			return m.placeLow(q.Addr, size)
		}
		return m.place(q.Addr, size, q.Object == nil && size%BlockSize == 0)
	}
	switch {
	case size > End || q.Addr > End-size:
		return 0, linux.ENOMEM
	case !aligned(q.Addr):
		return 0, linux.EINVAL
	case q.Addr < m.layout.Floor:
		return 0, linux.EPERM
	case q.Flags&MapFixedNoReplace != 0 && m.regions.overlaps(q.Addr, q.Addr+size):
		return 0, linux.EEXIST
	}
	return q.Addr, nil
}

// attributes returns the attributes of the new region. It makes its checks in Linux's order, so that the same error is
// returned.
func (m *Map) attributes(q Request, size uint64) (Flags, error) {
	flags := m.future | q.Deny
	if q.Flags&MapLocked != 0 {
		flags |= Locked
	}
	if flags&Locked != 0 {
		if err := m.mayLock(size, linux.EAGAIN); err != nil {
			return 0, err
		}
	}
	switch kind := q.Flags & mapType; kind {
	case MapShared, MapSharedValidate:
		switch validates := kind == MapSharedValidate; {
		case validates && q.Flags&MapAnonymous != 0:
			return 0, linux.EINVAL
		case validates && q.Flags&^known != 0:
			return 0, linux.EOPNOTSUPP
		}
		flags |= SharedRegion
	case MapPrivate:
		flags &^= MayNotWrite
	default:
		return 0, linux.EINVAL
	}
	if err := forbidden(q, flags); err != nil {
		return 0, err
	}
	if q.Sealed && flags&SharedRegion != 0 {
		flags |= MayNotWrite
	}
	if q.Flags&MapGrowsDown != 0 {
		flags |= GrowsDown
	}
	if q.Flags&MapNoReserve != 0 && m.account.Rule() != Never {
		flags |= NoReserve
	}
	if q.Special {
		flags |= Special
	}
	return flags, nil
}

// forbidden checks whether the file allows a request.
func forbidden(q Request, flags Flags) error {
	switch {
	case q.Object == nil && q.Flags&MapGrowsDown != 0 && flags&SharedRegion != 0:
		return linux.EINVAL
	case flags&MayNotWrite != 0 && q.Prot&Write != 0, q.Unreadable:
		return linux.EACCES
	case q.Object == nil:
		return nil
	case flags&MayNotExec != 0 && q.Prot&Exec != 0, q.Sealed && flags&SharedRegion != 0 && q.Prot&Write != 0:
		return linux.EPERM
	case q.Flags&MapGrowsDown != 0:
		return linux.EINVAL
	}
	return nil
}

// put inserts a new region after checking the limits and charging the account. It unmaps existing regions in its range.
func (m *Map) put(r *Region) error {
	if m.regions.count+m.splits(r.start, r.end) > m.account.MaxRegions() {
		return linux.ENOMEM
	}
	if err := m.removable(r.start, r.end); err != nil {
		return err
	}
	if err := m.room(r.size(), m.mapped(r.start, r.end), r.prot, r.flags); err != nil {
		return err
	}
	if r.chargeable() {
		if err := m.account.charge(int64(r.size() >> PageShift)); err != nil {
			return err
		}
		r.flags |= Charged
	}
	m.carve(r.start, r.end)
	if r.object == nil {
		r.offset = r.start >> PageShift
		if r.has(SharedRegion) {
			r.object, r.offset = NewShared(m.memory, r.size()>>PageShift), 0
		}
	}
	m.insert(r)
	return nil
}

// chargeable reports whether a new region is charged to Account.
func (r *Region) chargeable() bool {
	if r.has(NoReserve | Special) {
		return false
	}
	return r.private() && r.prot&Write != 0 || r.has(SharedRegion) && r.object == nil
}

// Munmap unmaps a range. Errors are those of munmap(2).
func (m *Map) Munmap(addr, length uint64) error {
	if !aligned(addr) || length == 0 || addr > End || length > End-addr {
		return linux.EINVAL
	}
	m.lock()
	defer m.unlock()
	end := addr + up(length)
	if m.punchesTooMany(addr, end) {
		return linux.ENOMEM
	}
	if err := m.removable(addr, end); err != nil {
		return err
	}
	m.carve(addr, end)
	return nil
}

// EachSegment calls f for each region between two addresses whose object was made by NewSegment.
func (m *Map) EachSegment(start, end uint64, f func(*Shared)) {
	m.lock()
	defer m.unlock()
	for _, r := range m.regions.within(start, end) {
		if s, ok := r.object.(*Shared); ok && s.regions != nil {
			f(s)
		}
	}
}

// UnmapObject unmaps the parts that are left of an object's mapping that began at addr (shmdt(2)). The function accept
// returns true for objects that qualify, and their size in bytes. It returns EINVAL if there is no such mapping.
func (m *Map) UnmapObject(addr uint64, accept func(Object) (size uint64, ok bool)) error {
	m.lock()
	defer m.unlock()
	var o Object
	end := uint64(End)
	for at := addr; at < end; {
		r := m.regions.find(at)
		if r == nil || r.start >= end {
			break
		}
		at = r.end
		if r.object == nil || r.has(Sealed) || r.start < addr || r.offset<<PageShift != r.start-addr || o != nil && r.object != o {
			continue
		}
		if o == nil {
			size, ok := accept(r.object)
			if !ok {
				continue
			}
			o, end = r.object, addr+up(size)
		}
		m.carve(r.start, r.end)
	}
	if o == nil {
		return linux.EINVAL
	}
	return nil
}

// punchesTooMany reports whether unmapping a range would split a region and so exceed MaxRegions.
func (m *Map) punchesTooMany(start, end uint64) bool {
	r := m.regions.at(start)
	return r != nil && r.start < start && r.end > end && m.regions.count >= m.account.MaxRegions()
}

// populate makes the pages of a range present, and writable in writable regions. It stops at the first page for which
// this fails.
func (m *Map) populate(start, end uint64) Result {
	for addr := start; addr < end; {
		access := Load
		if prot, ok := m.protection(addr); !ok || prot == 0 {
			return AccessError
		} else if prot&Write != 0 {
			access = Store
		}
		f := m.Fault(addr, access)
		if f.Result != Mapped {
			return f.Result
		}
		addr = f.next(addr)
	}
	return Mapped
}

func (m *Map) protection(addr uint64) (Prot, bool) {
	m.lock()
	defer m.unlock()
	if r := m.regions.at(addr); r != nil {
		return r.prot, true
	}
	return 0, false
}
