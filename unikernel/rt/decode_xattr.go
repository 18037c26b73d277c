package rt

import (
	"syscall"
	"unsafe"

	"loam/posix"
)

// Decoders of calls about extended attributes. Each is for three calls: by a path, by a path of
// which a symbolic link is meant itself, and by a descriptor.

// xattrBy is which of the three.
type xattrBy uint8

const (
	byPath xattrBy = iota
	byLink
	byFD
)

// byName is byPath, or byLink. It is nosplit because call is.
//
//go:nosplit
func byName(link bool) xattrBy {
	if link {
		return byLink
	}
	return byPath
}

// fileOf reads which file a call is about. Errors: EFAULT, ENAMETOOLONG.
func (by xattrBy) fileOf(fd int, path unsafe.Pointer) (posix.XattrFile, syscall.Errno) {
	if by == byFD {
		return posix.XattrFile{ByFD: true, FD: fd}, 0
	}
	name, errno := pathAt(path)
	return posix.XattrFile{Path: name, Follow: by == byPath}, errno
}

// xattrName reads the name of an attribute. Errors: EFAULT, ERANGE.
func xattrName(p unsafe.Pointer) (string, syscall.Errno) {
	name, errno := pathAt(p)
	if errno == syscall.ENAMETOOLONG {
		errno = syscall.ERANGE
	}
	return name, errno
}

//go:noinline
func sysSetxattr(by xattrBy, fd int, path, name, value unsafe.Pointer, size uintptr, flags int) (uintptr, uintptr) {
	attribute, errno := xattrName(name)
	if errno != 0 {
		return fail(errno)
	}
	b, errno := copyIn(value, int(min(size, posix.MaxXattr+1)))
	if errno != 0 {
		return fail(errno)
	}
	file, errno := by.fileOf(fd, path)
	if errno != 0 {
		return fail(errno)
	}
	return fail(process.SetXattr(file, attribute, b, flags))
}

//go:noinline
func sysGetxattr(by xattrBy, fd int, path, name, to unsafe.Pointer, size uintptr) (uintptr, uintptr) {
	attribute, errno := xattrName(name)
	if errno != 0 {
		return fail(errno)
	}
	file, errno := by.fileOf(fd, path)
	if errno != 0 {
		return fail(errno)
	}
	value, errno := process.GetXattr(file, attribute)
	return putXattr(value, errno, to, size)
}

//go:noinline
func sysListxattr(by xattrBy, fd int, path, to unsafe.Pointer, size uintptr) (uintptr, uintptr) {
	file, errno := by.fileOf(fd, path)
	if errno != 0 {
		return fail(errno)
	}
	list, errno := process.ListXattr(file)
	return putXattr(list, errno, to, size)
}

// putXattr gives what was found to the program, which with a size of 0 asks how long it is.
func putXattr(b []byte, errno syscall.Errno, to unsafe.Pointer, size uintptr) (uintptr, uintptr) {
	switch {
	case errno != 0:
		return fail(errno)
	case size == 0 || len(b) == 0:
		return uintptr(len(b)), 0
	case size < uintptr(len(b)):
		return fail(syscall.ERANGE)
	case to == nil:
		return fail(syscall.EFAULT)
	}
	return uintptr(copy(bytesAt(to, len(b)), b)), 0
}

//go:noinline
func sysRemovexattr(by xattrBy, fd int, path, name unsafe.Pointer) (uintptr, uintptr) {
	attribute, errno := xattrName(name)
	if errno != 0 {
		return fail(errno)
	}
	file, errno := by.fileOf(fd, path)
	if errno != 0 {
		return fail(errno)
	}
	return fail(process.RemoveXattr(file, attribute))
}
