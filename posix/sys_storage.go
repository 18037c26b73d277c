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

// DiskRequest implements the requests of file.DiskResult. Errors: EBADF, ENOTTY.
func (p *Process) DiskRequest(fd, request int) (uint64, Errno) {
	f, errno := p.real(fd, linux.ENOTTY)
	if errno != 0 {
		return 0, errno
	}
	d, ok := f.Handle().(fs.Disk)
	if !ok {
		return 0, linux.ENOTTY
	}
	return file.DiskValue(d, request), 0
}
