package file

import "unsafe"

// aligned reports whether memory begins at a multiple of a sector.
func aligned(p []byte) bool {
	// Safety: the address is used only as a number, and never becomes a pointer again.
	return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%sector == 0
}

// alignedBytes returns n bytes that begin at a multiple of a sector.
func alignedBytes(n int) []byte {
	b := make([]byte, n+sector)
	for !aligned(b) {
		b = b[1:]
	}
	return b[:n:n]
}
