package call

import "loam/abi/linux"

// Calls about the caller's memory. Package posix implements shared mappings of files. The underlying
// kernel implements anonymous memory (posix.Kernel). A private mapping of a file is anonymous memory
// with a copy of the file.

func mmap(c Caller, a Args) (uint64, linux.Errno) {
	prot, flags, descriptor, offset := number(a.A3), number(a.A4), fd(a.A5), int64(a.A6)
	if flags&linux.MAP_ANONYMOUS != 0 {
		return c.kernel(linux.SYS_MMAP, a.A1, a.A2, uint64(prot), uint64(flags), ^uint64(0), 0)
	}
	if offset&(pageSize-1) != 0 {
		return fail(linux.EINVAL)
	}
	errno := c.Process.MayMap(descriptor, prot, flags, offset)
	switch {
	case errno != 0:
		return fail(errno)
	case flags&linux.MAP_SHARED == 0:
		return c.mapCopy(a)
	case flags&(linux.MAP_FIXED|linux.MAP_FIXED_NOREPLACE) != 0:
		return fail(linux.ENODEV)
	case c.Process.Kernel() == nil:
		return fail(linux.ENOSYS)
	}
	return c.Process.MapShared(descriptor, a.A2, offset, c.Process.Kernel().Reserve)
}

// pageSize is the unit of memory mappings, in bytes.
const pageSize = 4096

// mapCopy maps memory and reads a file into it. Bytes beyond the end of the file are zero; access does
// not raise SIGBUS.
func (c Caller) mapCopy(a Args) (uint64, linux.Errno) {
	const writable = linux.PROT_READ | linux.PROT_WRITE
	prot := number(a.A3)
	flags := number(a.A4)&^linux.MAP_SHARED_VALIDATE | linux.MAP_PRIVATE | linux.MAP_ANONYMOUS
	at, errno := c.kernel(linux.SYS_MMAP, a.A1, a.A2, writable, uint64(flags), ^uint64(0), 0)
	if errno != 0 {
		return fail(errno)
	}
	errno = c.readFile(at, int(a.A2), fd(a.A5), int64(a.A6))
	if errno == 0 && prot != writable {
		_, errno = c.kernel(linux.SYS_MPROTECT, at, a.A2, uint64(prot), 0, 0, 0)
	}
	if errno != 0 {
		c.kernel(linux.SYS_MUNMAP, at, a.A2, 0, 0, 0, 0)
		return fail(errno)
	}
	return at, 0
}

// readFile reads up to n bytes from descriptor fd, starting at offset, and stores them at addr. It reads fewer bytes at the
// end of the file.
func (c Caller) readFile(addr uint64, n, fd int, offset int64) linux.Errno {
	for done := 0; done < n; {
		got, errno := c.fill(fd, addr+uint64(done), n-done, offset+int64(done), func(b []byte) (int, linux.Errno) {
			return c.Process.Pread(fd, b, offset+int64(done))
		})
		if errno != 0 || got == 0 {
			return errno
		}
		done += int(got)
	}
	return 0
}

// ofMapping returns the function for munmap, mprotect or madvise. Package posix handles ranges that overlap a shared mapping
// of a file; the underlying kernel handles other memory.
func ofMapping(number int) Serve {
	return func(c Caller, a Args) (uint64, linux.Errno) {
		if !c.Process.Shares(a.A1, a.A2) {
			return c.kernel(number, a.A1, a.A2, a.A3, 0, 0, 0)
		}
		if number == linux.SYS_MUNMAP {
			c.Process.UnmapShared(a.A1, a.A2)
		}
		return 0, 0
	}
}

func mremap(c Caller, a Args) (uint64, linux.Errno) {
	if !c.Process.Shares(a.A1, a.A2) {
		return c.kernel(linux.SYS_MREMAP, a.A1, a.A2, a.A3, uint64(number(a.A4)), a.A5, 0)
	}
	return c.Process.RemapShared(a.A1, a.A2, a.A3, number(a.A4), c.Process.Kernel().Reserve)
}
