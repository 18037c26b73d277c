// Package controller is the common part of the drivers for storage hardware: virtio-blk, NVMe and
// AHCI.
//
// Read in this order: controller.go (the life of a device), queue.go (the interface that a driver
// implements), slots.go (which command may be started; pure), memory.go (copies of data).
//
// A queue's lock is held by the submitters of requests, and by the goroutine that processes
// completions: the queue's loop, or the machine's goroutine for interrupts if the ring is a
// driver.Caller. The latter serves all drivers, so it does not wait for the lock: while the lock is
// held, it leaves the completions to the loop.
//
// One more goroutine, Device.loop, waits for a failure: a command that is overdue, a completion of a
// command that the hardware does not have, or a failure that the driver reports. It then stops the
// device and ends its access to memory; after that every request comes back. No request is retried,
// because a command that timed out may still take effect.
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

// Config describes the hardware to package controller.
type Config struct {
	Machine driver.Machine
	Info    block.Info // a description of the device; its Depth is the sum over all rings
	Size    int64      // capacity of the device in bytes
	Rules   Rules
	Rings   []Ring
	Slots   int // maximum number of commands in flight on each ring
	// Segments is the maximum number of memory segments of a command. Fits reports whether the
	// hardware can use the segments without a copy. A single segment that begins at a page boundary
	// must always fit.
	Segments int
	Fits     func([]driver.Segment) bool
	// Stop stops the hardware and ends its access to memory. It is called once, when no ring is in
	// use. If it fails, the memory of requests is not reused.
	Stop func() error
	// Free frees the driver's memory and interrupts. It is called once, after Stop has succeeded.
	Free func()
}

// Device is an open device. It implements block.Device.
type Device struct {
	info     block.Info
	size     atomic.Int64
	resized  chan struct{} // returned by Resized (see block.Device)
	counters block.Counters
	queues   []*queue
	stop     func() error
	free     func()

	broken  chan error    // capacity 1: Fail sends the first failure, later ones are dropped; loop receives
	done    chan struct{} // closed by Close, which ends the loops of the queues
	crew    crew.Crew
	closing sync.Once
	stopped bool // Stop was called; written by loop, read by Close after loop has ended
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
			device: d, ring: r, slots: NewSlots(c.Slots, c.Rules), timer: time.NewTimer(time.Hour), work: make(chan struct{}, 1),
			memory: newMemory(c.Machine, c.Slots, c.Segments, c.Info.MaxTransfer, c.Fits),
		}
		q.timer.Stop()
		d.queues = append(d.queues, q)
		d.crew.Start(q.loop)
		if i, ok := r.(driver.Caller); ok {
			i.Call(q.called)
		}
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

// Done returns a channel that is closed when the device is closed. The driver's goroutines end
// then; Stop or Free waits for them.
func (d *Device) Done() <-chan struct{} { return d.done }

// Watch starts a goroutine for the driver. It must end when Done is closed; Close waits for it.
func (d *Device) Watch(loop func()) { d.crew.Start(loop) }

// Resize records a new capacity in bytes, which is a multiple of the sector.
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

// Fail shuts the device down because of an error, cause. Only the first call has an effect. All requests come back soon
// after the call.
func (d *Device) Fail(cause error) {
	select {
	case d.broken <- cause:
	default:
	}
}

// loop waits for a failure of the device, and then shuts the device down.
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

// shut stops the hardware, and returns all requests: those in progress with the error cause, later ones with the error
// later.
func (d *Device) shut(cause, later error) {
	for _, q := range d.queues {
		q.end(later)
	}
	if !d.stopped {
		d.stopped = true
		d.err = d.stop()
	}
	for _, q := range d.queues {
		q.drain(cause, d.err != nil)
	}
}

// Close implements block.Device.
func (d *Device) Close() error {
	d.closing.Do(func() {
		close(d.done)
		d.crew.Wait()
		d.shut(block.ErrClosed, block.ErrClosed)
		if d.err != nil {
			return // the memory is not freed, because the hardware may still write to it
		}
		for _, q := range d.queues {
			q.memory.free()
		}
		d.free()
	})
	return d.err
}
