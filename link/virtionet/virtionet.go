// Package virtionet is a device on a virtio network card (virtio 1.2 section 5.1):
// how a virtual machine is connected.
//
// Read in this order: open.go (features, queues), receive.go, send.go, control.go.
//
// Frames cross without being copied where the card reaches the Go heap: a frame's
// own buffer is what the card writes to and reads from, with the virtio-net header
// in the headroom. Where it does not (Memory.Segments says so) they are copied
// through memory of the driver's. A frame that the card has put together from many
// (GUEST_TSO4 and the like) comes in several buffers and is copied into one.
//
// A pair of queues has no goroutine of its own for receiving: Recv looks at the ring
// and waits for its interrupt. One goroutine a pair waits for room after a Send that
// came up short. A device has one for changes of the configuration, and one that sees to
// it that nobody waits for an interrupt that has been lost.
//
// A card that completes what it was not asked for, or says that it is broken, is
// given up: the error of Recv and Send, for good, says why. One that merely takes
// its time holds up Send by being full, as any slow link does.
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

// Device is an open card.
type Device struct {
	card    *virtio.Device
	machine driver.Machine
	info    link.Info
	direct  bool // the card reaches the Go heap
	merges  bool // MRG_RXBUF
	ecn     bool // HOST_ECN
	pairs   []*pair
	queues  []link.Queue // the same as pairs
	control *control     // nil: there is no control queue
	log     *slog.Logger

	up      atomic.Bool   // see LinkUp
	stalls  atomic.Uint64 // see Counters
	lost    atomic.Uint64
	changes atomic.Uint64

	done    chan struct{}         // closed when the device is closed, or given up
	stopped sync.Once             // closes done
	failure atomic.Pointer[error] // why: set before done is closed

	closing sync.Once
	err     error // of closing
	crew    crew.Crew
}

// pair is a pair of queues.
type pair struct {
	device   *Device
	counters link.Counters
	receiver
	sender
}

// Counters count what link.Stats has no place for.
type Counters struct {
	Receive, Send virtio.RingCounters // of all queues together
	Stalls        uint64              // times that a full queue did not move for stallBound
	Lost          uint64              // times that frames had come and their interrupt had not: see lookEvery
	Changes       uint64              // times that the configuration was looked at because it may have changed
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

// Counters adds up all queues.
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

// LinkUp reports whether the card says that its cable is plugged in. One that does
// not say is taken as connected.
func (d *Device) LinkUp() bool { return d.up.Load() }

// loop hears that the configuration has changed.
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

// lookEvery is how often a card that receives nothing is looked at. An interrupt that is lost
// holds frames up for twice as long at most, and not for ever.
const lookEvery = time.Second

// watch looks at the receiving queues until the card is closed.
func (d *Device) watch() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-d.done:
			return
		}
		for i, p := range d.pairs {
			if p.receiver.look() {
				d.lost.Add(1)
				d.log.Warn("an interrupt of the network card was lost", "link", d.info.Name, "queue", i)
			}
		}
	}
}

// fail gives the card up, for the first reason that is found.
func (d *Device) fail(err error) {
	d.card.Fail(err)
	d.stop(err)
}

// stop wakes whoever waits, and says why.
func (d *Device) stop(err error) {
	d.failure.CompareAndSwap(nil, &err)
	d.stopped.Do(func() {
		close(d.done)
		for _, p := range d.pairs {
			p.sender.room.Close()
		}
	})
}

// state is nil while the device works, then what Recv and Send return.
func (d *Device) state() error {
	select {
	case <-d.done:
		return *d.failure.Load()
	default:
		return nil
	}
}

// Close implements link.Device. If the card does not stop, the frames that it was
// given are not used again.
func (d *Device) Close() error {
	d.closing.Do(func() {
		d.stop(link.ErrClosed)
		d.crew.Wait()
		for _, p := range d.pairs { // whoever was in Recv or Send has left
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

// abandoned are devices whose cards would not stop: they keep the memory that the
// cards may still write to.
var abandoned struct {
	mu  sync.Mutex // guards all
	all []*Device
}

func abandon(d *Device) {
	abandoned.mu.Lock()
	defer abandoned.mu.Unlock()
	abandoned.all = append(abandoned.all, d)
}
