package kernel

import (
	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/space"
)

// Memory of the program: mmap(2), munmap(2), mprotect(2), madvise(2). A mapping is only an entry in core.dynamic,
// the list of regions; pages are populated when they are first accessed.
//
// A page of a mapping is absent, present or kept. A kept page has no rights, but its content stays: its entry has
// PageKept instead of PagePresent. A page is freed only after all CPUs have dropped their translations (discard).

// mmap implements mmap(2) for anonymous memory, which a program without child processes does not share. A hint outside of
// the range for such memory is ignored; Go's hints are all outside. There are no huge pages to reserve (MAP_HUGETLB), and no
// addresses below 4 GiB (MAP_32BIT): these flags return ENOMEM, as on a Linux system that has none left.
func (k *core) mmap(addr, size uint64, prot, flags int) int64 {
	const kind, fixed, anonymous, low, huge, noReplace = 0x0f, 0x10, 0x20, 0x40, 0x40000, 0x100000
	const shared, sharedValidate = 1, 3
	given := size
	size = pages(size)
	if flags&noReplace != 0 {
		flags |= fixed
	}
	switch {
	case flags&anonymous == 0:
		return -int64(linux.ENODEV)
	case flags&kind < shared || flags&kind > sharedValidate:
		return -int64(linux.EINVAL)
	case size < given:
		return -int64(linux.ENOMEM)
	case size == 0 || addr%amd64.PageSize != 0 && flags&fixed != 0:
		return -int64(linux.EINVAL)
	case flags&(huge|low) != 0:
		return -int64(linux.ENOMEM)
	}
	rights := rightsOf(prot)
	if free, total := k.pages.Pages(); rights != 0 && size > total*amd64.PageSize+sparse {
		k.say("loam: the program asks for ") // the mapping is larger than the machine's memory, so the program could never use it
		k.sayInt(size >> 20)
		k.say(" MiB of memory at once, and of ")
		k.sayInt(total * amd64.PageSize >> 20)
		k.say(" MiB there are ")
		k.sayInt(free * amd64.PageSize >> 20)
		k.say(" free; give the machine more (-m)\n")
		return -int64(linux.ENOMEM)
	}
	if flags&fixed == 0 {
		start, ok := k.dynamic.Reserve(addr, size, alignment(size), rights)
		if !ok {
			return -int64(linux.ENOMEM)
		}
		return int64(start)
	}
	if flags&noReplace != 0 && !k.dynamic.Free(addr, addr+size) {
		return -int64(linux.EEXIST)
	}
	if !k.dynamic.Set(addr, addr+size, rights) {
		return -int64(linux.ENOMEM)
	}
	k.discard(addr, addr+size)
	return int64(addr)
}

// sparse is the number of bytes by which a mapping may exceed the machine's memory. The runtime maps such ranges and uses
// little of them: the table of its heap's arenas has 32 MiB.
const sparse = 64 << 20

// alignment returns the alignment of a mapping of size bytes. The arenas of Go's heap need 64 MiB: if the alignment is
// smaller, the runtime makes another mapping. Big pages need 2 MiB.
func alignment(size uint64) uint64 {
	const arena = 64 << 20
	switch {
	case size >= arena:
		return arena
	case size >= amd64.BigPageSize:
		return amd64.BigPageSize
	}
	return amd64.PageSize
}

// rightsOf converts PROT_READ, PROT_WRITE and PROT_EXEC to rights.
func rightsOf(prot int) space.Rights {
	const read, write, execute = 1, 2, 4
	var r space.Rights
	if prot&(read|write|execute) != 0 {
		r = space.Read // the processor cannot prevent reading a mapped page
	}
	if prot&write != 0 {
		r |= space.Write
	}
	if prot&execute != 0 {
		r |= space.Execute
	}
	return r
}

// munmap implements munmap(2). It frees the pages of the range.
func (k *core) munmap(addr, size uint64) int64 {
	size = pages(size)
	switch {
	case !k.dynamic.Contains(addr, addr+size):
		return -int64(linux.EINVAL)
	case !k.dynamic.Clear(addr, addr+size):
		return -int64(linux.ENOMEM)
	}
	k.discard(addr, addr+size)
	return 0
}

// mprotect implements mprotect(2). It returns ENOMEM if a part of the range is not mapped.
func (k *core) mprotect(addr, size uint64, prot int) int64 {
	given := size
	size = pages(size)
	switch rights := rightsOf(prot); {
	case addr%amd64.PageSize != 0:
		return -int64(linux.EINVAL)
	case size < given:
		return -int64(linux.ENOMEM)
	case size == 0:
		return 0
	case !k.dynamic.Covered(addr, addr+size, 0):
		return -int64(linux.ENOMEM)
	case !k.dynamic.Set(addr, addr+size, rights):
		return -int64(linux.ENOMEM)
	default:
		k.protect(addr, addr+size, rights)
	}
	return 0
}

// madvise implements madvise(2). MADV_DONTNEED and MADV_FREE free the pages. Other known advice is ignored; unknown advice
// returns EINVAL.
func (k *core) madvise(addr, size uint64, advice int) int64 {
	const dontNeed, free, dontFork, populateWrite, collapse = 4, 8, 10, 23, 25
	given := size
	size = pages(size)
	known := advice >= 0 && advice <= dontNeed || advice == free || advice >= dontFork && advice <= populateWrite || advice == collapse
	switch {
	case !known || addr%amd64.PageSize != 0 || size < given || addr+size < addr:
		return -int64(linux.EINVAL)
	case size == 0:
		return 0
	}
	if !k.dynamic.Covered(addr, addr+size, 0) {
		return -int64(linux.ENOMEM)
	}
	if advice == dontNeed || advice == free {
		k.discard(addr, addr+size)
	}
	return 0
}

// populate maps a zeroed page at an address, or maps again the page that protect has kept there. It returns false
// if no memory is left.
func (k *core) populate(va uint64, region space.Region) bool {
	ok := k.mapPage(va, region)
	if ok && populated != nil {
		populated(va)
	}
	return ok
}

// mapPage implements populate.
func (k *core) mapPage(va uint64, region space.Region) bool {
	flags := k.flagsOf(region.Rights)
	if entry, size := k.tables.Lookup(va); entry&amd64.PageKept != 0 {
		return k.tables.Map(va&^(size-1), amd64.Physical(entry), size, flags, k.allocPage)
	}
	if k.populateBig(va, region) {
		return true
	}
	pa, ok := k.pages.Alloc()
	if !ok {
		return false
	}
	if !k.tables.Map(va, pa, amd64.PageSize, flags, k.allocPage) {
		k.pages.Free(pa)
		return false
	}
	k.watch()
	return true
}

// populateBig maps a big page in the 2 MiB block that contains an address, if the block has no pages yet. It requires that
// at least a quarter of memory is free, and that the 2 MiB below are populated, which shows that the program fills its
// memory upwards. A small program thus uses no more memory than it needs.
func (k *core) populateBig(va uint64, region space.Region) bool {
	const big, plenty = amd64.BigPageSize, 4
	start := va &^ (big - 1)
	if region.Rights&space.Write == 0 || region.Start+big > start || region.End < start+big {
		return false
	}
	if free, total := k.pages.Pages(); free < total/plenty {
		return false
	}
	if k.tables.Entry(start-big, big) == 0 || k.tables.Entry(start, big) != 0 {
		return false
	}
	pa, ok := k.pages.AllocBlock()
	if !ok {
		return false
	}
	if !k.tables.Map(start, pa, big, k.flagsOf(region.Rights), k.allocPage) {
		k.pages.FreeBlock(pa)
		return false
	}
	return true
}

// split replaces the big page that contains an address by small ones, unless the page begins at that address.
func (k *core) split(va uint64) {
	if _, size := k.tables.Lookup(va); size != amd64.BigPageSize || va%amd64.BigPageSize == 0 {
		return
	}
	page, ok := k.pages.Alloc()
	if !ok {
		k.outOfMemory()
	}
	k.tables.Split(va, page, func() { k.flushRange(va, va+amd64.PageSize, false) })
}

// flagsOf converts rights to the flags of a page.
func (k *core) flagsOf(rights space.Rights) uint64 {
	var flags uint64
	if rights&space.Write != 0 {
		flags |= amd64.PageWrite
	}
	if rights&space.Execute == 0 {
		flags |= k.noExecute()
	}
	return flags
}

// discard unmaps all pages from va to end, and the page tables that are empty afterwards. It frees them when no CPU
// has a translation any more.
func (k *core) discard(va, end uint64) {
	k.split(va)
	k.split(end)
	for va < end {
		next := min((va+amd64.BigPageSize)&^(amd64.BigPageSize-1), end)
		n, block := 0, uint64(0)
		k.tables.Each(va, next, func(_, entry, size uint64) uint64 {
			if size == amd64.BigPageSize {
				block = amd64.Physical(entry)
				return 0
			}
			k.freed[n] = amd64.Physical(entry)
			n++
			return 0
		})
		if n > 0 || block != 0 {
			empty, tablesGone := k.tables.Prune(va)
			k.flushRange(va, next, tablesGone > 0)
			for _, pa := range k.freed[:n] {
				k.pages.Free(pa)
			}
			for _, pa := range empty[:tablesGone] {
				k.pages.Free(pa)
			}
			if block != 0 {
				k.pages.FreeBlock(block)
			}
		}
		va = next
	}
}

// protect changes the rights of the populated pages. Pages without any rights are unmapped but kept.
func (k *core) protect(va, end uint64, rights space.Rights) {
	k.split(va)
	k.split(end)
	flags := k.flagsOf(rights) | amd64.PagePresent
	if rights == 0 {
		flags = amd64.PageKept
	}
	changed := false
	k.tables.Each(va, end, func(_, entry, _ uint64) uint64 {
		changed = true
		return amd64.Physical(entry) | flags | entry&amd64.PageBig
	})
	if changed {
		k.flushRange(va, end, false)
	}
}

// touch populates a piece of the program's memory so that the kernel can access it. It returns false if the program
// itself lacks the rights in want.
func (k *core) touch(addr, size uint64, want space.Rights) bool {
	end := addr + size
	switch {
	case size == 0:
		return true
	case end < addr:
		return false
	case addr >= boot.Image && !k.inImage(addr, end, want):
		return false
	case addr < boot.Image && !k.dynamic.Covered(addr, end, want):
		return false
	}
	for va := addr &^ (amd64.PageSize - 1); va < end; va += amd64.PageSize {
		if entry, _ := k.tables.Lookup(va); entry&amd64.PagePresent != 0 {
			continue
		}
		if region, _ := k.regionAt(va); !k.populate(va, region) {
			k.outOfMemory()
		}
	}
	return true
}

// inImage reports whether the program's own file has a right to the whole range.
func (k *core) inImage(addr, end uint64, want space.Rights) bool {
	for at := 0; ; {
		s, next, ok := boot.NextSegment(k.imageHeader(), at)
		if !ok {
			return false
		}
		if k.zeroed.Start > s.Start && k.zeroed.Start < s.End {
			s.End = k.zeroed.End
		}
		if addr >= s.Start && end <= s.End && (want&space.Write == 0 || s.Writable) {
			return true
		}
		at = next
	}
}

// regionAt returns the region that contains an address and whose pages are populated on demand. It returns
// false if there is none.
func (k *core) regionAt(addr uint64) (space.Region, bool) {
	if addr >= k.zeroed.Start && addr < k.zeroed.End {
		return space.Region{Start: k.zeroed.Start, End: k.zeroed.End, Rights: space.Read | space.Write}, true
	}
	return k.dynamic.Find(addr)
}

// mapped reports whether a range is in use, as anonymous memory or by the program's own file.
func (k *core) mapped(addr, size uint64) bool {
	end := addr + size
	if addr >= boot.Image {
		return end >= addr && k.inImage(addr, end, 0)
	}
	return k.dynamic.Covered(addr, end, 0)
}

// mincore implements mincore(2). It stores a byte for each page: 1 if the page is in memory.
func (k *core) mincore(addr, size, vector uint64) int64 {
	count := pages(size) / amd64.PageSize
	switch {
	case addr%amd64.PageSize != 0:
		return -int64(linux.EINVAL)
	case size == 0:
		return 0
	case pages(size) < size || addr+pages(size) < addr:
		return -int64(linux.ENOMEM)
	case vector == 0 || !k.touch(vector, count, space.Write):
		return -int64(linux.EFAULT)
	case !k.mapped(addr, pages(size)):
		return -int64(linux.ENOMEM)
	}
	present := bytesAt(vector, int(count))
	for i := range present {
		present[i] = 0
		if entry, _ := k.tables.Lookup(addr + uint64(i)*amd64.PageSize); entry&(amd64.PagePresent|amd64.PageKept) != 0 {
			present[i] = 1
		}
	}
	return 0
}

// mlock implements mlock(2) and munlock(2): they succeed for memory that is mapped.
func (k *core) mlock(addr, size uint64) int64 {
	start := addr &^ (amd64.PageSize - 1)
	size = pages(addr + size - start)
	if start+size < start {
		return -int64(linux.EINVAL)
	}
	if size != 0 && !k.mapped(start, size) {
		return -int64(linux.ENOMEM)
	}
	return 0
}

// mremap implements mremap(2) for memory with the same rights, without MREMAP_FIXED and MREMAP_DONTUNMAP (EINVAL). If the
// memory moves, it is copied.
func (k *core) mremap(addr, size, want uint64, flags int) int64 {
	const mayMove = 1
	size, want = pages(size), pages(want)
	region, ok := k.dynamic.Find(addr)
	switch {
	case addr%amd64.PageSize != 0 || size == 0 || want == 0 || flags&^mayMove != 0:
		return -int64(linux.EINVAL)
	case !ok || addr+size > region.End || addr+size < addr:
		return -int64(linux.EFAULT)
	case want < size:
		if errno := k.munmap(addr+want, size-want); errno != 0 {
			return errno
		}
		return int64(addr)
	case want == size:
		return int64(addr)
	case k.dynamic.Free(addr+size, addr+want) && k.dynamic.Set(addr+size, addr+want, region.Rights):
		return int64(addr)
	case flags&mayMove == 0:
		return -int64(linux.ENOMEM)
	}
	to, ok := k.dynamic.Reserve(0, want, alignment(want), region.Rights)
	if !ok {
		return -int64(linux.ENOMEM)
	}
	for offset := uint64(0); offset < size; offset += amd64.PageSize {
		entry, _ := k.tables.Lookup(addr + offset)
		if entry&(amd64.PagePresent|amd64.PageKept) == 0 {
			continue
		}
		if !k.copyPage(addr+offset, to+offset, region.Rights) {
			k.munmap(to, want)
			return -int64(linux.ENOMEM)
		}
	}
	k.munmap(addr, size)
	return int64(to)
}

// copyPage maps a page at an address (the parameter to) with the content of the page at
// another address (from). It returns false if no memory is left.
func (k *core) copyPage(from, to uint64, rights space.Rights) bool {
	pa, ok := k.pages.Alloc()
	if !ok {
		return false
	}
	flags := k.flagsOf(rights)
	if !k.tables.Map(to, pa, amd64.PageSize, flags, k.allocPage) {
		k.pages.Free(pa)
		return false
	}
	entry, size := k.tables.Lookup(from)
	source := amd64.Physical(entry) + from&(size-1)&^(amd64.PageSize-1)
	copy(bytesAt(uint64(k.window)+pa, amd64.PageSize), bytesAt(uint64(k.window)+source, amd64.PageSize))
	if rights == 0 {
		k.protect(to, to+amd64.PageSize, 0)
	}
	return true
}
