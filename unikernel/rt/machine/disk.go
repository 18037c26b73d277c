package machine

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"loam/driver/blk"
	"loam/driver/virtio"
	"loam/fs"
	"loam/unikernel/guest"
)

// The disk of the machine is a block device, /dev/vda: bytes at offsets, without a
// file system. It is opened when the program opens it.

// diskNumber is that of Linux for the first of its virtio disks.
var diskNumber = fs.Device{Major: 254}

// Devices implements rt.Platform.
func (platform) Devices(v *fs.View, c guest.Config) error {
	if !c.Disk {
		return nil
	}
	v.Tree.AddDevice(fs.BlockDevice, diskNumber, openDisk)
	return v.Mknod(v.Root, "/dev/vda", fs.BlockDevice|0o660, diskNumber)
}

// firstDisk is the disk, for all who open it.
var firstDisk = sync.OnceValues(func() (*blk.Disk, error) {
	d, err := hardware().find(virtio.Block)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, syscall.ENXIO
	}
	return blk.Open(d)
})

// openDisk opens the disk. Errors: EIO, ENXIO, EROFS.
func openDisk(flags fs.Flags) (fs.Handle, error) {
	d, err := firstDisk()
	if err != nil {
		return nil, errnoOf(err)
	}
	if d.Info().ReadOnly && flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return nil, syscall.EROFS
	}
	return disk{d}, nil
}

// disk is an open disk, as a file: reads and writes may begin and end anywhere.
type disk struct{ *blk.Disk }

// partly is held by who writes a part of a block: it reads the block before.
var partly sync.Mutex

// blocks is the whole blocks around n bytes at an offset.
func (d disk) blocks(n int, offset int64) (from int64, size int) {
	mask := int64(d.Info().BlockSize - 1)
	from = offset &^ mask
	return from, int((offset+int64(n)+mask)&^mask - from)
}

// ReadAt implements fs.Handle.
func (d disk) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= d.Size() {
		return 0, nil
	}
	from, size := d.blocks(len(p), offset)
	if from == offset && size == len(p) {
		n, err := d.Disk.ReadAt(p, offset)
		return n, errnoOf(err)
	}
	b := make([]byte, size)
	n, err := d.Disk.ReadAt(b, from)
	if n <= int(offset-from) {
		return 0, errnoOf(err)
	}
	return copy(p, b[offset-from:n]), nil
}

// WriteAt implements fs.Handle. Errors: EIO, ENOSPC at the end of the disk.
func (d disk) WriteAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if offset >= d.Size() {
		return 0, syscall.ENOSPC
	}
	p = p[:min(int64(len(p)), d.Size()-offset)]
	from, size := d.blocks(len(p), offset)
	if from == offset && size == len(p) {
		n, err := d.Disk.WriteAt(p, offset)
		return n, errnoOf(err)
	}
	partly.Lock()
	defer partly.Unlock()
	b := make([]byte, size)
	if _, err := d.Disk.ReadAt(b, from); err != nil {
		return 0, errnoOf(err)
	}
	copy(b[offset-from:], p)
	if _, err := d.Disk.WriteAt(b, from); err != nil {
		return 0, errnoOf(err)
	}
	return len(p), nil
}

// Append implements fs.Handle: a disk does not grow.
func (d disk) Append([]byte) (int, int64, error) { return 0, d.Size(), syscall.ENOSPC }

// Sync implements fs.Handle.
func (d disk) Sync() error { return errnoOf(d.Flush()) }

// Close implements fs.Handle. The disk stays open for others.
func (d disk) Close() error { return nil }

// errnoOf is an error of a driver as a program sees it; the end of a disk is none.
func errnoOf(err error) error {
	var errno syscall.Errno
	switch {
	case err == nil || err == io.EOF:
		return nil
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, blk.ErrReadOnly):
		return syscall.EROFS
	}
	return syscall.EIO
}
