package mem

// Flags are the attributes of a region.
type Flags uint32

// Attributes of regions. Two neighbours are merged only if they have the same attributes.
const (
	SharedRegion Flags = 1 << iota // stores go to the object, not to a private copy
	GrowsDown                      // a stack: grows when a thread faults below its start
	Locked                         // mlock: pages stay in memory
	LockOnFault                    // mlock2: as Locked, but absent pages are not loaded
	NoReserve                      // the region is not charged to Account
	DontFork                       // a child process does not inherit the region
	WipeOnFork                     // a child process inherits the region with zeros as content
	DontDump                       // not part of a core dump
	HugePages                      // madvise(MADV_HUGEPAGE): use pages of 2 MiB
	NoHugePages                    // madvise(MADV_NOHUGEPAGE): do not use pages of 2 MiB
	Sequential                     // madvise(MADV_SEQUENTIAL): pages will be accessed in order
	Random                         // madvise(MADV_RANDOM): pages will be accessed in random order
	MayNotWrite                    // write permission cannot be added: a shared mapping of a file that was opened for reading
	MayNotExec                     // execute permission cannot be added: the file is on a noexec mount
	Special                        // made by the kernel: mremap, mlock and madvise do not apply to it
	Charged                        // its pages are charged to Account
	Sealed                         // mseal: the region cannot be unmapped, moved, replaced, or given other permissions
)

// Region is a range of addresses with one protection and one source of pages.
// Start and end are page-aligned; regions of a map do not overlap.
type Region struct {
	start, end uint64
	prot       Prot
	flags      Flags
	object     Object // nil: private and anonymous
	// offset is the page index in the object that corresponds to start. In a region without an object, it is the
	// virtual page number at which the region was first mapped, and mremap keeps it. Regions are merged only if their
	// offsets are consecutive, so that the same regions are merged as on Linux.
	offset uint64
	// touched reports that private pages of the region were stored to at some time.
	touched bool

	// Fields of the region as a node of the tree (tree.go). All regions in the node's subtree, including the region
	// itself, are between low and high. maxGap is the size of the largest hole between two of them, in bytes.
	left, right *Region
	height      int8
	low, high   uint64
	maxGap      uint64
}

// Start returns the first address of the region.
func (r *Region) Start() uint64 { return r.start }

// End returns the first address after the region.
func (r *Region) End() uint64 { return r.end }

// Prot returns the permissions of the region.
func (r *Region) Prot() Prot { return r.prot }

// Flags returns the attributes of the region.
func (r *Region) Flags() Flags { return r.flags }

// Object returns the object that the region maps, or nil.
func (r *Region) Object() Object { return r.object }

func (r *Region) size() uint64 { return r.end - r.start }
func (r *Region) has(f Flags) bool {
	return r.flags&f != 0
}

// private reports whether a store to the region changes a private copy.
func (r *Region) private() bool { return !r.has(SharedRegion) }

// data reports whether the region counts against RLIMIT_DATA: it is private, writable, and not a stack.
func (r *Region) data() bool { return isData(r.prot, r.flags) }

func isData(prot Prot, flags Flags) bool {
	return prot&Write != 0 && flags&(SharedRegion|GrowsDown) == 0
}

// index returns the page index of an address in the region's object.
func (r *Region) index(addr uint64) uint64 { return r.offset + (addr-r.start)>>PageShift }

// guardGap is the distance in bytes that a growing stack keeps from the region below it, as Linux's stack_guard_gap.
// New mappings are not placed in that gap.
const guardGap = 256 * PageSize

// floor returns the start of the region. For a stack it is the start of its guard gap.
func (r *Region) floor() uint64 {
	if r.has(GrowsDown) {
		return r.start - min(guardGap, r.start)
	}
	return r.start
}

// follows reports whether r and the region a before it can be merged. A charged region and an uncharged one are not
// merged, because unmapping returns the charge.
func (r *Region) follows(a *Region) bool {
	return a.end == r.start && a.prot == r.prot && a.flags == r.flags && a.object == r.object &&
		a.flags&Special == 0 && a.offset+a.size()>>PageShift == r.offset
}

// part returns a copy of the region for a range within it. The copy is not in the tree.
func (r *Region) part(start, end uint64) *Region {
	return &Region{start: start, end: end, prot: r.prot, flags: r.flags, object: r.object, offset: r.index(start), touched: r.touched}
}
