// Package file is a block device on a file of the host, or on a block device of the host.
//
// The file is opened with O_DIRECT if its file system allows direct I/O on sectors of 512 bytes. A
// request then reaches the host's disk when it completes, but may still be in the disk's cache:
// Flush is fdatasync. Elsewhere, as on tmpfs, the host's page cache is used. Discards punch holes
// (fallocate).
//
// A bounded number of worker goroutines carry out requests, each with one system call at a time.
// Read in this order: file.go, call.go (a request as system calls).
package file

import (
	"fmt"
	"io"
	"os"
	"sync"

	"loam/block"
	"loam/internal/crew"
)

// Config configures a file device. The zero value selects the defaults.
type Config struct {
	Name     string // name for users; empty: the name of the file
	ReadOnly bool
	Workers  int  // number of goroutines, which is the number of requests at a time; default 8
	Buffered bool // the file is not opened with O_DIRECT
}

// Limits of the requests that a device of this package accepts.
const (
	sector         = 512
	mostBytes      = 1 << 20 // maximum number of bytes of a request
	mostData       = 256     // maximum number of pieces of Request.Data
	mostRange      = 1 << 30 // maximum number of bytes of one Discard or WriteZeroes
	defaultWorkers = 8
)

// Calls are the system calls on an image. They return errors of package syscall.
type Calls interface {
	ReadAt(p []byte, at int64) (int, error)  // ReadAt is pread(2)
	WriteAt(p []byte, at int64) (int, error) // WriteAt is pwrite(2)
	Sync() error                             // Sync is fdatasync(2)
	Close() error
}

// Allocator is Calls with fallocate(2). A device on Calls without it supports neither Discard nor
// WriteZeroes.
type Allocator interface {
	Calls
	Allocate(mode uint32, at, length int64) error
}

// Device is an open file as a block device. It implements block.Device.
type Device struct {
	calls    Calls
	holes    Allocator // the file's Allocator; nil: the file cannot have holes
	info     block.Info
	direct   bool // the file is open with O_DIRECT
	size     int64
	counters block.Counters
	crew     crew.Crew

	closing sync.Once
	err     error

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond // signals a new request, or the close of the device
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

// New returns a device on an open file. The device closes the file; if New fails, it closes the
// file too. The descriptor must not be used elsewhere, because its flags are changed.
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
	calls := hostFile{f, int(f.Fd())}
	d := newDevice(calls, size, c)
	if d.direct = !c.Buffered && calls.setDirect(); d.direct {
		d.info.MemoryAlign = sector
	}
	d.start()
	return d, nil
}

// Over returns a device on an image of size bytes, which is accessed only through calls. size is a
// positive multiple of 512.
func Over(calls Calls, size int64, c Config) (*Device, error) {
	if size < sector || size%sector != 0 {
		return nil, fmt.Errorf("%w: %s has %d bytes: make it a multiple of %d", block.ErrInvalid, c.Name, size, sector)
	}
	d := newDevice(calls, size, c)
	d.start()
	return d, nil
}

func newDevice(calls Calls, size int64, c Config) *Device {
	if c.Workers <= 0 {
		c.Workers = defaultWorkers
	}
	d := &Device{calls: calls, size: size, info: block.Info{
		Name: c.Name, LogicalSector: sector, PhysicalSector: 4096, MaxTransfer: mostBytes, MaxSegments: mostData,
		MemoryAlign: 1, Depth: c.Workers, ReadOnly: c.ReadOnly, Volatile: true,
	}}
	if holes, ok := calls.(Allocator); ok {
		d.holes, d.info.MaxDiscard, d.info.MaxZeroes = holes, mostRange, mostRange
	}
	d.changed = sync.NewCond(&d.mu)
	return d
}

// start starts the worker goroutines.
func (d *Device) start() {
	for range d.info.Depth {
		d.crew.Start(d.runRequests)
	}
}

// Info implements block.Device.
func (d *Device) Info() block.Info { return d.info }

// Direct reports whether requests bypass the host's page cache.
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
		d.counters.Begin(r)
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

// next waits for a request and returns it. It returns nil if the device is closed.
func (d *Device) next() *block.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.waiting.Len() == 0 && !d.closed {
		d.changed.Wait()
	}
	return d.waiting.Pop()
}

// Close implements block.Device. It waits for requests that have been started; the host limits
// their time.
func (d *Device) Close() error {
	d.closing.Do(func() {
		d.mu.Lock()
		d.closed = true
		d.waiting.CompleteAll(block.ErrClosed)
		d.changed.Broadcast()
		d.mu.Unlock()
		d.crew.Wait()
		d.err = d.calls.Close()
	})
	return d.err
}
