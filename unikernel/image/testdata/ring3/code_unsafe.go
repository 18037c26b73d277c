package main

import "unsafe"

// fragment returns the address of a code fragment in code_amd64.s, by number.
func fragment(number int) uintptr

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
var entries [7]uintptr

// code returns the bytes of a fragment and some bytes after it. The length is a variable, because Go 1.26's compiler
// fails on an inlined copy between two such slices of constant length.
//
//go:noinline
func code(number int) []byte {
	const most = 2048
	addr := fragment(number)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), most)
}
