// Package ahci is the driver of SATA disks behind AHCI controllers (Serial ATA AHCI 1.3.1, whose
// sections are cited here, and ATA/ATAPI Command Set 3, ACS-3).
//
// Read in this order: ahci.go (the controller), port.go (how a disk is started and stopped),
// registers.go, identify.go (the properties of a disk), ring.go (a request as a command, and
// errors). The part that all controllers share is in block/controller.
//
// Each port with a disk is a separate block device. All ports share the controller's interrupt: hba.distribute passes each interrupt
// on to the ports that caused it. If the machine can call functions, its goroutine of interrupts runs distribute and takes the
// completions of the ports. If not, hba.loop runs distribute, and wakes the loops of the ports.
package ahci

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"loam/block"
	"loam/block/controller"
	"loam/driver"
	"loam/driver/pci"
	"loam/internal/crew"
)

// Class is the class code of these controllers: mass storage, serial ATA, AHCI 1.0.
const Class = 0x010601

// Errors. Each is wrapped with the name of the controller or disk.
var (
	ErrNotAHCI = errors.New("ahci: not an AHCI controller that this driver supports")
	ErrNotDisk = errors.New("ahci: not a disk that this driver supports")
	ErrReset   = errors.New("ahci: the controller or a port does not reset, start or stop")
)

// Time limits and sizes of the driver.
const (
	answerBound = 30 * time.Second
	resetBound  = time.Second            // section 10.4.3: a reset ends within a second
	stopBound   = 500 * time.Millisecond // section 10.1.2: a port stops within 500 ms
	linkBound   = 100 * time.Millisecond // a connected disk is detected within 10 ms (10.1)
	readyBound  = 10 * time.Second       // a disk may have to spin up
	pollTick    = 100 * time.Microsecond
	mostBytes   = 128 << 10 // maximum number of bytes of a request
	mostData    = 32        // maximum number of pieces of Request.Data
)

// hba is a controller.
type hba struct {
	machine   driver.Machine
	f         *pci.Function
	registers driver.Registers
	slots     int
	queued    bool // the controller has native command queuing
	interrupt driver.Interrupt
	message   bool      // the interrupt is message-signaled (MSI)
	spunUp    time.Time // when the ports began to spin up their disks

	done chan struct{} // closed when the last port is closed
	crew crew.Crew

	mu    sync.Mutex // guards the fields users and ports
	users int        // number of open ports
	ports [mostPort]*port
}

// Open starts a controller and returns its disks in the order of their ports. refused has an error
// for each connected device that is not a supported disk. The caller closes each disk.
func Open(m driver.Machine, f *pci.Function, name func(n int) string) (disks []*controller.Device, refused []error, err error) {
	if f.Class != Class {
		return nil, nil, fmt.Errorf("%v: %w", f, ErrNotAHCI)
	}
	h := &hba{machine: m, f: f, done: make(chan struct{}), users: 1}
	defer h.leave()
	if err := h.start(); err != nil {
		return nil, nil, fmt.Errorf("%v: %w", f, err)
	}
	var ports []*port
	for left := h.registers.Read32(regPorts); left != 0; left &= left - 1 {
		p := &port{hba: h, number: bits.TrailingZeros32(left), c: make(chan struct{}, 1)}
		p.stopped = p.spinUp()
		ports = append(ports, p)
	}
	h.spunUp = time.Now()
	for _, p := range ports {
		p.info.Name = name(len(disks))
		switch d, err := p.open(); {
		case err == nil:
			disks = append(disks, d)
		case !errors.Is(err, errEmpty):
			refused = append(refused, fmt.Errorf("%v, port %d: %w", f, p.number, err))
		}
	}
	return disks, refused, nil
}

// start resets the controller (section 10.4.3) and connects its interrupt.
func (h *hba) start() (err error) {
	h.f.Enable()
	const size = portsAt + mostPort*portLen
	bar := h.f.BAR(5)
	if h.registers, err = h.f.Registers(5, 0, min(max(bar.Size, 1), size)); err != nil {
		return err
	}
	r := h.registers
	r.Write32(regControl, controlEnable|controlReset)
	for start := time.Now(); r.Read32(regControl)&controlReset != 0; time.Sleep(pollTick) {
		if r.Read32(regCapabilities) == ^uint32(0) {
			return block.ErrGone
		}
		if time.Since(start) > resetBound {
			return ErrReset
		}
	}
	r.Write32(regControl, controlEnable)
	c := r.Read32(regCapabilities)
	h.slots, h.queued = int(c>>8&31)+1, c&capQueued != 0
	last := bits.Len32(r.Read32(regPorts))
	if c&capWide == 0 || portsAt+last*portLen > r.Size() {
		return fmt.Errorf("%w: capabilities %#x, %d ports, registers of %d bytes", ErrNotAHCI, c, last, r.Size())
	}
	if err := h.connect(); err != nil {
		return err
	}
	h.crew.Start(h.loop)
	r.Write32(regControl, controlEnable|controlInterrupts)
	return nil
}

// connect connects the controller's interrupt: MSI if the PCI function has it, otherwise the function's interrupt line.
func (h *hba) connect() error {
	i, m, err := h.machine.Message()
	if err != nil {
		return err
	}
	if err = h.f.MSI(m); err == nil {
		h.interrupt, h.message = i, true
		if c, ok := i.(driver.Caller); ok {
			c.Call(h.distribute)
		}
		return nil
	}
	i.Close()
	h.interrupt, err = h.f.Line()
	return err
}

// loop passes the controller's interrupts on to the ports that have them.
func (h *hba) loop() {
	for {
		select {
		case <-h.interrupt.C():
			h.distribute()
			h.interrupt.Done()
		case <-h.done:
			return
		}
	}
}

// distribute clears the interrupt reasons of the ports, then the controller's bits, and then wakes the ports (section 5.5.3). In the
// other order, the controller would set a bit again at once, and send a second interrupt for each event. An event between the
// first two steps causes another interrupt, because a bit of the controller follows the state of its port. If a controller latched
// events instead, the port would still see a completion, as it is woken last, but not a failure or a change of the link.
func (h *hba) distribute() {
	s := h.registers.Read32(regStatus)
	if s == 0 || s == ^uint32(0) {
		return
	}
	h.each(s, (*port).record)
	h.registers.Write32(regStatus, s)
	h.each(s, (*port).wake)
}

// each calls f for the ports in a bit mask that receive interrupts.
func (h *hba) each(mask uint32, f func(*port)) {
	for ; mask != 0; mask &= mask - 1 {
		h.mu.Lock()
		p := h.ports[bits.TrailingZeros32(mask)]
		h.mu.Unlock()
		if p != nil {
			f(p)
		}
	}
}

// enter registers a port as a receiver of interrupts.
func (h *hba) enter(p *port) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
	h.ports[p.number] = p
}

// forget removes a port from the receivers of interrupts.
func (h *hba) forget(p *port) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ports[p.number] = nil
}

// leave closes the controller when its last port is closed.
func (h *hba) leave() {
	h.mu.Lock()
	h.users--
	last := h.users == 0
	h.mu.Unlock()
	if !last {
		return
	}
	close(h.done)
	h.crew.Wait()
	if h.registers != nil {
		// this value lacks the bit controlInterrupts: the controller sends no more interrupts
		h.registers.Write32(regControl, controlEnable)
	}
	if h.message {
		h.f.CloseMSI()
	}
	h.f.Disable()
	if h.interrupt != nil {
		h.interrupt.Close()
	}
}
