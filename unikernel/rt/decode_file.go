package rt

import (
	"syscall"
	"unsafe"

	"loam/posix"
)

// Decoders of calls that work on any descriptor. Each is kept out of line: call
// is nosplit, and must stay small.

//go:noinline
func sysRead(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	if n > 0 && p != nil && !onStack(p) {
		return result(process.Read(fd, bytesAt(p, n)))
	}
	return fill(p, n, func(b []byte) (int, syscall.Errno) { return process.Read(fd, b) })
}

// fill has read fill n bytes of the program's, which may lie on a stack.
func fill(p unsafe.Pointer, n int, read func([]byte) (int, syscall.Errno)) (uintptr, uintptr) {
	switch {
	case n < 0:
		return fail(syscall.EINVAL)
	case n > 0 && p == nil:
		return fail(syscall.EFAULT)
	case !onStack(p):
		return result(read(bytesAt(p, n)))
	}
	buf := borrow(n)
	defer buf.giveBack()
	got, errno := read(buf.b)
	if errno == 0 {
		copy(bytesAt(p, n), buf.b[:got])
	}
	return result(got, errno)
}

//go:noinline
func sysWrite(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	if n > 0 && p != nil && !onStack(p) {
		return result(process.Write(fd, bytesAt(p, n)))
	}
	return drain(p, n, func(b []byte) (int, syscall.Errno) { return process.Write(fd, b) })
}

// drain has write take n bytes of the program's, which may lie on a stack.
func drain(p unsafe.Pointer, n int, write func([]byte) (int, syscall.Errno)) (uintptr, uintptr) {
	switch {
	case n < 0:
		return fail(syscall.EINVAL)
	case n > 0 && p == nil:
		return fail(syscall.EFAULT)
	case !onStack(p):
		return result(write(bytesAt(p, n)))
	}
	buf := borrow(n)
	defer buf.giveBack()
	copy(buf.b, bytesAt(p, n))
	return result(write(buf.b))
}

//go:noinline
func sysReadv(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	return receiveVector(p, n, func(b []byte) (int, syscall.Errno) { return process.Read(fd, b) })
}

// receiveVector has read fill a vector, or the first loanSize bytes of it.
func receiveVector(p unsafe.Pointer, n int, read func([]byte) (int, syscall.Errno)) (uintptr, uintptr) {
	v, errno := newVector(p, n)
	if errno != 0 {
		return fail(errno)
	}
	if b, ok := v.single(); ok {
		return result(read(b))
	}
	buf := borrow(min(v.len(), loanSize))
	defer buf.giveBack()
	got, errno := read(buf.b)
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
func sysFcntl(fd, cmd, arg int, p unsafe.Pointer) (uintptr, uintptr) {
	switch cmd {
	case syscall.F_GETLK, syscall.F_SETLK, syscall.F_SETLKW, fOFDGetLk, fOFDSetLk, fOFDSetLkW:
		return lockRange(fd, cmd, p)
	}
	return result(process.Fcntl(fd, cmd, arg))
}

// Commands of fcntl(2) that package syscall lacks.
const (
	fOFDGetLk  = 36
	fOFDSetLk  = 37
	fOFDSetLkW = 38
)

func lockRange(fd, cmd int, p unsafe.Pointer) (uintptr, uintptr) {
	if p == nil {
		return fail(syscall.EFAULT)
	}
	raw := (*syscall.Flock_t)(p)
	l := posix.FileLock{Type: raw.Type, Whence: raw.Whence, Start: raw.Start, Len: raw.Len, PID: raw.Pid}
	errno := process.Lock(fd, cmd, &l)
	if errno == 0 && (cmd == syscall.F_GETLK || cmd == fOFDGetLk) {
		raw.Type, raw.Whence, raw.Start, raw.Len, raw.Pid = l.Type, l.Whence, l.Start, l.Len, l.PID
	}
	return fail(errno)
}

//go:noinline
func sysIoctl(fd, request int, p unsafe.Pointer) (uintptr, uintptr) {
	if size := terminalArgument(request); size > 0 {
		return withArgument(p, size, func(arg []byte) syscall.Errno { return process.Terminal(fd, request, arg) })
	}
	if posix.IsInterfaceRequest(request) {
		return withArgument(p, posix.InterfaceRequestLen, func(arg []byte) syscall.Errno {
			return process.InterfaceRequest(fd, request, arg)
		})
	}
	if !posix.TakesInt(request) { // the argument may be anything, and no address
		_, errno := process.Ioctl(fd, request, 0)
		return fail(errno)
	}
	arg := (*int32)(p)
	if arg == nil {
		return fail(syscall.EFAULT)
	}
	out, errno := process.Ioctl(fd, request, int(*arg))
	if errno == 0 {
		*arg = int32(out)
	}
	return fail(errno)
}

// terminalArgument is the size of what a request of a terminal is about, in bytes
// (ioctl_tty(2)); 0 for other requests.
func terminalArgument(request int) int {
	const tcgets2, tcsetsf2 = 0x802c542a, 0x402c542d
	switch {
	case request >= syscall.TCGETS && request <= syscall.TCSETS+2:
		return 36 // struct termios of the kernel
	case request == tcgets2, request >= tcsetsf2-2 && request <= tcsetsf2:
		return 44 // struct termios2
	case request == syscall.TIOCGWINSZ, request == syscall.TIOCSWINSZ:
		return 8
	case request == syscall.TIOCGPGRP, request == syscall.TIOCSPGRP:
		return 4
	}
	return 0
}

// withArgument has f read and change a copy of what a request is about.
func withArgument(p unsafe.Pointer, size int, f func(arg []byte) syscall.Errno) (uintptr, uintptr) {
	if p == nil {
		return fail(syscall.EFAULT)
	}
	arg := make([]byte, size)
	copy(arg, bytesAt(p, size))
	errno := f(arg)
	if errno == 0 {
		copy(bytesAt(p, size), arg)
	}
	return fail(errno)
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

//go:noinline
func sysCloseRange(first, last uint32, flags int) (uintptr, uintptr) {
	return fail(process.CloseRange(first, last, flags))
}
