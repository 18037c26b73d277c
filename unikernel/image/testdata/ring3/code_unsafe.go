package main

import (
	"unsafe"

	"loam/kernel/user"
)

// fragment returns the address of a code fragment in code_amd64.s, by number.
func fragment(number int) uintptr

// debugState returns the flags of the CPU, and DR7, the register that enables breakpoints.
func debugState() (flags, control uint64)

// wordAt returns the first 32-bit word of a page.
func wordAt(pa uint64) *uint32 {
	return (*uint32)(unsafe.Pointer(unsafe.SliceData(user.Shared().Bytes(pa))))
}

// Numbers of the fragments.
const (
	calls = iota
	spin
	touch
	divide
	keep
	watch
	count
)

// userVectors is the kernel's variable for the method of saving vector registers; 0: all of them by XSAVE.
//
//go:linkname userVectors loam/kernel.userVectors
var userVectors uint8

// entries are the addresses that the entry code has stored for the kernel; the second one is the entry of vector 0.
//
//go:linkname entries loam/kernel.entries
var entries [10]uintptr

// readDirect and writeDirect are methods of package user.
//
//go:linkname readDirect loam/kernel/user.(*Space).readDirect
func readDirect(s *user.Space, va uint64, b []byte) bool

//go:linkname writeDirect loam/kernel/user.(*Space).writeDirect
func writeDirect(s *user.Space, va uint64, b []byte) bool

// code returns the bytes of a fragment and some bytes after it. The length is a variable, because Go 1.26's compiler
// fails on an inlined copy between two such slices of constant length.
//
//go:noinline
func code(number int) []byte {
	const most = 2048
	addr := fragment(number)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), most)
}

// kernelWord returns the word at an address of the kernel. During a fault, AX is the address.
//
//go:noinline
func kernelWord(addr uintptr) uint64 { return **(**uint64)(unsafe.Pointer(&addr)) }

// addressOf returns the address of a variable on the heap.
func addressOf(p *int) uintptr { return uintptr(unsafe.Pointer(p)) }
