package file

import (
	"loam/abi/linux"
	"loam/fs"
)

// Requests of ioctl(2) about block devices.

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

// DiskValue returns the result of a request of DiskResult for a block device.
func DiskValue(d fs.Disk, request int) uint64 {
	logical, physical := d.Sectors()
	switch request {
	case linux.BLKGETSIZE64:
		return uint64(d.Size())
	case linux.BLKGETSIZE:
		return uint64(d.Size()) / 512
	case linux.BLKBSZGET:
		return uint64(max(logical, 4096))
	case linux.BLKSSZGET:
		return uint64(logical)
	case linux.BLKPBSZGET:
		return uint64(physical)
	}
	if d.ReadOnly() {
		return 1
	}
	return 0
}
