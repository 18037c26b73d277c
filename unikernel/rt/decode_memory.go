package rt

import (
	"syscall"

	"loam/fs"
	"loam/posix"
)

// Memory that files are mapped to. What is no shared mapping of a file is the host's, and
// a private one is memory like other.

//go:noinline
func sysMmap(addr, length uintptr, prot, flags, fd int, offset int64) (uintptr, uintptr) {
	if flags&syscall.MAP_ANON != 0 {
		at, _, errno := hostCall(syscall.SYS_MMAP, addr, length, uintptr(prot), uintptr(flags), ^uintptr(0), 0)
		return at, uintptr(errno)
	}
	errno := process.MayMap(fd, prot, flags, offset)
	switch {
	case errno != 0:
		return fail(errno)
	case flags&syscall.MAP_SHARED == 0:
		return mapCopy(addr, length, prot, flags, fd, offset)
	case flags&(syscall.MAP_FIXED|mapFixedNoReplace) != 0:
		return fail(syscall.ENODEV)
	}
	at, errno := process.MapShared(fd, uint64(length), offset, reserve)
	if errno != 0 {
		return fail(errno)
	}
	return uintptr(at), 0
}

// mapFixedNoReplace is MAP_FIXED_NOREPLACE.
const mapFixedNoReplace = 0x100000

// sysMapped serves munmap, mprotect, madvise and msync.
//
//go:noinline
func sysMapped(trap, addr, length, how uintptr) (uintptr, uintptr) {
	shared := process.Shares(uint64(addr), uint64(length))
	switch {
	case shared && trap == syscall.SYS_MUNMAP:
		process.UnmapShared(uint64(addr), uint64(length))
		return 0, 0
	case shared, trap == syscall.SYS_MSYNC: // what is in memory is in the file
		return 0, 0
	}
	r, _, errno := hostCall(trap, addr, length, how, 0, 0, 0)
	return r, uintptr(errno)
}

//go:noinline
func sysMremap(addr, old, length uintptr, flags int, to uintptr) (uintptr, uintptr) {
	if !process.Shares(uint64(addr), uint64(old)) {
		at, _, errno := hostCall(syscall.SYS_MREMAP, addr, old, length, uintptr(flags), to, 0)
		return at, uintptr(errno)
	}
	at, errno := process.RemapShared(uint64(addr), uint64(old), uint64(length), flags, reserve)
	if errno != 0 {
		return fail(errno)
	}
	return uintptr(at), 0
}

// region is fs.Memory: addresses that nothing stands behind until they are used.
type region struct {
	at, size, usable uintptr
}

// Address space is plenty: a file may grow by much before its mappings would have to
// lie elsewhere.
const (
	leastRegion = 1 << 30
	regionRoom  = 4 // times as much as the file needs
)

// reserve is fs.Reserve.
func reserve(size int64) (fs.Memory, error) {
	for _, n := range [...]int64{max(size*regionRoom, leastRegion), size} {
		const flags = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE
		if at, _, errno := hostCall(syscall.SYS_MMAP, 0, uintptr(n), syscall.PROT_NONE, flags, ^uintptr(0), 0); errno == 0 {
			return &region{at: at, size: uintptr(n)}, nil
		}
	}
	return nil, syscall.ENOMEM
}

// Address implements fs.Memory.
func (r *region) Address() uint64 { return uint64(r.at) }

// Size implements fs.Memory.
func (r *region) Size() int64 { return int64(r.size) }

// Bytes implements fs.Memory.
func (r *region) Bytes(n int64) ([]byte, error) {
	if more := uintptr(n); more > r.usable {
		_, _, errno := hostCall(syscall.SYS_MPROTECT, r.at+r.usable, more-r.usable, syscall.PROT_READ|syscall.PROT_WRITE, 0, 0, 0)
		if errno != 0 {
			return nil, errno
		}
		r.usable = more
	}
	return bytesAt(ptr(r.at), int(n)), nil
}

// Clear implements fs.Memory: whole pages are given back.
func (r *region) Clear(from, to int64) {
	whole := min((from+pageSize-1)&^(pageSize-1), to)
	clear(bytesAt(ptr(r.at+uintptr(from)), int(whole-from)))
	if whole < to {
		hostCall(syscall.SYS_MADVISE, r.at+uintptr(whole), uintptr(to-whole), syscall.MADV_DONTNEED, 0, 0, 0)
	}
}

// Free implements fs.Memory.
func (r *region) Free() { hostCall(syscall.SYS_MUNMAP, r.at, r.size, 0, 0, 0, 0) }

// pageSize is the unit of all memory.
const pageSize = 4096

// mapCopy maps memory and reads a file into it. What lies beyond the end of the
// file is zeros, and no SIGBUS.
func mapCopy(addr, length uintptr, prot, flags, fd int, offset int64) (uintptr, uintptr) {
	flags = flags&^posix.MapSharedValidate | syscall.MAP_PRIVATE | syscall.MAP_ANON
	at, _, errno := hostCall(syscall.SYS_MMAP, addr, length, syscall.PROT_READ|syscall.PROT_WRITE, uintptr(flags), ^uintptr(0), 0)
	if errno != 0 {
		return failure, uintptr(errno)
	}
	memory := bytesAt(ptr(at), int(length))
	for done := 0; done < len(memory) && errno == 0; {
		var n int
		n, errno = process.Pread(fd, memory[done:], offset+int64(done))
		if n <= 0 {
			break
		}
		done += n
	}
	if errno == 0 && prot != syscall.PROT_READ|syscall.PROT_WRITE {
		_, _, errno = hostCall(syscall.SYS_MPROTECT, at, length, uintptr(prot), 0, 0, 0)
	}
	if errno != 0 {
		hostCall(syscall.SYS_MUNMAP, at, length, 0, 0, 0, 0)
		return failure, uintptr(errno)
	}
	return at, 0
}
