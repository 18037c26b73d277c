// Package user runs threads in ring 3. It is ordinary Go code above the runtime. A goroutine calls Context.Run, and the
// thread runs in ring 3 until a system call, a fault or an interrupt. Run returns the reason; the goroutine handles it
// and calls Run again. While a thread's system call blocks, its goroutine is parked.
//
// # Parts
//
//	Context  the registers of one thread in ring 3, and Run
//	Space    the page tables of one process, and copies to and from its memory
//	Pages    physical pages for contexts, for page tables, and for the memory of processes
//
// # How it runs
//
// During Run the goroutine keeps its P and its M. Package kernel treats the M as it treats any
// thread of ring 0. The assembly in unikernel/overlay/_vm/runtime/loam_user_amd64.s enters ring 3 and returns.
//
// A system call or an exception takes no lock and does not enter package kernel. An interrupt does: the entry code
// first moves the thread to the end of Run, and package kernel then handles the interrupt as one in ring 0. So
// signals of the Go runtime (preemption, profiling) interrupt a goroutine that is about to return from a function.
// Nothing else is needed to preempt a thread in ring 3: the signal sends an interrupt to the thread's CPU.
//
// The upper half of each address space is the kernel's and is the same everywhere. On a CPU that is vulnerable to Meltdown,
// ring 3 runs on a second root table, which maps almost nothing of the kernel (kernel/isolation.go). On other CPUs, CR3
// changes only when a CPU enters ring 3 for another process. A goroutine in ring 0 runs in the address space that its CPU
// used last. The kernel uses user addresses only in copyDirect, a routine in assembly that fails at a page fault. Other
// copies walk the page tables and use the window onto physical memory.
//
// # Invariants
//
//   - A context is used by one goroutine; only Kick and Bind may be called by other goroutines.
//   - A thread with a CPU set is in ring 3 only on the CPU of its seat (seats.go).
//   - Values that the processor could reject on entry to ring 3 (an address, a selector, flags) are checked or replaced
//     on each entry.
//   - GS belongs to ring 3 for some instructions of ring 0 after each entry. No exception occurs there, except a debug
//     exception at the first one, which does not use GS (loam_entry_amd64.s), and those that end the machine.
//   - Apply returns only when no CPU has a translation to a removed page, and no copy uses such a page.
//
// # Rejected
//
// Entering package kernel on each entry to ring 3 and each return, as threads of ring 0 do for a call: this would take
// the kernel's lock each time, and each table of package kernel would need a second kind of thread.
//
// A trap frame in the Go heap: the kernel splits big pages of the heap, and while it does, the page is absent. The
// processor could store to the frame at that moment.
//
// Keeping vector registers in the processor while the goroutine handles a call: Go code uses these registers.
package user
