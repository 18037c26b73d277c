package virtio

import (
	"fmt"
	"sync"
	"time"

	"loam/driver"
)

// Device is a virtio device on its way through the steps of section 3.1.1. It
// belongs to one driver, which opens it from one goroutine; Close, Err, Notify and
// the queues may then be used from others. A step that fails closes the device.
type Device struct {
	machine driver.Machine
	t       transport
	accepts Features
	queues  []*Queue

	interrupts interrupts

	mu      sync.Mutex // guards all below
	closed  bool
	failure error // why the device is of no use any more
	last    error // what Close returned
}

// resetBound is how long a device may take to reset, and resetTick how often it is
// asked. Devices of monitors do it at once; section 2.4.2 has no bound.
const (
	resetBound = 2 * time.Second
	resetTick  = time.Millisecond
)

func newDevice(m driver.Machine, t transport) *Device {
	return &Device{machine: m, t: t}
}

// String names the device for people.
func (d *Device) String() string { return fmt.Sprintf("virtio-%v, %s", d.t.kind(), d.t.name()) }

// Kind is what the device is.
func (d *Device) Kind() Kind { return d.t.kind() }

// Machine is what the device is part of.
func (d *Device) Machine() driver.Machine { return d.machine }

func (d *Device) wrap(err error) error { return fmt.Errorf("%v: %w", d, err) }

// Negotiate resets the device and agrees on features: all of need, and of want what
// the device has. VERSION_1 is always needed, and ACCESS_PLATFORM taken where it is
// offered: the addresses that drivers give are those that machine.Memory says.
func (d *Device) Negotiate(need, want Features) error {
	return d.NegotiateBy(need, func(Features) Features { return want })
}

// NegotiateBy is Negotiate for a driver that wants something only if the device
// offers something else.
func (d *Device) NegotiateBy(need Features, want func(offers Features) Features) error {
	if err := d.reset(); err != nil {
		d.closed = true
		if d.last = err; d.t.stop() {
			d.last = nil
		}
		return err
	}
	d.t.setStatus(statusAcknowledge)
	d.t.setStatus(statusAcknowledge | statusDriver)
	offers := d.t.features()
	if !offers.Has(Version1) {
		return d.give(ErrLegacy)
	}
	if !offers.Has(need) {
		return d.give(fmt.Errorf("%w: it has %#x, needed are %#x", ErrFeatures, offers, need))
	}
	d.accepts = offers & (need | want(offers) | Version1 | AccessPlatform)
	d.t.setFeatures(d.accepts)
	d.t.setStatus(statusAcknowledge | statusDriver | statusFeaturesOK)
	if d.t.status()&statusFeaturesOK == 0 {
		return d.give(fmt.Errorf("%w: it does not accept %#x", ErrFeatures, d.accepts))
	}
	return nil
}

// Has reports whether a feature was agreed on.
func (d *Device) Has(f Features) bool { return d.accepts.Has(f) }

// give gives the device up while it is being opened (section 3.1.1: FAILED), and
// closes it.
func (d *Device) give(err error) error {
	d.t.setStatus(d.t.status() | statusFailed)
	d.Close()
	return d.wrap(err)
}

// reset waits until the device has stopped what it did.
func (d *Device) reset() error {
	d.t.setStatus(0)
	for start := time.Now(); d.t.status() != 0; time.Sleep(resetTick) {
		if time.Since(start) > resetBound {
			return d.wrap(ErrReset)
		}
	}
	return nil
}

// QueueSpec is what a driver wants of a queue.
type QueueSpec struct {
	Index    int
	Size     int  // most descriptors: a power of two
	Indirect bool // chains of several segments go into tables of their own, if the device can
}

// SetUp makes queues, and their interrupts.
func (d *Device) SetUp(specs ...QueueSpec) ([]*Queue, error) {
	for _, s := range specs {
		if s.Index >= d.t.queues() {
			return nil, d.give(fmt.Errorf("%w: it has %d, needed is number %d", ErrQueue, d.t.queues(), s.Index))
		}
		q, err := d.newQueue(s)
		if err != nil {
			return nil, d.give(err)
		}
		d.queues = append(d.queues, q)
	}
	if err := d.connect(); err != nil {
		return nil, d.give(err)
	}
	for _, q := range d.queues {
		if err := d.t.setQueue(q.index, q.memory()); err != nil {
			return nil, d.give(err)
		}
	}
	return d.queues, nil
}

// Start lets the device work.
func (d *Device) Start() error {
	d.t.setStatus(statusAcknowledge | statusDriver | statusFeaturesOK | statusDriverOK)
	if d.t.status()&statusDriverOK == 0 {
		return d.give(ErrBroken)
	}
	return nil
}

// Changed rings when the configuration has changed, or the device has broken: see
// Check.
func (d *Device) Changed() <-chan struct{} { return d.interrupts.config }

// Check asks the device whether it still works (section 2.1.2). The error is final.
func (d *Device) Check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil && !d.closed {
		if s := d.t.status(); s&(statusNeedsReset|statusFailed) != 0 || s&statusDriverOK == 0 {
			d.failure = d.wrap(ErrBroken)
		}
	}
	return d.failure
}

// Fail says that the driver gives the device up, for the first reason that it finds.
// The device is told.
func (d *Device) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil && !d.closed {
		d.failure = d.wrap(err)
		d.t.setStatus(d.t.status() | statusFailed)
	}
}

// Err is why the device is of no use any more; nil while it is.
func (d *Device) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil && d.closed {
		return ErrClosed
	}
	return d.failure
}

// Close resets the device and gives back its interrupts and queues. The driver has
// stopped using them. After ErrReset the device may still write to memory that it
// was given: that of the queues is kept from further use, and the driver must do so
// with its own. Close may be called more than once, and returns the same.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.last
	}
	d.closed = true
	d.last = d.reset()
	if d.t.stop() {
		d.last = nil // the bus keeps it from memory
	}
	d.interrupts.close()
	if d.last != nil {
		return d.last
	}
	for _, q := range d.queues {
		q.free()
	}
	return nil
}
