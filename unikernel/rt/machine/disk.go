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

// The disks of the machine are block devices, /dev/vda and so on: bytes at offsets,
// without a file system. Each is opened when the program opens it first.

// Numbers of Linux for its virtio disks: each has some for its partitions.
const (
	diskMajor  = 254
	diskMinors = 16
)

// Devices implements rt.Platform.
func (platform) Devices(v *fs.View, c guest.Config) error {
	for n := range c.Disks {
		number := fs.Device{Major: diskMajor, Minor: uint32(diskMinors * n)}
		v.Tree.AddDevice(fs.BlockDevice, number, diskOpener(n))
		if err := v.Mknod(v.Root, "/dev/vd"+string(rune('a'+n)), fs.BlockDevice|0o660, number); err != nil {
			return err
		}
	}
	return nil
}

// diskOpener opens the disk of a number, for all who open its file. Errors: EIO, ENXIO,
// EROFS.
func diskOpener(n int) fs.OpenDevice {
	open := sync.OnceValues(func() (*blk.Disk, error) {
		d, err := hardware().find(virtio.Block, n)
		if d == nil {
			return nil, errors.Join(err, syscall.ENXIO)
		}
		return blk.Open(d)
	})
	return func(flags fs.Flags) (fs.Handle, error) {
		d, err := open()
		if err != nil {
			return nil, errnoOf(err)
		}
		if d.Info().ReadOnly && flags&syscall.O_ACCMODE != syscall.O_RDONLY {
			return nil, syscall.EROFS
		}
		return disk{d}, nil
	}
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
