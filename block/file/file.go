// Package file is a block device on a file of the host, or on a block device of the
// host.
//
// The file is opened for direct input and output (O_DIRECT) where its file system
// allows that for sectors of 512 bytes, so a request reaches the host's disk when it
// completes, but not its cache: Flush is fdatasync. Elsewhere, as on tmpfs, the host's
// page cache lies between. Discards punch holes (fallocate).
//
// A bounded crew of goroutines carries out requests, each with one system call at a
// time. Read in this order: file.go, call.go (a request as system calls).
package file

import (
	"fmt"
	"io"
	"os"
	"sync"

	"loam/block"
	"loam/internal/crew"
)

// Config configures a file device. The zero value has the defaults.
type Config struct {
	Name     string // for people; empty: that of the file
	ReadOnly bool
	Workers  int  // goroutines, and requests at a time; default 8
	Buffered bool // do not try O_DIRECT
}

// Limits of the device.
const (
	sector         = 512
	mostBytes      = 1 << 20 // of a request
	mostData       = 256     // pieces of Request.Data
	mostRange      = 1 << 30 // bytes of a discard or of zeros
	defaultWorkers = 8
)

// Device is an open file. It implements block.Device.
type Device struct {
	f        *os.File
	fd       int
	info     block.Info
	direct   bool // O_DIRECT
	size     int64
	counters block.Counters
	crew     crew.Crew

	closing sync.Once
	err     error

	mu      sync.Mutex // guards all below
	changed *sync.Cond // there is a request, or the device is closed
	waiting block.List
	closed  bool
}

var _ block.Device = (*Device)(nil)

// Open opens the file at a path.
func Open(path string, c Config) (*Device, error) {
	mode := os.O_RDWR
	if c.ReadOnly {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	return New(f, c)
}

// New makes a device of an open file, which it closes, also when it fails. Nobody else
// may use the descriptor: its flags are changed.
func New(f *os.File, c Config) (*Device, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && (size < sector || size%sector != 0) {
		err = fmt.Errorf("%w: %s has %d bytes: make it a multiple of %d", block.ErrInvalid, f.Name(), size, sector)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("file: %w", err)
	}
	if c.Name == "" {
		c.Name = f.Name()
	}
	if c.Workers <= 0 {
		c.Workers = defaultWorkers
	}
	d := &Device{f: f, fd: int(f.Fd()), size: size, info: block.Info{
		Name: c.Name, LogicalSector: sector, PhysicalSector: 4096, MaxTransfer: mostBytes, MaxSegments: mostData,
		MaxDiscard: mostRange, MaxZeroes: mostRange, MemoryAlign: 1, Depth: c.Workers, ReadOnly: c.ReadOnly, Volatile: true,
	}}
	if d.direct = !c.Buffered && d.setDirect(); d.direct {
		d.info.MemoryAlign = sector
	}
	d.changed = sync.NewCond(&d.mu)
	for range c.Workers {
		d.crew.Start(d.runRequests)
	}
	return d, nil
}

// Info implements block.Device.
func (d *Device) Info() block.Info { return d.info }

// Direct reports whether requests pass by the host's page cache.
func (d *Device) Direct() bool { return d.direct }

// Size implements block.Device.
func (d *Device) Size() int64 { return d.size }

// Resized implements block.Device.
func (d *Device) Resized() <-chan struct{} { return nil }

// Queues implements block.Device.
func (d *Device) Queues() int { return 1 }

// Stats implements block.Device.
func (d *Device) Stats() block.Stats { return d.counters.Stats() }

// Submit implements block.Device.
func (d *Device) Submit(_ int, rs []*block.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range rs {
		err := r.Check(&d.info, d.size)
		if d.closed {
			err = block.ErrClosed
		}
		if err != nil {
			d.counters.Reject(r, err)
			continue
		}
		d.waiting.Push(r)
		d.changed.Signal()
	}
}

// runRequests carries out requests until the device is closed.
func (d *Device) runRequests() {
	w := worker{device: d, bounce: alignedBytes(mostBytes)}
	for {
		r := d.next()
		if r == nil {
			return
		}
		d.counters.Finish(r, w.do(r))
	}
}

// next waits for a request; nil: the device is closed.
func (d *Device) next() *block.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.waiting.Len() == 0 && !d.closed {
		d.changed.Wait()
	}
	return d.waiting.Pop()
}

// Close implements block.Device. Requests that have begun are waited for: the host
// bounds them.
func (d *Device) Close() error {
	d.closing.Do(func() {
		d.mu.Lock()
		d.closed = true
		d.waiting.CompleteAll(block.ErrClosed)
		d.changed.Broadcast()
		d.mu.Unlock()
		d.crew.Wait()
		d.err = d.f.Close()
	})
	return d.err
}
