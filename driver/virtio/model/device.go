package model

import "sync"

// Features of all types of device (virtio 1.2 section 6).
const (
	featureIndirect   = 1 << 28
	featureEventIndex = 1 << 29
	featureVersion1   = 1 << 32
)

// Device status (virtio 1.2 section 2.1).
const (
	statusFeaturesOK = 8
	statusDriverOK   = 4
	statusNeedsReset = 64
)

// Bits of the interrupt status register: the reasons for an interrupt.
const (
	isrQueue  = 1
	isrConfig = 2
)

// Device is the model of a virtio device. Its exported fields must be set before a driver uses it.
type Device struct {
	Kind     uint16
	Features uint64 // features of the device type; the features common to all types are added
	Plain    bool   // the device offers neither indirect descriptors nor event indexes
	Config   []byte // content of the device's configuration space
	MaxQueue int    // maximum number of descriptors of a queue; 0: 256
	// Work is called in the device's goroutine after the driver has started the device or has notified it of a queue,
	// and after Poke.
	Work func(d *Device)
	// Stopped is called after the driver has reset the device.
	Stopped func()
	Queues  []*Queue
	Hostile *Hostile // how the device violates the standard; nil: it conforms to it

	machine *Machine
	raise   func(vector uint16, reason uint8) // raises an interrupt; provided by the transport

	// kick wakes the goroutine loop. It has capacity 1. Register accesses and Poke send without blocking: if the
	// channel is full, a wake-up is already pending. It is never closed.
	kick chan struct{}
	quit chan struct{} // closed by Close
	done sync.WaitGroup

	closing sync.Once

	mu           sync.Mutex // guards the fields below; also Config and Queues while the driver initialises the device
	status       uint8
	accepted     uint64
	selectors    [2]uint32 // selected 32-bit halves of the device features and the driver features
	queueSelect  int
	generation   uint8
	configVector uint16
	isr          uint8
	running      bool
	turn         sync.Mutex // held while loop calls Work, so that a reset can wait until Work has returned
}

// start creates the queues and starts the device's goroutine.
func (d *Device) start(m *Machine, queues int, raise func(vector uint16, reason uint8)) {
	d.machine, d.raise = m, raise
	d.kick, d.quit = make(chan struct{}, 1), make(chan struct{})
	d.Features |= featureVersion1
	if !d.Plain {
		d.Features |= featureIndirect | featureEventIndex
	}
	if d.MaxQueue == 0 {
		d.MaxQueue = 256
	}
	for i := range queues {
		d.Queues = append(d.Queues, &Queue{device: d, index: i})
	}
	d.reset()
	d.done.Go(d.loop)
}

// Close ends the device's goroutine and waits for it. It may be called more than once.
func (d *Device) Close() {
	d.closing.Do(func() { close(d.quit) })
	d.done.Wait()
}

// loop calls Work when it is woken, until Close.
func (d *Device) loop() {
	for {
		select {
		case <-d.kick:
		case <-d.quit:
			return
		}
		d.turn.Lock()
		if d.isRunning() && d.Work != nil {
			d.Work(d)
		}
		d.turn.Unlock()
	}
}

func (d *Device) isRunning() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}

// Become replaces the behaviour of a device, which may already be running, and calls Poke.
func (d *Device) Become(work func(d *Device), h *Hostile) {
	d.turn.Lock()
	d.Work, d.Hostile = work, h
	d.turn.Unlock()
	d.Poke()
}

// Poke makes the device's goroutine call Work.
func (d *Device) Poke() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

func (d *Device) has(feature uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accepted&feature == feature
}

// Change calls the function change with the configuration space, and then notifies the
// driver.
func (d *Device) Change(change func(config []byte)) {
	d.mu.Lock()
	change(d.Config)
	d.generation++
	vector := d.configVector
	d.mu.Unlock()
	d.interrupt(vector, isrConfig)
}

// Break sets the status DEVICE_NEEDS_RESET and notifies the driver.
func (d *Device) Break() {
	d.mu.Lock()
	d.status |= statusNeedsReset
	vector := d.configVector
	d.mu.Unlock()
	d.interrupt(vector, isrConfig)
}

func (d *Device) interrupt(vector uint16, reason uint8) {
	d.mu.Lock()
	d.isr |= reason
	d.mu.Unlock()
	d.raise(vector, reason)
}

// noVector is the vector of a queue without a message-signalled interrupt.
const noVector = 0xffff

// reset handles a write of 0 to the status register. When it returns, the device has stopped.
func (d *Device) reset() {
	d.mu.Lock()
	was := d.running
	d.running = false
	d.mu.Unlock()
	d.turn.Lock()
	defer d.turn.Unlock()
	d.mu.Lock()
	d.status, d.accepted, d.isr = 0, 0, 0
	d.configVector = noVector
	for _, q := range d.Queues {
		*q = Queue{device: d, index: q.index, vector: noVector, size: d.MaxQueue}
	}
	d.mu.Unlock()
	if was && d.Stopped != nil {
		d.Stopped()
	}
}

// setStatus handles a write to the status register.
func (d *Device) setStatus(v uint8) {
	d.turn.Lock()
	h := d.Hostile
	d.turn.Unlock()
	if v == 0 {
		if h == nil || !h.NeverResets {
			d.reset()
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v&statusFeaturesOK != 0 && d.status&statusFeaturesOK == 0 && (d.accepted&^d.Features != 0 || d.accepted&featureVersion1 == 0 || h != nil && h.RefusesFeatures) {
		v &^= statusFeaturesOK
	}
	if v&statusDriverOK != 0 && d.status&statusDriverOK == 0 {
		for _, q := range d.Queues {
			if q.enabled {
				q.open()
			}
		}
		d.running = true
		d.Poke()
	}
	d.status = v
}

// queue returns the queue that the driver has selected; nil if its number is out of range.
func (d *Device) queue() *Queue {
	if d.queueSelect >= len(d.Queues) {
		return nil
	}
	return d.Queues[d.queueSelect]
}

// readConfig reads width bytes of the configuration space, beginning at the offset at.
func (d *Device) readConfig(at, width int) (v uint64) {
	if h := d.Hostile; h != nil && h.ConfigMoves {
		d.generation++
	}
	for i := range width {
		if at+i < len(d.Config) {
			v |= uint64(d.Config[at+i]) << (8 * i)
		}
	}
	return v
}

// Accepted returns the features that the driver has accepted.
func (d *Device) Accepted() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accepted
}
