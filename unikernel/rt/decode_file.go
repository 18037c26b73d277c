package rt

import (
	"syscall"
	"unsafe"
)

// Decoders of calls that work on any descriptor. Each is kept out of line: call
// is nosplit, and must stay small.

//go:noinline
func sysRead(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	switch {
	case n < 0:
		return fail(syscall.EINVAL)
	case n > 0 && p == nil:
		return fail(syscall.EFAULT)
	case onStack(p):
		return readToStack(fd, p, n)
	}
	return result(process.Read(fd, bytesAt(p, n)))
}

func readToStack(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	buf := borrow(n)
	defer buf.giveBack()
	got, errno := process.Read(fd, buf.b)
	if errno == 0 {
		copy(bytesAt(p, n), buf.b[:got])
	}
	return result(got, errno)
}

//go:noinline
func sysWrite(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	switch {
	case n < 0:
		return fail(syscall.EINVAL)
	case n > 0 && p == nil:
		return fail(syscall.EFAULT)
	case onStack(p):
		return writeFromStack(fd, p, n)
	}
	return result(process.Write(fd, bytesAt(p, n)))
}

func writeFromStack(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	buf := borrow(n)
	defer buf.giveBack()
	copy(buf.b, bytesAt(p, n))
	return result(process.Write(fd, buf.b))
}

//go:noinline
func sysReadv(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	v, errno := newVector(p, n)
	if errno != 0 {
		return fail(errno)
	}
	if b, ok := v.single(); ok {
		return result(process.Read(fd, b))
	}
	buf := borrow(min(v.len(), loanSize))
	defer buf.giveBack()
	got, errno := process.Read(fd, buf.b)
	if errno == 0 {
		v.scatter(buf.b[:got], 0)
	}
	return result(got, errno)
}

//go:noinline
func sysWritev(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	v, errno := newVector(p, n)
	if errno != 0 {
		return fail(errno)
	}
	return sendVector(v, func(b []byte) (int, syscall.Errno) { return process.Write(fd, b) })
}

// sendVector writes the bytes of a vector to a stream, a buffer at a time, until
// a write comes up short.
func sendVector(v vector, write func([]byte) (int, syscall.Errno)) (uintptr, uintptr) {
	if b, ok := v.single(); ok {
		return result(write(b))
	}
	total := v.len()
	buf := borrow(min(total, loanSize))
	defer buf.giveBack()
	for off := 0; ; {
		b := buf.b[:v.gather(buf.b, off)]
		n, errno := write(b)
		if errno != 0 {
			if off > 0 {
				return result(off, 0)
			}
			return fail(errno)
		}
		off += n
		if n < len(b) || off == total {
			return result(off, 0)
		}
	}
}

//go:noinline
func sysClose(fd int) (uintptr, uintptr) { return fail(process.Close(fd)) }

//go:noinline
func sysFcntl(fd, cmd, arg int) (uintptr, uintptr) { return result(process.Fcntl(fd, cmd, arg)) }

//go:noinline
func sysIoctl(fd, request int, p unsafe.Pointer) (uintptr, uintptr) {
	arg := (*int32)(p)
	in := 0
	if arg != nil {
		in = int(*arg)
	}
	out, errno := process.Ioctl(fd, request, in)
	if errno == 0 && arg != nil {
		*arg = int32(out)
	}
	return fail(errno)
}

//go:noinline
func sysFstat(fd int, p unsafe.Pointer) (uintptr, uintptr) {
	st, errno := process.Fstat(fd)
	switch {
	case errno != 0:
		return fail(errno)
	case p == nil:
		return fail(syscall.EFAULT)
	}
	*(*syscall.Stat_t)(p) = syscall.Stat_t{Mode: uint32(st.Mode), Ino: st.Inode, Nlink: 1, Blksize: 4096}
	return 0, 0
}

//go:noinline
func sysDup(fd int) (uintptr, uintptr) { return result(process.Dup(fd)) }

//go:noinline
func sysDup3(fd, to, flags int, dup2 bool) (uintptr, uintptr) {
	if dup2 {
		flags = 0
	}
	return result(process.Dup3(fd, to, flags, dup2))
}
