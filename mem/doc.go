// Package mem keeps the accounts of user memory: physical pages, the objects
// that supply them, and the map of regions of each process. It knows no processor
// and holds no page tables.
//
// # The parts
//
//	Memory   allocates physical pages; implemented by the kernel, and by memtest on a host
//	Object   supplies pages by index: Shared (anonymous), Fixed (vDSO), mem/cache.File (files)
//	Region   a range of addresses with one protection, backed by one object or by zeros
//	Map      the regions of one process, in a balanced tree, and its private pages
//	Tables   the page tables of one process, implemented by the kernel
//
// A private page belongs to the Map, in a sparse table keyed by virtual page
// number (table.go), not to an object. It is a zero-filled page or the private copy
// of a page of the region's object. Regions therefore split, merge and change protection
// without touching pages.
//
// # Effects
//
// A Map never edits page tables. Each operation collects effects (unmap a
// range, restrict a range, map a page) and passes them to Tables.Apply in one batch,
// under the map's lock. Apply returns when no processor uses a removed translation any
// more. Only then are the pages of the batch released, so no page is reused while a
// stale translation to it exists.
//
// Page tables are a cache of the Map: dropping a translation is always allowed, and the next
// access faults and restores it. Tables may therefore drop a whole 2 MiB translation when a
// part of it changes.
//
// # Ownership and locks
//
// A Map is shared by all threads of its process. One mutex per map serialises its
// operations, faults included. Every exported method of Map takes it. Lock order:
//
//	Map.mu  <  Object's own lock  <  lists of mem/cache  <  Memory's own lock
//
// An object that withdraws a page (eviction, truncation, MADV_REMOVE) must drop its
// translations in every map. It does so without holding its own lock, by Map.Revoke. A
// fault holds Map.mu from asking the object until Apply returns. The object
// first removes the page from its index, then calls Revoke, then releases the page; so a translation
// made by a concurrent fault is always dropped before the page is freed.
//
// A method never blocks for input or output under Map.mu. If an object has to
// load a page, Fault unlocks, calls Object.Load and starts again. Map.mu is held for at most
// the copy of a page, or the zeroing of a block of 2 MiB.
//
// A reference on a page counts its owners: entries of private tables, an object's index, a
// copy in progress. A page with one owner in a table that is not shared is
// writable in place; all others are copied on a write.
//
// # Fork
//
// Fork copies regions and shares the private table leaf by leaf (2 MiB of addresses
// each). A leaf is immutable while shared; the first change copies it. Fork of 10,000 pages
// thus copies 20 pointers and makes the parent's private ranges read-only. The
// child's page tables start empty; a fault maps the pages around it as well.
//
// # Overcommit
//
// By default a single mapping larger than memory is refused, and the sum is not
// limited; see Account. Running out of pages at a fault is not an error of the map:
// Fault returns NoMemory. The caller frees pages of the page cache, or ends the process that
// mem/pressure chooses.
//
// # Rejected
//
//   - One goroutine per map that receives requests. A fault would cost two channel
//     hops (some 400 ns) and a wake-up; the work itself takes 200 ns. Faults cannot be batched:
//     the thread waits for each.
//   - A read lock for faults, or a lock per region, as in Linux since 6.4. It lets two
//     threads of one process fault in parallel. The critical section is short except
//     for the zeroing of pages. To be reconsidered with a profile that shows waiting.
//   - Objects with chains of shadow objects (Mach, BSD). Chains grow with each fork
//     and must be collapsed; lookups walk them.
//   - Tables of references per region (UVM's amap). They must be split and copied with
//     regions, and mremap has to renumber them.
//   - Reading private pages from hardware page tables, as Linux does. It needs a
//     processor, and cannot be tested on a host.
//   - Applying effects after unlocking. Another operation on the same range could then be
//     applied first, and a page freed between could stay mapped.
package mem
