package blk

import (
	"fmt"
	"io"
)

// ReadAt fills p from an offset in bytes, both of whole blocks. At the end of the
// disk it returns io.EOF, as io.ReaderAt wants.
func (d *Disk) ReadAt(p []byte, off int64) (n int, err error) {
	size := d.Size()
	if off < 0 {
		return 0, ErrRange
	}
	if off >= size {
		return 0, io.EOF
	}
	short := int64(len(p)) > size-off
	if short {
		p = p[:size-off]
	}
	n, err = d.transfer(read, p, off)
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// WriteAt writes p at an offset in bytes, both of whole blocks. It is on the disk
// for good when Flush has returned.
func (d *Disk) WriteAt(p []byte, off int64) (n int, err error) {
	if err := d.checkWrite(off, int64(len(p))); err != nil {
		return 0, err
	}
	return d.transfer(write, p, off)
}

func (d *Disk) checkWrite(off, n int64) error {
	size := d.Size()
	switch {
	case d.info.ReadOnly:
		return ErrReadOnly
	case off < 0 || n < 0 || off > size || n > size-off:
		return fmt.Errorf("%w: %d bytes at %d of %d", ErrRange, n, off, size)
	}
	return d.checkAlign(off, n)
}

func (d *Disk) checkAlign(off, n int64) error {
	if mask := int64(d.info.BlockSize - 1); off&mask != 0 || n&mask != 0 {
		return fmt.Errorf("%w of %d bytes: %d at %d", ErrAlign, d.info.BlockSize, n, off)
	}
	return nil
}

// transfer cuts p into requests, and does one after the other.
func (d *Disk) transfer(k kind, p []byte, off int64) (n int, err error) {
	if err := d.checkAlign(off, int64(len(p))); err != nil {
		return 0, err
	}
	r, err := d.acquire()
	if err != nil {
		return 0, err
	}
	defer d.release(r)
	for n < len(p) {
		chunk := p[n:min(len(p), n+d.limits.chunk)]
		r.prepare(k, uint64(off+int64(n))/SectorSize)
		if err := r.setData(d, chunk); err != nil {
			return n, err
		}
		if err := d.do(r); err != nil {
			return n, err
		}
		if k == read && !d.direct {
			copy(chunk, r.data.Bytes)
		}
		n += len(chunk)
	}
	return n, nil
}

// Flush has the disk write out its cache. A disk without one has nothing to do.
func (d *Disk) Flush() error {
	if !d.info.Flushes {
		return d.state()
	}
	r, err := d.acquire()
	if err != nil {
		return err
	}
	defer d.release(r)
	r.prepare(flush, 0)
	return d.do(r)
}

func (d *Disk) state() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failure
}

// Discard says that n bytes at an offset are not needed any more. What they read as
// afterwards is not known.
func (d *Disk) Discard(off, n int64) error {
	if !d.info.Discards {
		return fmt.Errorf("discard: %w", ErrUnsupported)
	}
	return d.ranges(discard, off, n, d.limits.discard)
}

// WriteZeroes has n bytes at an offset read as zeros.
func (d *Disk) WriteZeroes(off, n int64) error {
	if !d.info.Zeroes {
		return fmt.Errorf("write zeroes: %w", ErrUnsupported)
	}
	return d.ranges(zeroes, off, n, d.limits.zero)
}

// ranges does a request without data for each part of a range that is no longer
// than most sectors.
func (d *Disk) ranges(k kind, off, n int64, most int) error {
	if err := d.checkWrite(off, n); err != nil {
		return err
	}
	r, err := d.acquire()
	if err != nil {
		return err
	}
	defer d.release(r)
	sector, left := uint64(off/SectorSize), uint64(n/SectorSize)
	for left > 0 {
		part := min(left, uint64(most))
		r.prepare(k, 0)
		r.setRange(sector, uint32(part), 0)
		if err := d.do(r); err != nil {
			return err
		}
		sector, left = sector+part, left-part
	}
	return nil
}
