package mem

import "loam/abi/linux"

// Layout of the address space of a process on x86-64 with four-level page tables.
const (
	// End is the first address that no region may contain: the last page below
	// 2^47 stays free, as on Linux (TASK_SIZE).
	End = 1<<47 - PageSize
	// DefaultFloor is Linux's default of vm.mmap_min_addr.
	DefaultFloor = 64 << 10
)

// Layout gives the bounds within which mappings are placed.
type Layout struct {
	Top   uint64 // mappings are placed below Top, from the top down
	Floor uint64 // the lowest address of a mapping
}

// NewLayout returns the layout that Linux uses for a stack limit in bytes. random returns 64 random bits; if it is nil,
// nothing is randomised. Space for the stack stays free below the end of the address space: the stack limit, but at
// least 128 MiB and at most 5/6 of the address space, plus the guard gap and the largest random shift of the stack.
// Below that space, Top is shifted down by up to 2^28 random pages.
func NewLayout(stackLimit uint64, random func() uint64) Layout {
	const (
		leastGap   = 128 << 20
		mostGap    = End / 6 * 5
		stackShift = 0x3fffff << PageShift // largest random shift of the stack in bytes: Linux's stack_maxrandom_size
	)
	pad, shift := uint64(guardGap), uint64(0)
	if random != nil {
		pad += stackShift
		shift = random() & (1<<28 - 1) << PageShift
	}
	gap := stackLimit
	if gap+pad > gap {
		gap += pad
	}
	gap = min(max(gap, leastGap), mostGap)
	return Layout{Top: down(End - gap - shift), Floor: DefaultFloor}
}

// place chooses the address of a mapping of size bytes. It uses the address hint if the range there is free, including
// the guard gap of a stack above it. The parameter big requests an address at a block boundary.
func (m *Map) place(hint, size uint64, big bool) (uint64, error) {
	if size > End {
		return 0, linux.ENOMEM
	}
	if hint = down(hint); hint != 0 {
		if hint < m.layout.Floor {
			hint = up(m.layout.Floor)
		}
		if hint <= End-size && m.free(hint, hint+size) {
			return hint, nil
		}
	}
	if big && hint == 0 && size <= End-BlockSize {
		if a := m.search(size + BlockSize); a != 0 {
			return (a + BlockSize) &^ (BlockSize - 1), nil
		}
	}
	if a := m.search(size); a != 0 {
		return a, nil
	}
	return 0, linux.ENOMEM
}

// placeLow chooses the address of a mapping with MAP_32BIT: the address hint if it is free and the mapping ends below 2 GiB,
// otherwise the lowest free address from 1 GiB on.
func (m *Map) placeLow(hint, size uint64) (uint64, error) {
	const low, high = 1 << 30, 1 << 31
	if hint = down(hint); hint != 0 {
		hint = max(hint, up(m.layout.Floor))
		if size <= high && hint <= high-size && m.free(hint, hint+size) {
			return hint, nil
		}
	}
	if a := m.regions.root.lowest(window{low, high, size}, 0, End); a != 0 {
		return a, nil
	}
	return 0, linux.ENOMEM
}

// free reports whether neither a region nor a guard gap overlaps the range.
func (m *Map) free(start, end uint64) bool {
	r := m.regions.find(start)
	return r == nil || end <= r.floor()
}

// search returns the highest address for a mapping of size bytes below the top of the layout. If there is none, it
// returns the lowest address above a third of the address space. If there is none either, it returns 0.
func (m *Map) search(size uint64) uint64 {
	floor := max(up(m.layout.Floor), PageSize)
	if a := m.regions.root.highest(window{floor, m.layout.Top, size}, 0, End); a != 0 {
		return a
	}
	return m.regions.root.lowest(window{up(End / 3), End, size}, 0, End)
}

// window describes a search for a hole of size bytes between the addresses low and high.
type window struct{ low, high, size uint64 }

// fit returns the part of a hole that is within the window, and whether that part is large enough. The hole is between
// from and to.
func (w window) fit(from, to uint64) (uint64, uint64, bool) {
	from, to = max(from, w.low), min(to, w.high)
	return from, to, to > from && to-from >= w.size
}

// skip reports whether no hole within the subtree of n fits. The subtree covers the addresses between from and to.
func (w window) skip(n *Region, from, to uint64) bool {
	if _, _, ok := w.fit(from, to); !ok {
		return true
	}
	return max(n.maxGap, hole(from, n.low), hole(n.high, to)) < w.size
}

// highest returns the highest end of a fitting hole in the subtree of n, which covers the addresses between from and
// to, or 0.
func (n *Region) highest(w window, from, to uint64) uint64 {
	if n == nil {
		if _, high, ok := w.fit(from, to); ok {
			return high - w.size
		}
		return 0
	}
	if w.skip(n, from, to) {
		return 0
	}
	if a := n.right.highest(w, n.end, to); a != 0 {
		return a
	}
	return n.left.highest(w, from, n.floor())
}

// lowest returns the lowest start of a fitting hole in the subtree of n, or 0. It is the mirror image of highest.
func (n *Region) lowest(w window, from, to uint64) uint64 {
	if n == nil {
		if low, _, ok := w.fit(from, to); ok {
			return low
		}
		return 0
	}
	if w.skip(n, from, to) {
		return 0
	}
	if a := n.left.lowest(w, from, n.floor()); a != 0 {
		return a
	}
	return n.right.lowest(w, n.end, to)
}
