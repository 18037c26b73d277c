package rt

import (
	"errors"
	"io"
	"sync"

	"loam/abi/linux"
	"loam/block"
	"loam/fs"
)

// blockFile is an open block device as a file. Reads and writes may start and end at any byte.
type blockFile struct {
	*block.IO
	sector  int64 // logical sector size in bytes
	mounted bool  // writes fail with EBUSY
}

// Sectors implements fs.Disk.
func (d blockFile) Sectors() (logical, physical int) {
	i := d.Device().Info()
	return i.LogicalSector, i.PhysicalSector
}

// ReadOnly implements fs.Disk.
func (d blockFile) ReadOnly() bool { return d.Device().Info().ReadOnly }

// Direct implements fs.Bypass. A block device has no cache here.
func (d blockFile) Direct() fs.Handle { return directBlockFile{d} }

// MemoryAlignment implements fs.Bypass.
func (d blockFile) MemoryAlignment() int { return 512 }

// directBlockFile is a blockFile with O_DIRECT: reads and writes are whole sectors.
type directBlockFile struct{ blockFile }

// ReadAt implements fs.Handle. Errors: EINVAL, EIO.
func (d directBlockFile) ReadAt(p []byte, offset int64) (int, error) {
	if (offset|int64(len(p)))&(d.sector-1) != 0 && offset < d.Size() {
		return 0, linux.EINVAL
	}
	return d.blockFile.ReadAt(p, offset)
}

// WriteAt implements fs.Handle. Errors: EINVAL, EIO, ENOSPC.
func (d directBlockFile) WriteAt(p []byte, offset int64) (int, error) {
	if (offset|int64(len(p)))&(d.sector-1) != 0 {
		return 0, linux.EINVAL
	}
	return d.blockFile.WriteAt(p, offset)
}

// partly serialises writes of partial sectors, each of which reads the sector, changes it and writes it back.
var partly sync.Mutex

// blocks returns the range of whole sectors that covers n bytes at an offset.
func (d blockFile) blocks(n int, offset int64) (from int64, size int) {
	mask := d.sector - 1
	from = offset &^ mask
	return from, int((offset+int64(n)+mask)&^mask - from)
}

// ReadAt implements fs.Handle.
func (d blockFile) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= d.Size() {
		return 0, nil
	}
	from, size := d.blocks(len(p), offset)
	if from == offset && size == len(p) {
		n, err := d.IO.ReadAt(p, offset)
		return n, errnoOf(err)
	}
	b := make([]byte, size)
	n, err := d.IO.ReadAt(b, from)
	if n <= int(offset-from) {
		return 0, errnoOf(err)
	}
	return copy(p, b[offset-from:n]), nil
}

// WriteAt implements fs.Handle. Errors: EIO, EBUSY, ENOSPC at the end of the disk.
func (d blockFile) WriteAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if d.mounted {
		return 0, linux.EBUSY
	}
	if offset >= d.Size() {
		return 0, linux.ENOSPC
	}
	p = p[:min(int64(len(p)), d.Size()-offset)]
	from, size := d.blocks(len(p), offset)
	if from == offset && size == len(p) {
		n, err := d.IO.WriteAt(p, offset)
		return n, errnoOf(err)
	}
	partly.Lock()
	defer partly.Unlock()
	b := make([]byte, size)
	if _, err := d.IO.ReadAt(b, from); err != nil {
		return 0, errnoOf(err)
	}
	copy(b[offset-from:], p)
	if _, err := d.IO.WriteAt(b, from); err != nil {
		return 0, errnoOf(err)
	}
	return len(p), nil
}

// Append implements fs.Handle. A disk does not grow, so it fails with ENOSPC.
func (d blockFile) Append([]byte) (int, int64, error) { return 0, d.Size(), linux.ENOSPC }

// Sync implements fs.Handle.
func (d blockFile) Sync() error { return errnoOf(d.Flush()) }

// Close implements fs.Handle. The disk stays open for its other handles.
func (d blockFile) Close() error { return nil }

// errnoOf converts a driver's error to an errno. The end of a disk is not an error.
func errnoOf(err error) error {
	var errno linux.Errno
	switch {
	case err == nil || err == io.EOF:
		return nil
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, block.ErrReadOnly):
		return linux.EROFS
	case errors.Is(err, block.ErrNoSpace):
		return linux.ENOSPC
	}
	return linux.EIO
}

var (
	_ fs.Bypass = blockFile{}
	_ fs.Disk   = blockFile{}
)
