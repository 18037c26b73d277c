// Package space records which addresses of an address space are in use, and with which rights. It does not access
// or manage the memory behind them, which is populated on demand.
//
// Regions are kept sorted in one array. Adjacent regions with the same rights are merged: the thousands of mappings
// that the Go runtime makes become a few dozen regions. The array has a fixed size. When it is full, an operation
// that would add a region fails, as on Linux (vm.max_map_count).
//
// Nothing here allocates or locks: the caller provides the locking.
package space

// PageSize is the size of a page in bytes. All addresses and sizes are multiples of it.
const PageSize = 4096

// Rights is a set of access rights.
type Rights uint8

// Values of Rights. A region without any is reserved.
const (
	Read Rights = 1 << iota
	Write
	Execute
)

// Region is a range of addresses in use; End is exclusive.
type Region struct {
	Start, End uint64
	Rights     Rights
}

// MaxRegions is the maximum number of regions.
const MaxRegions = 4096

// Space is the set of regions. The zero value has no addresses: call Init first.
type Space struct {
	low, high uint64
	cursor    uint64 // address at which the search for a gap starts
	regions   [MaxRegions]Region
	count     int
}

// Init sets the range of addresses and makes all of them free.
func (s *Space) Init(low, high uint64) {
	s.low, s.high, s.cursor, s.count = low, high, low, 0
}

// search returns the index of the first region that ends after addr.
func (s *Space) search(addr uint64) int {
	lo, hi := 0, s.count
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.regions[mid].End <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Find returns the region that contains addr; false if addr is free.
func (s *Space) Find(addr uint64) (Region, bool) {
	i := s.search(addr)
	if i == s.count || s.regions[i].Start > addr {
		return Region{}, false
	}
	return s.regions[i], true
}

// Contains reports whether start to end is a non-empty range of whole pages in this space.
func (s *Space) Contains(start, end uint64) bool {
	return start < end && start >= s.low && end <= s.high && (start|end)%PageSize == 0
}

// Covered reports whether every address from start to end is in use with at least these rights.
func (s *Space) Covered(start, end uint64, rights Rights) bool {
	for i := s.search(start); i < s.count && s.regions[i].Start <= start; i++ {
		if s.regions[i].Rights&rights != rights {
			return false
		}
		if start = s.regions[i].End; start >= end {
			return true
		}
	}
	return false
}

// Reserve adds a region of a size: at hint if that range is free, else in a gap, at a multiple of align, which is a
// power of 2. It reports false if there is no room.
func (s *Space) Reserve(hint, size, align uint64, rights Rights) (uint64, bool) {
	if size == 0 || size%PageSize != 0 || size > s.high-s.low {
		return 0, false
	}
	if end := hint + size; s.Contains(hint, end) && s.isFree(hint, end) {
		return hint, s.Set(hint, end, rights)
	}
	start, ok := s.gap(s.cursor, s.high, size, align)
	if !ok {
		if start, ok = s.gap(s.low, s.high, size, align); !ok {
			return 0, false
		}
	}
	if !s.Set(start, start+size, rights) {
		return 0, false
	}
	s.cursor = start + size
	return start, true
}

// Free reports whether start to end is a range of this space in which no address is in use.
func (s *Space) Free(start, end uint64) bool { return s.Contains(start, end) && s.isFree(start, end) }

func (s *Space) isFree(start, end uint64) bool {
	i := s.search(start)
	return i == s.count || s.regions[i].Start >= end
}

// gap finds size free bytes between two bounds, at a multiple of align.
func (s *Space) gap(low, high, size, align uint64) (uint64, bool) {
	start := low
	for i := s.search(low); ; i++ {
		start = (start + align - 1) &^ (align - 1)
		if start < low || start > high || size > high-start {
			return 0, false
		}
		if i == s.count || s.regions[i].Start >= start && s.regions[i].Start-start >= size {
			return start, true
		}
		start = max(start, s.regions[i].End)
	}
}

// Set gives every address from start to end these rights, whether it was in use or free. It reports false, and
// changes nothing, if the range is invalid or there would be too many regions.
func (s *Space) Set(start, end uint64, rights Rights) bool {
	return s.replace(start, end, Region{start, end, rights}, true)
}

// Clear makes all addresses from start to end free. It fails as Set does.
func (s *Space) Clear(start, end uint64) bool {
	return s.replace(start, end, Region{}, false)
}

// replace removes the range from start to end from all regions, and then adds region if put is set.
func (s *Space) replace(start, end uint64, region Region, put bool) bool {
	if !s.Contains(start, end) {
		return false
	}
	// The regions from first up to last are affected. A piece of the first and of the last may remain.
	first := s.search(start)
	last := first
	for last < s.count && s.regions[last].Start < end {
		last++
	}
	var fresh [3]Region
	n := 0
	if first < last && s.regions[first].Start < start {
		fresh[n] = Region{s.regions[first].Start, start, s.regions[first].Rights}
		n++
	} else if put && first > 0 && s.regions[first-1].End == start && s.regions[first-1].Rights == region.Rights {
		first--
		fresh[n] = s.regions[first]
		n++
	}
	right := Region{}
	if first < last && s.regions[last-1].End > end {
		right = Region{end, s.regions[last-1].End, s.regions[last-1].Rights}
	} else if put && last < s.count && s.regions[last].Start == end && s.regions[last].Rights == region.Rights {
		right = s.regions[last]
		last++
	}
	if put {
		n = join(&fresh, n, region)
	}
	if right.End != 0 {
		n = join(&fresh, n, right)
	}
	return s.splice(first, last, fresh[:n])
}

// join appends r to the n regions of list, or extends the last one, and returns the new length.
func join(list *[3]Region, n int, r Region) int {
	if n > 0 && list[n-1].End == r.Start && list[n-1].Rights == r.Rights {
		list[n-1].End = r.End
		return n
	}
	list[n] = r
	return n + 1
}

// splice replaces the regions from first up to last by fresh. It reports false, and changes nothing, if there would
// be too many.
func (s *Space) splice(first, last int, fresh []Region) bool {
	count := s.count - (last - first) + len(fresh)
	if count > MaxRegions {
		return false
	}
	copy(s.regions[first+len(fresh):count], s.regions[last:s.count])
	copy(s.regions[first:], fresh)
	s.count = count
	return true
}
