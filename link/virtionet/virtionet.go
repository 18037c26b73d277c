// Package virtionet is a device on a virtio network card (virtio 1.2 section 5.1), which connects a
// virtual machine to a network.
//
// Read in this order: open.go (features, queues), receive.go, send.go, control.go.
//
// If the card can reach the Go heap, frames are not copied: the card reads and writes a frame's own
// buffer, with the virtio-net header in the headroom. Otherwise (Memory.Segments reports it) frames
// are copied through memory of the driver. A frame that the card has merged from several segments
// (GUEST_TSO4 and similar features) arrives in several buffers and is copied into one.
//
// A pair of queues has no goroutine for receiving: Recv polls the ring and waits for its interrupt.
// One goroutine per pair waits for room after a Send that did not take all frames. A device has one
// goroutine for configuration changes, and one that detects lost interrupts, so that no Recv waits
// forever.
//
// If a card completes a request that it was not given, or reports that it is broken, the device
// stops using it: from then on Recv and Send return the reason as an error. A card that is merely
// slow makes Send find the queue full, like any slow link.
package virtionet

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"loam/driver"
	"loam/driver/virtio"
	"loam/internal/crew"
	"loam/link"
)

// Device is an open network card.
type Device struct {
	card    *virtio.Device
	machine driver.Machine
	info    link.Info
	direct  bool // the card can reach the Go heap
	merges  bool // MRG_RXBUF: a frame may arrive in several buffers
	ecn     bool // the card has the feature HOST_ECN
	pairs   []*pair
	queues  []link.Queue // the elements of pairs, as interfaces
	control *control     // nil: no control queue
	log     *slog.Logger

	up      atomic.Bool   // whether the cable is connected: see LinkUp
	stalls  atomic.Uint64 // value for the field of the same name in Counters, like the next two fields
	lost    atomic.Uint64
	changes atomic.Uint64

	done    chan struct{}         // closed when the device is closed or has failed
	stopped sync.Once             // makes sure that done is closed only once
	failure atomic.Pointer[error] // why done was closed; set before that

	closing sync.Once
	err     error // result of the first Close
	crew    crew.Crew
}

// pair is a receive queue and a send queue.
type pair struct {
	device   *Device
	counters link.Counters
	receiver
	sender
}

// Counters are counters that link.Stats does not include.
type Counters struct {
	Receive, Send virtio.RingCounters // sums over all queues
	Stalls        uint64              // times that a full queue made no progress for stallBound
	Lost          uint64              // times that frames had arrived without an interrupt: see lookEvery
	Changes       uint64              // times that the configuration was read because it may have changed
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// Stats implements link.Device.
func (d *Device) Stats() (s link.Stats) {
	for _, p := range d.pairs {
		s.Add(p.counters.Stats())
	}
	return s
}

// Counters returns the sums of the counters of all queues.
func (d *Device) Counters() (c Counters) {
	for _, p := range d.pairs {
		p.receiver.mu.Lock()
		add(&c.Receive, p.receiver.queue.Counters())
		p.receiver.mu.Unlock()
		p.sender.mu.Lock()
		add(&c.Send, p.sender.queue.Counters())
		p.sender.mu.Unlock()
	}
	c.Stalls, c.Lost, c.Changes = d.stalls.Load(), d.lost.Load(), d.changes.Load()
	return c
}

func add(to *virtio.RingCounters, c virtio.RingCounters) {
	to.Added += c.Added
	to.Completed += c.Completed
	to.Published += c.Published
	to.Notified += c.Notified
	to.Nonsense += c.Nonsense
}

// LinkUp reports whether the card reports a connected cable. A card that does not report it counts
// as connected.
func (d *Device) LinkUp() bool { return d.up.Load() }

// loop handles configuration changes until the device is closed. It runs on a goroutine of its own.
func (d *Device) loop() {
	for {
		select {
		case <-d.card.Changed():
		case <-d.done:
			return
		}
		d.changes.Add(1)
		if err := d.card.Check(); err != nil {
			d.fail(err)
			return
		}
		d.readStatus()
	}
}

// lookEvery is how often a card that receives nothing is polled. A lost interrupt delays frames by
// at most twice this time.
const lookEvery = time.Second

// watch polls the receive queues until the device is closed. It runs on a goroutine of its own.
func (d *Device) watch() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ticker.C:
		case <-d.done:
			return
		}
		now := time.Now()
		late := now.Sub(last) > lookEvery+lookEvery/2
		last = now
		for _, p := range d.pairs {
			p.receiver.look(late)
		}
	}
}

// fail stops the use of the card. Only the first reason counts.
func (d *Device) fail(err error) {
	d.card.Fail(err)
	d.stop(err)
}

// stop wakes all waiting goroutines, and records the reason unless there is one already.
func (d *Device) stop(err error) {
	d.failure.CompareAndSwap(nil, &err)
	d.stopped.Do(func() {
		close(d.done)
		for _, p := range d.pairs {
			p.sender.room.Close()
		}
	})
}

// state returns nil while the device works, and afterwards the error for Recv and Send.
func (d *Device) state() error {
	select {
	case <-d.done:
		return *d.failure.Load()
	default:
		return nil
	}
}

// Close implements link.Device. If the card does not stop, the frames that it still holds are never
// reused.
func (d *Device) Close() error {
	d.closing.Do(func() {
		d.stop(link.ErrClosed)
		d.crew.Wait()
		for _, p := range d.pairs { // the lock waits for goroutines in Recv and Send to leave
			p.receiver.mu.Lock()
			defer p.receiver.mu.Unlock()
			p.sender.mu.Lock()
			defer p.sender.mu.Unlock()
		}
		d.err = d.card.Close()
		if d.err != nil {
			abandon(d)
			return
		}
		for _, p := range d.pairs {
			p.receiver.free(d.machine)
			p.sender.free(d.machine)
		}
		d.control.free(d.machine)
	})
	return d.err
}

// abandoned holds devices whose cards did not stop, so that the garbage collector does not free the
// memory that the cards may still write to.
var abandoned struct {
	mu  sync.Mutex // guards the field named all
	all []*Device
}

func abandon(d *Device) {
	abandoned.mu.Lock()
	defer abandoned.mu.Unlock()
	abandoned.all = append(abandoned.all, d)
}
