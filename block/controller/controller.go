// Package controller is the half of a driver of storage hardware that is the same for
// all of them: virtio-blk, NVMe and AHCI.
//
// Read in this order: controller.go (the life of a device), queue.go (what a driver
// implements), slots.go (which command may be started; pure), memory.go (copies).
//
// A queue's lock is held by the submitters of requests and by the queue's loop, which
// takes completions. One more goroutine, Device.loop, waits for a failure: a command
// that is overdue, hardware that completes what it was not asked for, or a driver
// that says so. The device is then stopped and kept from memory, and after that every
// request comes back. Nothing is tried again: a driver cannot know whether a command
// that it does not wait for any more still takes effect.
package controller

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"loam/block"
	"loam/driver"
	"loam/internal/crew"
)

// Config describes the hardware that a driver has found.
type Config struct {
	Machine driver.Machine
	Info    block.Info // Depth is the sum over all rings
	Size    int64      // in bytes
	Rules   Rules
	Rings   []Ring
	Slots   int // commands of each ring at a time
	// Segments is the most pieces of memory that a command has. Fits reports whether
	// the hardware can use pieces as they are; one piece at a page boundary always
	// fits.
	Segments int
	Fits     func([]driver.Segment) bool
	// Stop stops the hardware and keeps it from memory. It is called once, when no
	// ring is in use. After an error, memory that the hardware knows is not used
	// again.
	Stop func() error
	// Free gives back the driver's memory and interrupts. It is called once, after
	// Stop succeeded.
	Free func()
}

// Device is an open device. It implements block.Device.
type Device struct {
	info     block.Info
	size     atomic.Int64
	resized  chan struct{} // see block.Device
	counters block.Counters
	queues   []*queue
	stop     func() error
	free     func()

	broken  chan error    // one place: Fail sends the first failure (full: there was one), loop receives
	done    chan struct{} // closed by Close: the loops end
	crew    crew.Crew
	closing sync.Once
	stopped bool // Stop was called; loop writes, then Close
	err     error
}

var _ block.Device = (*Device)(nil)

// Open starts the goroutines of a device. The hardware is ready for commands.
func Open(c Config) *Device {
	d := &Device{
		info: c.Info, stop: c.Stop, free: c.Free, resized: make(chan struct{}, 1),
		broken: make(chan error, 1), done: make(chan struct{}),
	}
	d.size.Store(c.Size)
	for _, r := range c.Rings {
		q := &queue{
			device: d, ring: r, slots: NewSlots(c.Slots, c.Rules), timer: time.NewTimer(time.Hour),
			memory: newMemory(c.Machine, c.Slots, c.Segments, c.Info.MaxTransfer, c.Fits),
		}
		q.timer.Stop()
		d.queues = append(d.queues, q)
		d.crew.Start(q.loop)
	}
	d.crew.Start(d.loop)
	return d
}

// Info implements block.Device.
func (d *Device) Info() block.Info { return d.info }

// Size implements block.Device.
func (d *Device) Size() int64 { return d.size.Load() }

// Resized implements block.Device.
func (d *Device) Resized() <-chan struct{} { return d.resized }

// Queues implements block.Device.
func (d *Device) Queues() int { return len(d.queues) }

// Stats implements block.Device.
func (d *Device) Stats() block.Stats { return d.counters.Stats() }

// Submit implements block.Device.
func (d *Device) Submit(queue int, rs []*block.Request) { d.queues[queue].submit(rs) }

// Done returns a channel that is closed when the device is closed. Goroutines of a
// driver end then, and are waited for by Stop or Free.
func (d *Device) Done() <-chan struct{} { return d.done }

// Watch starts a goroutine of the driver that is waited for by Close. It ends when
// Done is closed.
func (d *Device) Watch(loop func()) { d.crew.Start(loop) }

// Resize records a new capacity in bytes, a multiple of the sector.
func (d *Device) Resize(size int64) {
	if d.size.Swap(size) == size {
		return
	}
	d.counters.Resizes.Add(1)
	select {
	case d.resized <- struct{}{}:
	default:
	}
}

// Fail gives the device up. The first cause counts. Requests come back soon after.
func (d *Device) Fail(cause error) {
	select {
	case d.broken <- cause:
	default:
	}
}

// loop waits for a failure.
func (d *Device) loop() {
	select {
	case cause := <-d.broken:
		later := fmt.Errorf("%s: %w: %w", d.info.Name, block.ErrGone, cause)
		if errors.Is(cause, block.ErrGone) {
			later = fmt.Errorf("%s: %w", d.info.Name, cause)
		}
		d.shut(cause, later)
	case <-d.done:
	}
}

// shut stops the hardware and returns all requests.
func (d *Device) shut(cause, later error) {
	for _, q := range d.queues {
		q.end(later)
	}
	if !d.stopped {
		d.stopped = true
		d.err = d.stop()
	}
	for _, q := range d.queues {
		q.drain(cause)
	}
}

// Close implements block.Device.
func (d *Device) Close() error {
	d.closing.Do(func() {
		close(d.done)
		d.crew.Wait()
		d.shut(block.ErrClosed, block.ErrClosed)
		if d.err != nil {
			return // the hardware may still write to its memory
		}
		for _, q := range d.queues {
			q.memory.free()
		}
		d.free()
	})
	return d.err
}
