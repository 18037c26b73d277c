// Package machine is the interface between package task and the component that runs threads in ring 3: address spaces and
// registers. Package kernel/user implements it in a virtual machine. In tests, a script implements it.
package machine

import (
	"loam/arch/amd64"
	"loam/mem"
)

// Reason is the reason why a thread left ring 3.
type Reason uint8

// Values of Reason: why a thread left ring 3.
const (
	Call        Reason = iota // the thread executed the SYSCALL instruction
	Fault                     // the thread accessed a page that is not mapped, or not for this kind of access
	Exception                 // the thread caused another exception; Frame.Vector is its vector
	Interrupted               // any other reason: the caller checks for requests, and runs the thread again
	Moved                     // the thread has not run: see Thread.Watch
)

// Machine runs threads in address spaces. Its methods are safe for concurrent use.
type Machine interface {
	Memory() mem.Memory
	// NewSpace returns an empty address space. Errors: ENOMEM.
	NewSpace() (Space, error)
	// Pages returns the size of the memory, in pages.
	Pages() int64
}

// Space is an address space with its page tables.
type Space interface {
	mem.Tables
	// Read and Write copy memory of the process. They return the number of bytes copied, which is less than len(b) if the
	// next byte is not mapped, or for Write not writable.
	Read(addr uint64, b []byte) int
	Write(addr uint64, b []byte) int
	// Load reads an aligned 32-bit word. It is atomic with respect to instructions of the process. ok is false if the word is not
	// mapped.
	Load(addr uint64) (value uint32, ok bool)
	// CompareAndSwap replaces an aligned 32-bit word if its value is old. It is atomic with respect to instructions of the
	// process. It returns the previous value. ok is false if the word is not mapped or not writable.
	CompareAndSwap(addr uint64, old, value uint32) (found uint32, ok bool)
	// Barrier makes each processor that runs a thread of the space execute a full memory barrier and an instruction that
	// serialises.
	Barrier()
	// NewThread returns a thread with all registers zero. Errors: ENOMEM.
	NewThread() (Thread, error)
	// Close releases the page tables. No thread of the address space exists any more.
	Close()
}

// Thread holds the registers of a thread and runs it. Only Kick and Bind may be called by other goroutines.
type Thread interface {
	Run() Reason
	// Spent returns the CPU time in nanoseconds since the last call of Spent, or since NewThread: in ring 3 (user), and outside
	// of it (system).
	Spent() (user, system int64)
	// Registers returns the registers while the thread is not running. After Restore, the next Run loads all of them, even
	// after a system call.
	Registers() *amd64.Frame
	Restore()
	FaultAddress() uint64
	// Kick makes the Run in progress, or else the next one, return Interrupted.
	Kick()
	// Settle withdraws a Kick. The caller then checks for the request for which the Kick was made.
	Settle()
	// Watch makes Run return Moved, without running the thread, if this thread was in ring 3 on another CPU last, or if it was
	// interrupted there and another thread has been in ring 3 on the CPU since. CPU returns the number of the CPU on
	// which Run returned Moved, or on which the thread was in ring 3.
	Watch(on bool)
	CPU() int
	// Bind makes the thread run only on the CPUs of a bit set; 0 means all. When Bind returns, no other CPU runs the thread.
	// Rest lets other threads with such a set run on the CPU: the thread is about to wait or to yield.
	Bind(cpus uint64)
	Rest()
	Bases() (fs, gs uint64)
	SetBases(fs, gs uint64) error
	// VectorSize returns the size of the vector registers in bytes. Vectors stores them in b in the standard format of
	// XSAVE, and SetVectors replaces them; b has that size.
	VectorSize() int
	Vectors(b []byte)
	SetVectors(b []byte)
	// VectorComponents returns the components of the vector registers, as bits of XCR0.
	VectorComponents() uint64
	// SetDebug sets DR0 to DR3 and DR7. Each Run after Restore loads them. DebugStatus returns DR6 as of the last debug
	// exception.
	SetDebug(addresses [4]uint64, control uint64)
	DebugStatus() uint64
	Close()
}
