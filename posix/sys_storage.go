package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Requests of ioctl(2) about block devices and file systems.

// Grow implements EXT4_IOC_RESIZE_FS: it makes the file system of fd larger, to a number of blocks. Errors: EBADF, EPERM,
// ENOTTY, and those of fs.Growable.
func (p *Process) Grow(fd int, blocks uint64) Errno {
	f, errno := p.real(fd, linux.ENOTTY)
	switch {
	case errno != 0:
		return errno
	case !p.may(linux.CAP_SYS_RESOURCE):
		return linux.EPERM
	}
	return file.ToErrno(f.Place().Grow(blocks))
}

// DiskResult returns the size in bytes of the result of a request about a block device; 0 for other requests.
func DiskResult(request int) int {
	switch request {
	case linux.BLKGETSIZE64, linux.BLKGETSIZE, linux.BLKBSZGET:
		return 8
	case linux.BLKSSZGET, linux.BLKPBSZGET, linux.BLKROGET:
		return 4
	}
	return 0
}

// DiskRequest implements the requests of DiskResult. Errors: EBADF, ENOTTY.
func (p *Process) DiskRequest(fd, request int) (uint64, Errno) {
	f, errno := p.real(fd, linux.ENOTTY)
	if errno != 0 {
		return 0, errno
	}
	d, ok := f.Handle().(fs.Disk)
	if !ok {
		return 0, linux.ENOTTY
	}
	logical, physical := d.Sectors()
	switch request {
	case linux.BLKGETSIZE64:
		return uint64(d.Size()), 0
	case linux.BLKGETSIZE:
		return uint64(d.Size()) / 512, 0
	case linux.BLKBSZGET:
		return uint64(max(logical, 4096)), 0
	case linux.BLKSSZGET:
		return uint64(logical), 0
	case linux.BLKPBSZGET:
		return uint64(physical), 0
	}
	if d.ReadOnly() {
		return 1, 0
	}
	return 0, 0
}
