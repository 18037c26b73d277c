// Package cache is the page cache: the pages of files, seen alike by read, write and mmap.
//
// A File is a mem.Object. Its pages are filled by a Pager on the first use and
// written back by age and by share of the cache. A file without a Pager lives in its pages only; they are
// neither written back nor evicted.
//
// # States of a page
//
//	absent ─ Load ─▶ loading ─▶ clean ◀─ written ─ writing
//	                             │ ▲                 ▲
//	                       store ▼ │ evict: absent   │ write-back begins
//	                            dirty ───────────────┘
//
// A clean page is never writable in any page table, so the first store faults and makes it
// dirty. Write-back marks the page clean first, then restricts its translations, then
// hands the content to the Pager; a store in between is written too, and a later
// one faults. A page that is dirty, being written, or being copied is not evicted.
//
// # Eviction
//
// All pages with a Pager are in one ring, and each use sets a reference bit. Reclaim turns the
// ring like a clock: a page with the bit loses it, and its translations, so that the next
// access through a mapping faults and sets it again; a clean page without the bit is evicted.
// Hardware's accessed bits are not read, since mem knows no page tables.
//
// # Files on storage
//
// A file system passes its own accesses to the content of a mapped file through the File (storage.go, fs.Pages). Calls change
// storage at once and then the present pages; only stores through mappings make pages dirty. So a clean page equals
// storage, ENOSPC and the order of a journal are the file system's, and a file that was never mapped has no pages here.
//
// # Locks
//
//	File.writer  <  mem.Map's lock  <  File.mu  <  Cache.mu  <  Memory
//
// File.writer serialises the write-back of a file, and changes of its storage. Pager methods are called with it, or with no lock.
// Cache.mu guards the ring and counters.
//
// The cache has no clock and no goroutine. Its owner calls Step with the time; dirty pages
// have the age of the Step before.
package cache
