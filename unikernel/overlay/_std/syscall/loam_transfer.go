package syscall

// Read and write by a way of their own. Programs make no calls more often, and these
// need nothing of the door: their arguments are a number and a slice, which may move
// with the stack. So there is no table of calls between a program and its file.

import "unsafe" // and for go:linkname

// loamRead and loamWrite are read(2) and write(2) of Loam's. onStack says that the
// slice lies on the goroutine's stack. Both keep the slice to themselves, and nothing
// of it after they have returned.
//
//go:linkname loamRead loam/unikernel/rt.read
//go:noescape
func loamRead(fd int, p []byte, onStack bool) (n int, errno Errno)

//go:linkname loamWrite loam/unikernel/rt.write
//go:noescape
func loamWrite(fd int, p []byte, onStack bool) (n int, errno Errno)

// loamEnterWith is loamEnter that also says where p points.
func loamEnterWith(p unsafe.Pointer) (bubble unsafe.Pointer, ok, onStack bool)

func read(fd int, p []byte) (n int, err error) {
	if ours, _ := loamWhose(SYS_READ, uintptr(fd)); !ours {
		return linuxRead(fd, p)
	}
	bubble, ok, onStack := loamEnterWith(unsafe.Pointer(unsafe.SliceData(p)))
	if !ok {
		return -1, ENOSYS // as loamAsk answers
	}
	n, errno := loamRead(fd, p, onStack)
	if bubble != nil {
		loamEnterBubble(bubble)
	}
	if errno != 0 {
		return -1, errnoErr(errno)
	}
	return n, nil
}

func write(fd int, p []byte) (n int, err error) {
	if ours, _ := loamWhose(SYS_WRITE, uintptr(fd)); !ours {
		return linuxWrite(fd, p)
	}
	bubble, ok, onStack := loamEnterWith(unsafe.Pointer(unsafe.SliceData(p)))
	if !ok {
		return -1, ENOSYS
	}
	n, errno := loamWrite(fd, p, onStack)
	if bubble != nil {
		loamEnterBubble(bubble)
	}
	if errno != 0 {
		return -1, errnoErr(errno)
	}
	return n, nil
}
