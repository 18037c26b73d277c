// Package machine is the interface to what runs threads: address spaces and registers. Package kernel/user implements it in a virtual
// machine, and a script in tests.
package machine

import (
	"loam/arch/amd64"
	"loam/mem"
)

// Reason is the reason why a thread left ring 3.
type Reason uint8

// Reasons.
const (
	Call        Reason = iota // the SYSCALL instruction
	Fault                     // an access to a page that is not mapped for it
	Exception                 // another exception; Frame.Vector is its vector
	Interrupted               // for another reason: check for requests, and run again
)

// Machine runs threads in address spaces. Its methods are safe for concurrent use.
type Machine interface {
	Memory() mem.Memory
	// NewSpace returns an empty address space. Errors: ENOMEM.
	NewSpace() (Space, error)
	// Pages returns the size of the memory, in pages.
	Pages() int64
}

// Space is the page tables of an address space.
type Space interface {
	mem.Tables
	// Read and Write copy memory of the process. They return the bytes copied, fewer than len(b) if the next byte is not
	// mapped, or not writable.
	Read(addr uint64, b []byte) int
	Write(addr uint64, b []byte) int
	// NewThread returns a thread with all registers zero. Errors: ENOMEM.
	NewThread() (Thread, error)
	// Close releases the tables. No thread is left.
	Close()
}

// Thread is the registers of a thread. Only Kick may be called by other goroutines.
type Thread interface {
	Run() Reason
	// Registers returns the registers while the thread is not running. Restore makes the next Run load all of them,
	// also after a system call.
	Registers() *amd64.Frame
	Restore()
	FaultAddress() uint64
	// Kick makes the Run in progress, or else the next one, return Interrupted.
	Kick()
	// Settle withdraws a Kick. The caller then looks for the request that came with it.
	Settle()
	Bases() (fs, gs uint64)
	SetBases(fs, gs uint64) error
	// VectorSize returns the size of the vector registers in bytes. Vectors stores them in the standard format of XSAVE;
	// SetVectors replaces them. b has that size.
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
