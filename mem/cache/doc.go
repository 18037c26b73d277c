// Package cache is the page cache. It holds the pages of files; read, write and mmap see the same content.
//
// A File is a mem.Object. Its Pager fills a page at its first use. Dirty pages are written back when they are old, or
// when there are many of them. A file without a Pager exists only in its pages, which are neither written back nor
// evicted.
//
// # States of a page
//
//	absent ─ Load ─▶ loading ─▶ clean ◀─ written ─ writing
//	                             │ ▲                 ▲
//	                       store ▼ │ evict: absent   │ write-back begins
//	                            dirty ───────────────┘
//
// No page table maps a clean page as writable. So the first store faults, and the page becomes dirty. Write-back first
// marks the page clean, then removes write permission from its translations, and then passes the content to the Pager.
// A store before the removal is part of the content that is written; a later store faults. A page that is dirty, being
// written, or being copied is not evicted.
//
// # Eviction
//
// All pages of files with a Pager are in one ring, and each use of a page sets its reference bit. Reclaim implements
// the clock algorithm: it clears the bit of a page that has it and drops the page's translations, so that the next
// access through a mapping faults and sets the bit again. A clean page without the bit is evicted. The accessed bits of
// the hardware are not used, since package mem has no access to page tables.
//
// # Files on storage
//
// A file system passes its own reads and writes of a mapped file through the File (storage.go, fs.Pages). Such a write
// changes storage immediately, and then the present pages. Only stores through mappings make pages dirty. So a clean
// page equals storage; the file system reports ENOSPC and keeps the order of its journal; and a file that was never
// mapped has no pages in the cache.
//
// # Locks
//
//	File.writer  <  mem.Map's lock  <  File.mu  <  Cache.mu  <  Memory
//
// File.writer serialises the write-back of a file and changes of its storage. A method of a Pager is called either with
// only File.writer held, or with no lock held. Cache.mu guards the ring and the counters.
//
// The cache has no clock and no goroutine. Its owner calls Step with the current time. The age of a dirty page is
// counted from the last Step before the page became dirty.
package cache
