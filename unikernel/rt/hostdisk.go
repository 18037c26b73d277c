package rt

import (
	"syscall"
	"unsafe"

	"loam/abi/linux"
	"loam/block"
	"loam/block/file"
)

// hostImage is a disk image of a process: a descriptor of the host, on which the process's filter of system calls
// allows pread(2), pwrite(2) and fdatasync(2). It implements file.Calls.
type hostImage int

// Disk implements Platform. The number is a descriptor of the host.
func (hostLinux) Disk(_ string, fd int, name string) (block.Device, error) {
	var st syscall.Stat_t
	if _, _, errno := hostCall(linux.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0); errno != 0 {
		return nil, errno
	}
	flags, _, errno := hostCall(linux.SYS_FCNTL, uintptr(fd), linux.F_GETFL, 0, 0, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	return file.Over(hostImage(fd), st.Size, file.Config{Name: name, ReadOnly: flags&linux.O_ACCMODE == linux.O_RDONLY, Workers: 4})
}

// ReadAt implements file.Calls.
func (h hostImage) ReadAt(p []byte, at int64) (int, error) {
	return h.transfer(linux.SYS_PREAD64, p, at)
}

// WriteAt implements file.Calls.
func (h hostImage) WriteAt(p []byte, at int64) (int, error) {
	return h.transfer(linux.SYS_PWRITE64, p, at)
}

func (h hostImage) transfer(trap uintptr, p []byte, at int64) (int, error) {
	n, _, errno := hostCall(trap, uintptr(h), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(at), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Sync implements file.Calls.
func (h hostImage) Sync() error {
	if _, _, errno := hostCall(linux.SYS_FDATASYNC, uintptr(h), 0, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// Close implements file.Calls. The descriptor stays open until the process ends, because a handed-over connection must
// not get its number.
func (hostImage) Close() error { return nil }
