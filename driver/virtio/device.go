package virtio

import (
	"fmt"
	"sync"
	"time"

	"loam/driver"
)

// Device is a virtio device during and after its initialisation (virtio 1.2 section 3.1.1). It belongs to one driver,
// which initialises it in one goroutine. Afterwards Check, Close, Err, Fail and the queues may be used in other
// goroutines. If a step of the initialisation fails, it closes the device.
//
// The states of a device are: probed; negotiated, after Negotiate; set up, after SetUp; started, after Start; failed,
// after Fail or a Check that found an error; and closed. The queues work while the device is started. A failed device
// can only be closed. For a failed or closed device, Err returns the error.
type Device struct {
	machine driver.Machine
	t       transport
	accepts Features
	queues  []*Queue

	interrupts interrupts

	mu      sync.Mutex // guards the fields closed, failure and last
	closed  bool
	failure error // why the device failed; nil while it works
	last    error // result of Close, for later calls
}

// resetBound is the timeout of a reset, and resetTick the interval at which the status is polled. The devices of
// virtual machine monitors reset immediately. Virtio 1.2 section 2.4.2 defines no timeout.
const (
	resetBound = 2 * time.Second
	resetTick  = time.Millisecond
)

func newDevice(m driver.Machine, t transport) *Device {
	return &Device{machine: m, t: t}
}

// String returns a name of the device for messages.
func (d *Device) String() string { return fmt.Sprintf("virtio-%v, %s", d.t.kind(), d.t.name()) }

// Kind returns the type of the device.
func (d *Device) Kind() Kind { return d.t.kind() }

// Machine returns the machine that the device belongs to.
func (d *Device) Machine() driver.Machine { return d.machine }

func (d *Device) wrap(err error) error { return fmt.Errorf("%v: %w", d, err) }

// Negotiate resets the device and negotiates features: all features in the set need, and
// those features in the set want that the device offers. VERSION_1 is always required.
// ACCESS_PLATFORM is accepted if it is offered, since drivers use only device addresses,
// from driver.Memory. It returns ErrLegacy, ErrFeatures or ErrReset on failure.
func (d *Device) Negotiate(need, want Features) error {
	return d.NegotiateBy(need, func(Features) Features { return want })
}

// NegotiateBy is like Negotiate, for a driver whose choice of optional features depends on the features that the device
// offers.
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

// Has reports whether features were negotiated.
func (d *Device) Has(f Features) bool { return d.accepts.Has(f) }

// give ends the initialisation of the device after an error: it sets the status FAILED (virtio 1.2 section 3.1.1),
// closes the device and returns the error.
func (d *Device) give(err error) error {
	d.t.setStatus(d.t.status() | statusFailed)
	d.Close()
	return d.wrap(err)
}

// reset resets the device and waits until it has stopped.
func (d *Device) reset() error {
	d.t.setStatus(0)
	for start := time.Now(); d.t.status() != 0; time.Sleep(resetTick) {
		if time.Since(start) > resetBound {
			return d.wrap(ErrReset)
		}
	}
	return nil
}

// QueueSpec describes a queue that a driver needs.
type QueueSpec struct {
	Index    int
	Size     int  // maximum number of descriptors, a power of two
	Indirect bool // a chain of several segments uses an indirect table, if the device supports this
	Segments int  // maximum number of segments in a chain, at least MaxSegments
}

// SetUp creates queues and their interrupts, after Negotiate and before Start. On error it closes the device.
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

// Start completes the initialisation. The device may use its queues from then on.
func (d *Device) Start() error {
	d.t.setStatus(statusAcknowledge | statusDriver | statusFeaturesOK | statusDriverOK)
	if d.t.status()&statusDriverOK == 0 {
		return d.give(ErrBroken)
	}
	return nil
}

// Changed returns a channel that receives after the configuration has changed or the device has failed. The driver then
// calls Check.
func (d *Device) Changed() <-chan struct{} { return d.interrupts.config }

// Check reads the device's status and returns an error if the device has failed (virtio 1.2 section 2.1.2). All later
// calls return the same error.
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

// Fail marks the device as failed with an error, and reports the failure to the device. Only the first call has an
// effect.
func (d *Device) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil && !d.closed {
		d.failure = d.wrap(err)
		d.t.setStatus(d.t.status() | statusFailed)
	}
}

// Err returns the error with which the device failed, ErrClosed after Close, and nil while the device works.
func (d *Device) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil && d.closed {
		return ErrClosed
	}
	return d.failure
}

// Close resets the device and releases its interrupts and queues; the driver must not use them any more. If Close
// returns ErrReset, the device did not stop and may still write to the memory that it was given. So the memory of the
// queues is not reused, and the driver must not reuse its own buffers either. Further calls of Close return the same
// result.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.last
	}
	d.closed = true
	d.last = d.reset()
	if d.t.stop() {
		d.last = nil // the bus now prevents the device's accesses to memory, so its memory may be reused
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
