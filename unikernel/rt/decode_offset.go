package rt

import (
	"syscall"
	"unsafe"
)

// Decoders of calls about offsets, sizes and locks of open files, and about moving
// bytes between them.

//go:noinline
func sysLseek(fd int, offset int64, whence int) (uintptr, uintptr) {
	at, errno := process.Lseek(fd, offset, whence)
	return result(int(at), errno)
}

//go:noinline
func sysPread(fd int, p unsafe.Pointer, n int, offset int64) (uintptr, uintptr) {
	return fill(p, n, func(b []byte) (int, syscall.Errno) { return process.Pread(fd, b, offset) })
}

//go:noinline
func sysPwrite(fd int, p unsafe.Pointer, n int, offset int64) (uintptr, uintptr) {
	return drain(p, n, func(b []byte) (int, syscall.Errno) { return process.Pwrite(fd, b, offset) })
}

// atOffset is the offset of preadv2(2) and pwritev2(2) that means the file's own.
const atOffset = -1

//go:noinline
func sysPreadv(fd int, p unsafe.Pointer, n int, offset int64) (uintptr, uintptr) {
	return receiveVector(p, n, func(b []byte) (int, syscall.Errno) {
		if offset == atOffset {
			return process.Read(fd, b)
		}
		return process.Pread(fd, b, offset)
	})
}

//go:noinline
func sysPwritev(fd int, p unsafe.Pointer, n int, offset int64) (uintptr, uintptr) {
	v, errno := newVector(p, n)
	if errno != 0 {
		return fail(errno)
	}
	return sendVector(v, func(b []byte) (int, syscall.Errno) {
		if offset == atOffset {
			return process.Write(fd, b)
		}
		n, errno := process.Pwrite(fd, b, offset)
		offset += int64(max(n, 0))
		return n, errno
	})
}

//go:noinline
func sysFtruncate(fd int, size int64) (uintptr, uintptr) { return fail(process.Ftruncate(fd, size)) }

//go:noinline
func sysFallocate(fd int, mode uint32, offset, length int64) (uintptr, uintptr) {
	return fail(process.Fallocate(fd, mode, offset, length))
}

//go:noinline
func sysFsync(fd int) (uintptr, uintptr) { return fail(process.Fsync(fd)) }

//go:noinline
func sysSyncfs(fd int) (uintptr, uintptr) { return fail(process.Syncfs(fd)) }

//go:noinline
func sysSync() (uintptr, uintptr) {
	process.Sync()
	return 0, 0
}

// sysFadvise takes advice, and does nothing about it.
//
//go:noinline
func sysFadvise(fd int) (uintptr, uintptr) { return fail(process.Fadvise(fd)) }

//go:noinline
func sysFlock(fd, how int) (uintptr, uintptr) { return fail(process.Flock(fd, how)) }

//go:noinline
func sysSendfile(out, in int, offset unsafe.Pointer, n int) (uintptr, uintptr) {
	return moved(offset, nil, func(from, _ *int64) (int, syscall.Errno) { return process.Sendfile(out, in, from, n) })
}

//go:noinline
func sysCopyFileRange(in int, inOffset unsafe.Pointer, out int, outOffset unsafe.Pointer, n int) (uintptr, uintptr) {
	return moved(inOffset, outOffset, func(from, to *int64) (int, syscall.Errno) {
		return process.CopyFileRange(in, from, out, to, n)
	})
}

// moved calls f with offsets of the program's, which may be nil, and returns them
// to where they are kept.
func moved(in, out unsafe.Pointer, f func(from, to *int64) (int, syscall.Errno)) (uintptr, uintptr) {
	var offsets [2]int64
	var args [2]*int64
	for i, p := range [...]unsafe.Pointer{in, out} {
		if p != nil {
			offsets[i] = *(*int64)(p)
			args[i] = &offsets[i]
		}
	}
	n, errno := f(args[0], args[1])
	for i, p := range [...]unsafe.Pointer{in, out} {
		if p != nil {
			*(*int64)(p) = offsets[i]
		}
	}
	return result(n, errno)
}

//go:noinline
func sysPipe(p unsafe.Pointer, flags int) (uintptr, uintptr) {
	if p == nil {
		return fail(syscall.EFAULT)
	}
	fds, errno := process.Pipe2(flags)
	if errno == 0 {
		*(*[2]int32)(p) = [2]int32{int32(fds[0]), int32(fds[1])}
	}
	return fail(errno)
}

//go:noinline
func sysGetdents(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	return fill(p, n, func(b []byte) (int, syscall.Errno) { return process.Getdents(fd, b) })
}

//go:noinline
func sysFchmod(fd int, mode uint32) (uintptr, uintptr) { return fail(process.Fchmod(fd, mode)) }

//go:noinline
func sysFchown(fd int, uid, gid int32) (uintptr, uintptr) { return fail(process.Fchown(fd, uid, gid)) }

//go:noinline
func sysFchdir(fd int) (uintptr, uintptr) { return fail(process.Fchdir(fd)) }
