// Package user runs threads in ring 3. It is ordinary Go above the runtime: a goroutine calls Context.Run, and the
// thread runs until something happens. Run returns the reason, and the goroutine handles it and calls Run again.
// While a thread's system call blocks, its goroutine is parked.
//
// # Parts
//
//	Context  the registers of one thread in ring 3, and Run
//	Space    the page tables of one process, and copies to and from its memory
//	Pages    physical pages for both, and for the memory of processes
//
// # How it runs
//
// During Run the goroutine keeps its P and its M. The kernel's core sees the M as a thread like any other. The
// assembly in unikernel/overlay/_vm/runtime/loam_user_amd64.s enters ring 3 and returns.
//
// A system call or an exception takes no lock and does not reach the core. An interrupt does reach it: the thread
// is first brought back to the end of Run, then the interrupt is served as in ring 0. So signals of the Go runtime
// (preemption, profiling) interrupt a goroutine that is about to return from a function. A request to preempt a
// thread in ring 3 needs nothing else, since the signal sends an interrupt to the thread's CPU.
//
// The upper half of each address space is the kernel's and is the same everywhere. CR3 changes only when a CPU
// enters ring 3 for another process; a goroutine in ring 0 runs in the address space that its CPU used last. The
// kernel never uses user addresses: it walks the page tables and copies through the window onto physical memory.
//
// # Invariants
//
//   - A context is used by one goroutine; only Kick may be called by other goroutines.
//   - Values that the processor could reject on entry to ring 3 (an address, a selector, flags) are replaced or
//     checked on each entry, whatever the context contains.
//   - Apply returns only when no CPU has a translation to a removed page, and no copy uses it.
//
// # Rejected
//
// Entering the core on each way in and out, as threads of ring 0 do: it takes the lock, and every table of the core
// would need a second kind of thread.
//
// A trap frame in the Go heap: the processor could store to it while its page is absent, during the split of a big
// page.
//
// Keeping vector registers in the processor while the goroutine serves a call: Go code uses them.
package user
