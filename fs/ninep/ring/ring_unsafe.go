package ring

import "unsafe"

// headerAt returns the header at an offset of the memory.
func headerAt(memory []byte, offset int) *header {
	return (*header)(unsafe.Pointer(&memory[offset:][:unsafe.Sizeof(header{})][0])) // Safety: mapped memory starts at a page, offset is a multiple of 8, and the bounds are checked
}
