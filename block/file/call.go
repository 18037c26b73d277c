package file

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"loam/block"
)

// Modes of fallocate(2), with Linux's values.
const (
	keepSize  = 0x01
	punchHole = 0x02
	zeroRange = 0x10
)

// hostFile is a file of the host. It implements Allocator.
type hostFile struct {
	f  *os.File
	fd int
}

func (h hostFile) ReadAt(p []byte, at int64) (int, error)  { return syscall.Pread(h.fd, p, at) }
func (h hostFile) WriteAt(p []byte, at int64) (int, error) { return syscall.Pwrite(h.fd, p, at) }
func (h hostFile) Sync() error                             { return syscall.Fdatasync(h.fd) }
func (h hostFile) Close() error                            { return h.f.Close() }
func (h hostFile) Allocate(mode uint32, at, length int64) error {
	return syscall.Fallocate(h.fd, mode, at, length)
}

// setDirect sets O_DIRECT, and reports whether sectors can be read with it.
func (h hostFile) setDirect() bool {
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(h.fd), syscall.F_GETFL, 0)
	if errno != 0 {
		return false
	}
	set := func(flags uintptr) bool {
		_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(h.fd), syscall.F_SETFL, flags)
		return errno == 0
	}
	if !set(flags | syscall.O_DIRECT) {
		return false
	}
	probe := alignedBytes(2 * sector)[sector:] // this buffer is aligned only as far as Info.MemoryAlign requires
	if n, err := h.ReadAt(probe, 0); err != nil || n != sector {
		set(flags &^ syscall.O_DIRECT)
		return false
	}
	return true
}

// worker is one of the goroutines that carry out requests.
type worker struct {
	device *Device
	bounce []byte // for data in several pieces, or not aligned
}

// do carries out a valid request.
func (w *worker) do(r *block.Request) error {
	d := w.device
	var err error
	switch r.Op {
	case block.Read:
		err = w.read(r)
	case block.Write:
		err = d.transfer(d.calls.WriteAt, w.gather(r), r.Offset)
	case block.Flush:
		err = d.calls.Sync()
	case block.Discard:
		err = d.holes.Allocate(punchHole|keepSize, r.Offset, r.Length)
	case block.WriteZeroes:
		err = w.zero(r)
	}
	if err == nil && r.Flags&block.FUA != 0 && r.Op.Writes() {
		err = d.calls.Sync()
	}
	if err == nil {
		return nil
	}
	return d.errorOf(err)
}

// whole returns the data of a request if one system call can transfer it without a copy.
func (d *Device) whole(r *block.Request) (p []byte, ok bool) {
	if len(r.Data) != 1 || d.direct && !aligned(r.Data[0]) {
		return nil, false
	}
	return r.Data[0], true
}

func (w *worker) read(r *block.Request) error {
	if p, ok := w.device.whole(r); ok {
		return w.device.transfer(w.device.calls.ReadAt, p, r.Offset)
	}
	w.device.counters.Copied.Add(1)
	from := w.bounce[:r.Bytes()]
	err := w.device.transfer(w.device.calls.ReadAt, from, r.Offset)
	for _, p := range r.Data {
		from = from[copy(p, from):]
	}
	return err
}

// gather returns the data of a write in one piece.
func (w *worker) gather(r *block.Request) []byte {
	if p, ok := w.device.whole(r); ok {
		return p
	}
	w.device.counters.Copied.Add(1)
	n := 0
	for _, p := range r.Data {
		n += copy(w.bounce[n:], p)
	}
	return w.bounce[:n]
}

// transfer reads or writes all of p. It fails if the file is shorter than the device: another
// process has truncated it.
func (d *Device) transfer(call func(p []byte, at int64) (int, error), p []byte, at int64) error {
	for len(p) > 0 {
		n, err := call(p, at)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("%w: the file ends at %d of %d", block.ErrIO, at, d.size)
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}

// zero punches a hole into the file, or zeroes a range of it. On a file system that can do neither, it writes zeros.
func (w *worker) zero(r *block.Request) error {
	mode := uint32(punchHole | keepSize)
	if r.Flags&block.KeepAllocated != 0 {
		mode = zeroRange | keepSize
	}
	err := w.device.holes.Allocate(mode, r.Offset, r.Length)
	if err != syscall.EOPNOTSUPP {
		return err
	}
	clear(w.bounce)
	for done := int64(0); done < r.Length; {
		p := w.bounce[:min(int64(len(w.bounce)), r.Length-done)]
		if err := w.device.transfer(w.device.calls.WriteAt, p, r.Offset+done); err != nil {
			return err
		}
		done += int64(len(p))
	}
	return nil
}

// errorOf converts an error of the host to an error of package block.
func (d *Device) errorOf(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	is := block.ErrIO
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG:
		is = block.ErrNoSpace
	case syscall.EROFS, syscall.EBADF, syscall.EPERM:
		is = block.ErrReadOnly
	case syscall.EOPNOTSUPP:
		is = block.ErrUnsupported
	case syscall.ENODEV, syscall.ENXIO:
		is = block.ErrGone
	}
	return fmt.Errorf("%s: %w: %w", d.info.Name, is, err)
}
