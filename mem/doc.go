// Package mem manages the memory of user processes: physical pages, the objects that supply them, and the regions of
// each process's address space. It does not depend on a processor, and it contains no page tables.
//
// # The parts
//
//	Memory   allocates physical pages; implemented by the kernel, and by memtest on a host
//	Object   supplies pages by index: Shared (anonymous), Fixed (vDSO), mem/cache.File (files)
//	Region   a range of addresses with one protection, backed by one object or by zeros
//	Map      the regions of one process, in a balanced tree, and its private pages
//	Tables   the page tables of one process, implemented by the kernel
//
// A private page belongs to a Map, not to an object. The Map stores it in a sparse table, indexed by virtual page
// number (table.go). A private page is either a zero-filled page or a private copy of a page of the region's object. So
// regions can be split, merged and reprotected without touching their pages.
//
// # Effects
//
// A Map never changes page tables itself. Each operation collects effects: unmap a range, restrict the rights of a
// range, map a page. It passes them to Tables.Apply in one batch, with the map's lock held. Apply returns when no
// processor uses a removed translation any more. Only then are the pages of the batch released, so no page is reused
// while a stale translation to it exists.
//
// Page tables are a cache of the Map. Dropping a translation is always allowed: the next access faults, and the fault
// restores it. For example, Tables may drop a whole 2 MiB translation when a part of it changes.
//
// # Blocks
//
// A block is a big page of 2 MiB: 512 contiguous physical pages. Regions for which they are enabled (block.go) get a block at the
// first store to its addresses. Each page of a block has its own reference count, so nothing but a fault treats a
// block as a whole: it maps a block by one translation, while the leaf of the private table records that its pages are complete.
//
// # Ownership and locks
//
// A Map is shared by all threads of its process. One mutex per map serialises its
// operations, faults included. Every exported method of Map takes it. Lock order:
//
//	Map.mu  <  Object's own lock  <  lists of mem/cache  <  Memory's own lock
//
// An object that withdraws a page (eviction, truncation, MADV_REMOVE) must drop its translations in every map. It first
// removes the page from its index, then calls Map.Revoke without holding its own lock, and then releases the page. A
// fault holds Map.mu from its request to the object until Apply returns. So the translation that a concurrent fault
// makes is always dropped before the page is freed.
//
// A method never blocks for input or output while it holds Map.mu. If an object has to load a page, Fault unlocks the
// map, calls Object.Load and starts again. The longest work under Map.mu is copying a page or zeroing a block of 2 MiB.
//
// The reference count of a page is the number of its owners: entries of private tables, an object's index, copies in
// progress. A pin (pin.go) is a reference, but no owner. A private page with one owner, in a leaf that is not shared, is writable in place. Any other private page
// is copied on a write.
//
// # Fork
//
// Fork copies the regions. Parent and child share the private table leaf by leaf; a leaf covers 2 MiB of addresses. A
// leaf is immutable while shared; the first change copies it. Fork of 10,000 pages thus copies 20 pointers and makes
// the parent's private ranges read-only. The child's page tables start empty; each fault also maps the pages around its
// address.
//
// # Overcommit
//
// By default a single mapping larger than memory is refused, and the sum of all mappings is not limited; see Account.
// If there is no free page at a fault, the map does not fail: Fault returns NoMemory. The caller then frees pages of
// the page cache, or kills the process that mem/pressure chooses, and tries again.
//
// # Rejected
//
//   - One goroutine per map that receives requests. A fault would cost two channel
//     hops (some 400 ns) and a wake-up; the work itself takes 200 ns. Faults cannot be batched:
//     the thread waits for each.
//   - A read lock for faults, or a lock per region, as in Linux since 6.4. It lets two
//     threads of one process fault in parallel. The critical section is short except
//     for the zeroing of pages. To be reconsidered if a profile shows that threads
//     wait for the lock.
//   - Objects with chains of shadow objects (Mach, BSD). Each fork makes
//     the chains longer, so code is needed that shortens them, and each lookup of a
//     page has to follow a chain.
//   - For each region, a table of references to its private pages (UVM's amap). The
//     tables must be split and copied with their regions, and mremap has to renumber
//     their entries.
//   - Reading private pages from hardware page tables, as Linux does. It needs a
//     processor, and cannot be tested on a host.
//   - Applying effects after unlocking the map. The effects of a later operation on the same range could then be
//     applied first, and a page freed in between could stay mapped.
package mem
