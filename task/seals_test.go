package task

import (
	"slices"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/mem"
)

// sealed maps a memfd, seals it, unmaps it, seals it again, and maps it in all ways. It returns the results of the calls: 1 for
// an address.
func sealed(call func(number int, args ...uint64) int64, fd, seal, prot, flags uint64) (results []int64) {
	const readWrite = uint64(mem.Read | mem.Write)
	do := func(number int, args ...uint64) uint64 {
		n := call(number, args...)
		if number == linux.SYS_MMAP && n > 0 {
			results = append(results, 1)
			return uint64(n)
		}
		results = append(results, n)
		return 0
	}
	do(linux.SYS_FTRUNCATE, fd, mem.PageSize)
	at := do(linux.SYS_MMAP, 0, mem.PageSize, prot, flags, fd, 0)
	do(linux.SYS_FCNTL, fd, linux.F_ADD_SEALS, seal)
	do(linux.SYS_FCNTL, fd, linux.F_GET_SEALS)
	do(linux.SYS_MPROTECT, at, mem.PageSize, readWrite)
	do(linux.SYS_MUNMAP, at, mem.PageSize)
	do(linux.SYS_FCNTL, fd, linux.F_ADD_SEALS, seal)
	do(linux.SYS_FCNTL, fd, linux.F_GET_SEALS)
	for _, prot := range []uint64{uint64(mem.Read), readWrite} {
		if seal == linux.F_SEAL_WRITE && prot == uint64(mem.Read) {
			continue // since Linux 6.7, the file can be mapped shared and read-only
		}
		for _, flags := range []uint64{linux.MAP_PRIVATE, linux.MAP_SHARED, linux.MAP_SHARED | linux.MAP_ANONYMOUS, 0} {
			at := do(linux.SYS_MMAP, 0, mem.PageSize, prot, flags, fd, 0)
			do(linux.SYS_MPROTECT, at, mem.PageSize, readWrite)
		}
	}
	do(linux.SYS_MMAP, 0, 0, readWrite, linux.MAP_SHARED, fd, 0)
	return results
}

// A memfd is not sealed against writes while a shared mapping may store to it. If it is sealed, a shared mapping may not store to
// it. The results are those of Linux.
func TestSealsAndMappingsAsOnLinux(t *testing.T) {
	for _, seal := range []uint64{linux.F_SEAL_WRITE, linux.F_SEAL_FUTURE_WRITE, linux.F_SEAL_GROW} {
		for _, prot := range []mem.Prot{mem.Read, mem.Read | mem.Write} {
			for _, flags := range []uint64{linux.MAP_PRIVATE, linux.MAP_SHARED} {
				want := sealedOnLinux(t, seal, uint64(prot), flags)
				run(t, func(u *user) {
					fd := u.call(linux.SYS_MEMFD_CREATE, u.text(dataAt, "name"), linux.MFD_ALLOW_SEALING)
					if got := sealed(u.call, uint64(fd), seal, uint64(prot), flags); !slices.Equal(got, want) {
						t.Errorf("seal %d, first mapping %v with flags %d:\n%v, on Linux\n%v", seal, prot, flags, got, want)
					}
					exit(u, 0)
				})
			}
		}
	}
}

// sealedOnLinux returns the results of sealed on Linux.
func sealedOnLinux(t *testing.T, seal, prot, flags uint64) []int64 {
	t.Helper()
	fd := memfdOnLinux(t)
	defer syscall.Close(fd)
	return sealed(func(number int, args ...uint64) int64 {
		var a [6]uintptr
		for i := range args {
			a[i] = uintptr(args[i])
		}
		n, _, errno := syscall.Syscall6(uintptr(number), a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			return -int64(errno)
		}
		return int64(n)
	}, uint64(fd), seal, prot, flags)
}
