package rt

import (
	"syscall"
	"unsafe"
)

// Read and write as they come from package syscall, without the table of calls: see
// loam_transfer.go of the overlay. A buffer on a stack is copied, as ever: what is
// behind these calls may leave a slice where other goroutines see it while this one
// waits.

//go:linkname read
func read(fd int, p []byte, onStack bool) (n int, errno syscall.Errno) {
	if ending.Load() {
		park()
	}
	if onStack {
		r, e := sysRead(int(int32(fd)), unsafe.Pointer(unsafe.SliceData(p)), len(p))
		return int(r), syscall.Errno(e)
	}
	return process.Read(int(int32(fd)), p)
}

//go:linkname write
func write(fd int, p []byte, onStack bool) (n int, errno syscall.Errno) {
	if ending.Load() {
		park()
	}
	if onStack {
		r, e := sysWrite(int(int32(fd)), unsafe.Pointer(unsafe.SliceData(p)), len(p))
		return int(r), syscall.Errno(e)
	}
	return process.Write(int(int32(fd)), p)
}
