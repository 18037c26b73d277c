package fs

import "loam/abi/linux"

// Growable is a FileSystem that can become larger while it is mounted.
type Growable interface {
	FileSystem
	// Grow makes the file system larger, to a number of blocks. Errors: EROFS, EBUSY, EINVAL for a smaller size, ENOSPC if
	// its device is too small, EOPNOTSUPP, EIO.
	Grow(blocks uint64) error
}

// Grow makes the place's file system larger. Errors: ENOTTY if the file system is not Growable, and the errors of Growable.
func (p Place) Grow(blocks uint64) error {
	g, ok := p.mount.fs.(Growable)
	switch {
	case !ok:
		return linux.ENOTTY
	case p.writable() != nil:
		return linux.EROFS
	}
	return g.Grow(blocks)
}

// Disk is a Handle of a block device.
type Disk interface {
	Sized
	// Sectors returns the sizes of sectors in bytes: the unit of requests, and the unit that the device writes without
	// reading first.
	Sectors() (logical, physical int)
	ReadOnly() bool
}
