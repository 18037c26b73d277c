package mem

import (
	"sync"
	"sync/atomic"

	"loam/abi/linux"
)

// Infinite is a limit that allows any size (RLIM_INFINITY).
const Infinite = ^uint64(0)

// Limits are the resource limits of a process that apply to its map, in bytes: RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK,
// RLIMIT_MEMLOCK.
type Limits struct {
	AS, Data, Stack, Memlock uint64
	LockAny                  bool // CAP_IPC_LOCK: Memlock does not apply
}

// Map holds the regions and the private pages of one process. See the package comment for ownership and locks.
type Map struct {
	id        uint64 // number of the map, for Location.Hash
	mu        sync.Mutex
	memory    Memory
	tables    Tables
	account   *Account
	layout    Layout
	limits    Limits
	blocks    *Blocks
	small     bool // blocks are not allowed in this map
	hardening Hardening

	regions  tree
	sealed   bool // Seal was called: some regions may be sealed
	private  table
	batch    batch
	sizes    sizes
	future   Flags // flags of mlockall(MCL_FUTURE): Locked, LockOnFault
	brkStart uint64
	brkEnd   uint64
	stack    uint64  // an address within the main stack, for /proc/PID/maps
	pins     []*pins // live pins, and those of devices that have failed
}

// sizes are sums over the regions, in bytes.
type sizes struct{ total, data, stack, locked uint64 }

// Config configures a new Map.
type Config struct {
	Memory  Memory
	Tables  Tables
	Account *Account
	Layout  Layout
	Limits  Limits
	Blocks  *Blocks // policy for pages of 2 MiB; nil: Advised
	// SmallPages forbids pages of 2 MiB. SetSmallPages changes it.
	SmallPages bool
}

// created is the number of maps that were created.
var created atomic.Uint64

// New returns an empty map.
func New(c Config) *Map {
	m := &Map{
		id: created.Add(1), memory: c.Memory, tables: c.Tables, account: c.Account, layout: c.Layout, limits: c.Limits,
		blocks: c.Blocks, small: c.SmallPages,
	}
	if m.blocks == nil {
		m.blocks = &Blocks{}
	}
	m.batch.released = m.batch.reserve[:0]
	return m
}

// SetLimits changes the limits. It has no effect on existing regions.
func (m *Map) SetLimits(l Limits) {
	m.lock()
	defer m.unlock()
	m.limits = l
}

// SetStack sets an address that lies in the main stack. The region that contains it is shown as [stack].
func (m *Map) SetStack(addr uint64) {
	m.lock()
	defer m.unlock()
	m.stack = addr
}

// Destroy unmaps everything. The map must not be used afterwards, but Revoke may
// still be called.
func (m *Map) Destroy() {
	m.lock()
	defer m.unlock()
	m.carve(0, End)
	m.private = table{} // an open file of /proc may keep the map for long
}

// Revoke drops the translations of an object's pages whose indices are in [from, to). It does so in all
// regions of this map that map the object's own pages, not private copies. Objects call it without holding locks,
// before they release the pages. If restrict is set, the translations stay but lose write permission.
func (m *Map) Revoke(o Object, from, to uint64, restrict bool) {
	m.lock()
	defer m.unlock()
	m.regions.each(func(r *Region) bool {
		if r.object != o {
			return true
		}
		last := r.offset + r.size()>>PageShift
		if low, high := max(from, r.offset), min(to, last); low < high {
			start := r.start + (low-r.offset)<<PageShift
			m.withdraw(r, start, start+(high-low)<<PageShift, restrict)
		}
		return true
	})
}

// MayStore reports whether a region maps an object so that stores go to the object, or may be made so by mprotect(2).
func (m *Map) MayStore(o Object) (found bool) {
	m.lock()
	defer m.unlock()
	m.regions.each(func(r *Region) bool {
		found = r.object == o && r.has(SharedRegion) && !r.has(MayNotWrite)
		return !found
	})
	return found
}

func (m *Map) withdraw(r *Region, start, end uint64, restrict bool) {
	switch {
	case !restrict:
		m.batch.unmap(start, end)
	case r.has(SharedRegion):
		m.batch.restrict(start, end, r.prot&^Write)
	}
}

// add inserts a region into the tree and adds its size to sizes.
func (m *Map) add(r *Region) {
	m.regions.insert(r)
	m.count(r, 1)
}

// take removes a region from the tree and subtracts its size from sizes.
func (m *Map) take(r *Region) {
	m.regions.remove(r)
	m.count(r, -1)
}

func (m *Map) count(r *Region, sign int) {
	n := r.size() * uint64(sign) // modulo 2^64
	m.sizes.total += n
	if r.data() {
		m.sizes.data += n
	}
	if r.has(GrowsDown) {
		m.sizes.stack += n
	}
	if r.has(Locked) {
		m.sizes.locked += n
	}
}

// insert adds a new region, attaches its object, and merges it with its neighbours.
func (m *Map) insert(r *Region) {
	if r.object != nil {
		r.object.Attach(m)
	}
	if p := m.regions.before(r.start); p != nil && r.follows(p) {
		m.take(p)
		r.start, r.offset, r.touched = p.start, p.offset, r.touched || p.touched
		m.detach(p)
	}
	if n := m.regions.find(r.end); n != nil && n.follows(r) {
		m.take(n)
		r.end, r.touched = n.end, r.touched || n.touched
		m.detach(n)
	}
	m.add(r)
}

func (m *Map) detach(r *Region) {
	if r.object != nil {
		m.batch.detached = append(m.batch.detached, r.object)
	}
}

// split divides the region that contains addr, unless it starts at addr. Afterwards a region starts at addr.
func (m *Map) split(addr uint64) {
	r := m.regions.at(addr)
	if r == nil || r.start == addr {
		return
	}
	m.take(r)
	upper := r.part(addr, r.end)
	r.end = addr
	if r.object != nil {
		r.object.Attach(m)
	}
	m.add(r)
	m.add(upper)
}

// splits returns the number of additional regions if regions are split at start and end.
func (m *Map) splits(start, end uint64) (n int) {
	for _, a := range [...]uint64{start, end} {
		if r := m.regions.at(a); r != nil && r.start != a {
			n++
		}
	}
	return n
}

// carve unmaps a range whose ends are page-aligned.
func (m *Map) carve(start, end uint64) {
	if start >= end {
		return
	}
	m.split(start)
	m.split(end)
	for r := m.regions.find(start); r != nil && r.start < end; r = m.regions.find(start) {
		m.take(r)
		m.discard(r)
	}
}

// discard releases a region that has been removed from the tree.
func (m *Map) discard(r *Region) {
	m.batch.unmap(r.start, r.end)
	m.drop(r.start, r.end)
	if r.has(Charged) {
		m.account.refund(int64(r.size() >> PageShift))
	}
	m.detach(r)
}

// drop releases the private pages of a range of addresses.
func (m *Map) drop(start, end uint64) {
	m.private.clear(start>>PageShift, end>>PageShift, m.memory, m.batch.release)
}

// room checks the limits RLIMIT_AS and RLIMIT_DATA for a new region of size bytes. replaced is the size in bytes of the
// existing regions that it replaces. It returns ENOMEM if a limit would be exceeded.
func (m *Map) room(size, replaced uint64, prot Prot, flags Flags) error {
	more := size - min(size, replaced)
	if exceeds(m.sizes.total, more, m.limits.AS) ||
		isData(prot, flags) && exceeds(m.sizes.data, more, m.limits.Data) {
		return linux.ENOMEM
	}
	return nil
}

// exceeds reports whether sum+more, a number of bytes, is above the limit, rounded down to whole pages.
func exceeds(sum, more, limit uint64) bool {
	return sum+more > down(limit) && limit != Infinite
}

// mayLock checks RLIMIT_MEMLOCK for additional locked bytes (the parameter more). It
// returns refusal if they exceed the limit, and EPERM if the limit is zero.
func (m *Map) mayLock(more uint64, refusal error) error {
	switch {
	case m.limits.LockAny:
		return nil
	case m.limits.Memlock == 0:
		return linux.EPERM
	case exceeds(m.sizes.locked, more, m.limits.Memlock):
		return refusal
	}
	return nil
}

// mapped returns the number of bytes of a range that are covered by regions.
func (m *Map) mapped(start, end uint64) (n uint64) {
	for r := m.regions.find(start); r != nil && r.start < end; r = m.regions.find(r.end) {
		n += min(r.end, end) - max(r.start, start)
	}
	return n
}
