// Package kernel is the kernel below the Go runtime of a program that runs in ring 0. It manages memory,
// threads, faults and clocks. To the runtime it looks like the part of Linux that the runtime uses. The system
// calls of programs are served above it, by package posix, in ordinary goroutines.
//
// # How it runs
//
// The program and the kernel share ring 0, one address space and one program file. They differ in how they can be
// interrupted. A thread of the program runs with interrupts enabled. The kernel runs with interrupts disabled from
// Enter to leave, on the CPU's own stack and with a g of its own. It never blocks for more than a few microseconds:
// a thread that has to wait is recorded in a table, and another thread continues. So there is one kernel stack for
// each CPU and none for a thread. There is no context to switch: each thread has a trap frame, and leave resumes
// one of them.
//
// All of the kernel's state is one structure, core (core.go). One lock (lock.go) protects it. Enter acquires the lock and
// leave releases it.
//
// # What code may do here
//
// The code is ordinary Go. It may use the CPU's stack of 32 KiB; an overflow stops the machine with a report
// (stack.go).
//
// It may not:
//
//   - allocate, or store a pointer anywhere but in a local variable: both involve the garbage collector, which
//     belongs to the program. So state refers to memory by uintptr and to threads by number.
//   - panic: a panic ends in crash.
//   - use maps, channels, or conversions to interface types.
//   - use variables that package initialisation sets: it has not run when the kernel starts.
//   - call assembly of the old calling convention, ABI0 (internal/bytealg has some): the caller reloads g
//     afterwards and gets the program's g. A test of unikernel/image searches the linked program for such calls.
//
// # Reading order
//
// core.go; start.go and stack.go: from the monitor to the first instruction of the runtime. enter.go; then call.go,
// memory.go, fault.go, wait.go, poller.go, deliver.go, profile.go, trapped.go; clock.go, reference.go, wall.go; smp.go,
// firmware.go, interrupt.go, device.go; user.go, isolation.go; emulation.go. The assembly is in unikernel/overlay/_vm/runtime.
package kernel
