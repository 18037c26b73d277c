// Package kernel is the core under the Go runtime of a program that runs in ring
// 0: memory, threads, faults, clocks. To the runtime it looks like the part of
// Linux that the runtime asks for; what programs ask for is served above, by
// package posix, in ordinary goroutines.
//
// # How it runs
//
// The program and the kernel share the processor's ring 0, one address space and
// one program file. They differ in who is interrupted: a thread of the program
// runs with interrupts on; the kernel runs with interrupts off, on the CPU's own
// stack and with a g of the kernel's, from Enter to leave, and never waits for longer
// than some microseconds. A thread that has to is put into a table, and another goes on. So there is one
// stack a CPU, none a thread, and no context to switch: there are frames, and
// leave goes on with one of them.
//
// One lock (lock.go) covers all of the kernel's state: it is taken in Enter and
// given back in leave.
//
// # What code may do here
//
// It is ordinary Go, and may use the CPU's stack of 32 KiB; what needs more ends the
// machine with a report (stack.go). It may not allocate, and not store a pointer anywhere but in a local
// variable: both lead into the garbage collector, which belongs to the program.
// So state refers to memory by uintptr, and to threads by number. It may not
// panic (that ends in crash), use maps, channels, interfaces made on the spot,
// or variables that are set by package initialisation, which has not run when the
// kernel starts; nor call assembly of the old calling convention (internal/bytealg
// has some), whose callers load g anew, and that is the program's. A test of
// unikernel/image looks for such calls in the linked program.
//
// # Reading order
//
// start.go, stack.go, the way from the monitor to the first instruction of the runtime;
// enter.go; then call.go, memory.go, fault.go, wait.go, deliver.go, profile.go,
// trapped.go; clock.go, reference.go, wall.go; smp.go, firmware.go,
// interrupt.go, device.go; widen.go.
// Assembly: unikernel/overlay/_vm/runtime.
package kernel
