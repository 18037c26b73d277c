package mem

// Flags are the attributes of a region.
type Flags uint32

// Attributes of regions. Two neighbours merge only if all of them agree.
const (
	SharedRegion Flags = 1 << iota // stores go to the object, not to a private copy
	GrowsDown                      // grows by faults below its start
	Locked                         // mlock: pages stay in memory
	LockOnFault                    // mlock2: as Locked, for pages that are present
	NoReserve                      // not charged to Account
	DontFork                       // a child process does not inherit the region
	WipeOnFork                     // a child process inherits the region with zeros as content
	DontDump                       // not part of a core dump
	HugePages                      // MADV_HUGEPAGE
	NoHugePages                    // MADV_NOHUGEPAGE
	Sequential                     // MADV_SEQUENTIAL
	Random                         // MADV_RANDOM
	MayNotWrite                    // write permission cannot be added: a shared file opened for reading
	MayNotExec                     // execute permission cannot be added: a file of a noexec mount
	Special                        // made by the kernel: mremap, mlock and madvise do not apply to it
	Charged                        // its pages are charged to Account
)

// Region is a range of addresses with one protection and one source of pages.
// Start and end are page-aligned; regions of a map do not overlap.
type Region struct {
	start, end uint64
	prot       Prot
	flags      Flags
	object     Object // nil: private and anonymous
	// offset is the object's page index at start. A region without an object has the virtual
	// page number where it was mapped: it travels with mremap, and regions
	// merge only if their offsets continue, so that the same merges happen as on Linux.
	offset uint64
	// touched says that the region has, or had, private pages that were stored to.
	touched bool

	// The node of the tree (tree.go). Regions below it in the tree, itself included,
	// lie between low and high; maxGap is the largest hole between two of them.
	left, right *Region
	height      int8
	low, high   uint64
	maxGap      uint64
}

// Start returns the first address of the region.
func (r *Region) Start() uint64 { return r.start }

// End returns the address behind the region.
func (r *Region) End() uint64 { return r.end }

// Prot returns the permissions of the region.
func (r *Region) Prot() Prot { return r.prot }

// Flags returns the attributes of the region.
func (r *Region) Flags() Flags { return r.flags }

// Object returns the object behind the region, or nil.
func (r *Region) Object() Object { return r.object }

func (r *Region) size() uint64 { return r.end - r.start }
func (r *Region) has(f Flags) bool {
	return r.flags&f != 0
}

// private reports whether stores make private copies.
func (r *Region) private() bool { return !r.has(SharedRegion) }

// data reports whether the region counts for RLIMIT_DATA: private, writable, no stack.
func (r *Region) data() bool { return isData(r.prot, r.flags) }

func isData(prot Prot, flags Flags) bool {
	return prot&Write != 0 && flags&(SharedRegion|GrowsDown) == 0
}

// index returns the page index of an address in the region's object.
func (r *Region) index(addr uint64) uint64 { return r.offset + (addr-r.start)>>PageShift }

// guardGap is the distance in bytes that a growing stack keeps from the region below it, as Linux's
// stack_guard_gap. Placement keeps it free too.
const guardGap = 256 * PageSize

// floor returns the start of the region with its guard gap.
func (r *Region) floor() uint64 {
	if r.has(GrowsDown) {
		return r.start - min(guardGap, r.start)
	}
	return r.start
}

// follows reports whether r continues a: then both can be one region. Regions that were
// charged, and regions that were not, do not merge, since unmapping has to know.
func (r *Region) follows(a *Region) bool {
	return a.end == r.start && a.prot == r.prot && a.flags == r.flags && a.object == r.object &&
		a.flags&Special == 0 && a.offset+a.size()>>PageShift == r.offset
}

// part returns a copy of the region, limited to a range within it and outside the tree.
func (r *Region) part(start, end uint64) *Region {
	return &Region{start: start, end: end, prot: r.prot, flags: r.flags, object: r.object, offset: r.index(start), touched: r.touched}
}
