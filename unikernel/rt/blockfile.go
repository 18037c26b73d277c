package rt

import (
	"errors"
	"io"
	"sync"

	"loam/abi/linux"
	"loam/block"
)

// blockFile is an open block device as a file. Reads and writes may start and end at any byte.
type blockFile struct {
	*block.IO
	sector int64 // logical sector size in bytes
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

// WriteAt implements fs.Handle. Errors: EIO, ENOSPC at the end of the disk.
func (d blockFile) WriteAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
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
