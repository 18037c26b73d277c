// Package e1000e is a device on an Intel Gigabit Ethernet card: an 82574L (QEMU and VMware emulate it as e1000e), or the
// older 82540EM or 82545EM (e1000 of QEMU, VirtualBox and VMware). Comments name sections of the data sheet of the 82574.
//
// Read in this order: open.go (reset, address, rings), registers.go, interrupt.go, receive.go, send.go.
//
// Offloads: the card computes the checksums of TCP and UDP, and cuts TCP frames into segments (OffloadChecksum,
// OffloadTSO4, and on the 82574L OffloadTSO6). It checks the checksums of received frames. It does not cut UDP. The driver uses one queue
// in each direction. All multicast frames are received, and unicast frames for the card's own address.
//
// The card reads and writes only memory of the driver, and frames are copied from and to this memory. So a card that
// writes too late cannot change a frame that the driver has already delivered. A card of 1 Gbit/s copies at most 125 MB
// per second.
//
// Recv waits for an interrupt, and no goroutine receives for it. One goroutine handles interrupts that are not for a
// single direction. If the card has MSI-X, another goroutine handles interrupts of the transmit ring. A third goroutine
// looks at the card once a second. It notices lost interrupts and a card that was removed, so that no Recv waits forever.
//
// If a card reports a length that its buffer does not have, or is removed, the device stops using it, and
// ends its access to memory: from then on Recv and Send return the reason as an error. A card that does not send makes Send find the ring full.
package e1000e

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"loam/driver"
	"loam/driver/pci"
	"loam/internal/crew"
	"loam/link"
)

// Errors. Open wraps each with the name of the card.
var (
	ErrUnknown  = errors.New("e1000e: not a card that this driver supports")
	ErrReset    = errors.New("e1000e: the card does not finish its reset")
	ErrGone     = errors.New("e1000e: the card no longer responds")
	ErrNonsense = errors.New("e1000e: the card writes descriptors that make no sense")
)

// Device is an open network card.
type Device struct {
	machine   driver.Machine
	f         *pci.Function
	registers driver.Registers
	old       bool // an 82540EM or 82545EM, which lacks some registers
	info      link.Info
	queues    []link.Queue // d.queue as the only element
	queue     *queue
	log       *slog.Logger

	interrupts []driver.Interrupt // one for each vector with MSI-X, otherwise one
	messages   *pci.MSIX          // nil: the card uses MSI or its interrupt line
	line       bool               // the card uses its interrupt line
	causes     causes

	up      atomic.Bool   // whether the cable is connected: see LinkUp
	stalls  atomic.Uint64 // value for the field of the same name in Counters, like the next two fields
	lost    atomic.Uint64
	changes atomic.Uint64

	done    chan struct{}         // closed when the device is closed or has failed
	stopped sync.Once             // makes sure that done is closed only once
	failure atomic.Pointer[error] // why done was closed; set before that

	closing sync.Once
	crew    crew.Crew
}

// queue is the receive ring and the transmit ring.
type queue struct {
	device   *Device
	counters link.Counters
	receiver
	sender
}

// Counters are counters that link.Stats does not include.
type Counters struct {
	Stalls  uint64 // times that the card sent nothing for stallTicks although it was given frames
	Lost    uint64 // times that frames had arrived without an interrupt
	Changes uint64 // times that the cable was connected or disconnected
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// Stats implements link.Device. RxDropped is up to a second old.
func (d *Device) Stats() link.Stats { return d.queue.counters.Stats() }

// Counters returns the counters.
func (d *Device) Counters() Counters {
	return Counters{Stalls: d.stalls.Load(), Lost: d.lost.Load(), Changes: d.changes.Load()}
}

// LinkUp reports whether a connected cable was found when the card last reported a change.
func (d *Device) LinkUp() bool { return d.up.Load() }

// read reads a register. If the card no longer responds, read stops its use and returns false.
func (d *Device) read(register int) (v uint32, ok bool) {
	if v = d.registers.Read32(register); v == gone {
		d.stop(ErrGone)
		return 0, false
	}
	return v, true
}

// readLink reads whether the cable is connected, and logs a change.
func (d *Device) readLink() (ok bool) {
	status, ok := d.read(regStatus)
	if !ok {
		return false
	}
	up := status&statusLinkUp != 0
	if d.up.Swap(up) == up {
		return true
	}
	d.changes.Add(1)
	if up {
		d.log.Warn("the cable of the network card is connected", "link", d.info.Name)
	} else {
		d.log.Warn("the cable of the network card is not connected", "link", d.info.Name)
	}
	return true
}

// lookEvery is how often watch looks at the card. A lost interrupt delays frames by at most twice this time.
const lookEvery = time.Second

// watch looks at the card until the device is closed. It runs on a goroutine of its own.
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
		if !d.readLink() {
			return
		}
		if missed, ok := d.read(regMissed); ok {
			d.queue.counters.RxDropped(int(missed))
		}
		d.queue.receiver.look(late)
		d.queue.sender.look()
	}
}

// stop wakes all waiting goroutines, and records the reason unless there is one already.
func (d *Device) stop(err error) {
	d.failure.CompareAndSwap(nil, &err)
	d.stopped.Do(func() {
		close(d.done)
		d.queue.sender.room.Close()
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

// Close implements link.Device. Afterwards the card cannot access memory, even if its reset fails.
func (d *Device) Close() error {
	d.closing.Do(func() {
		d.stop(link.ErrClosed)
		d.crew.Wait()
		d.turnOff() // without a lock, because it sleeps: a goroutine in Recv or Send may want the lock only to see that the device is closed
		r, s := &d.queue.receiver, &d.queue.sender
		r.mu.Lock() // waits for a goroutine in Recv to leave
		defer r.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		d.free()
	})
	return nil
}

// turnOff ends all activity of the card.
func (d *Device) turnOff() {
	if d.registers != nil {
		// An error does not matter, because Disable below ends the card's access to memory.
		d.reset()
	}
	if d.messages != nil {
		d.messages.Close()
	} else {
		d.f.CloseMSI()
	}
	d.f.Disable()
}

// free frees the interrupts and the memory of a card that is off.
func (d *Device) free() {
	for _, i := range d.interrupts {
		i.Close()
	}
	d.interrupts = nil
	d.queue.receiver.free(d.machine)
	d.queue.sender.free(d.machine)
}
