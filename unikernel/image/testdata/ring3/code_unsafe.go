package main

import "unsafe"

// fragment is the address of a fragment of code_amd64.s.
func fragment(number int) uintptr

// Fragments, by number.
const (
	calls = iota
	spin
	touch
	divide
	keep
	watch
	count
)

// userVectors is how the kernel saves vector registers; 0: all of them by XSAVE.
//
//go:linkname userVectors loam/kernel.userVectors
var userVectors uint8

// code is the bytes of a fragment, and some of what follows it. The compiler of Go 1.26 fails
// where a copy between two such slices of a constant length is compiled in line.
//
//go:noinline
func code(number int) []byte {
	const most = 2048
	addr := fragment(number)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), most)
}
