// Package nvme is the driver of NVM Express controllers over PCI (NVM Express Base Specification
// 1.4, whose sections are cited here).
//
// Read in this order: nvme.go (how a controller is started), registers.go, pair.go (a submission
// and a completion queue), identify.go (the properties of a controller), ring.go (a request as a
// command), prp.go (the addresses of its data). The part that all controllers share is in
// block/controller.
//
// The driver uses the first active namespace. Admin commands are sent only while the controller is
// being started, one at a time. The driver polls for their completion, with a time limit.
package nvme

import (
	"errors"
	"fmt"
	"time"

	"loam/block"
	"loam/block/controller"
	"loam/driver"
	"loam/driver/pci"
)

// Class is the class code of these controllers (PCI code and ID assignment 1.11):
// mass storage, non-volatile memory, NVM Express.
const Class = 0x010802

// Errors. Each is wrapped with the name of the controller.
var (
	ErrNotNVMe   = errors.New("nvme: not an NVM Express controller that this driver supports")
	ErrReset     = errors.New("nvme: the controller does not become ready, or does not stop")
	ErrCommand   = errors.New("nvme: the controller refuses a command of its start")
	ErrNamespace = errors.New("nvme: the controller has no namespace that can be used")
)

// Time limits and sizes of the driver.
const (
	answerBound = 30 * time.Second
	adminBound  = 10 * time.Second
	pollTick    = 100 * time.Microsecond
	depth       = 63 // commands in flight on a queue, which has one entry more
	adminSize   = 16
	mostBytes   = 128 << 10 // maximum number of bytes of a request
	mostData    = 32        // maximum number of pieces of Request.Data
	mostQueues  = 16
)

// Config configures a controller.
type Config struct {
	Name   string // name for users; empty: the name of the PCI function
	Queues int    // maximum number of I/O queues; 0: one queue
}

// disk is a controller with the resources that are freed when it is closed.
type disk struct {
	machine    driver.Machine
	f          *pci.Function
	registers  driver.Registers
	cap        capabilities
	info       block.Info
	namespace  uint32
	size       int64 // size of the namespace in bytes
	admin      *pair
	lastID     uint16
	pairs      []*pair
	lists      []driver.Buffer // lists of the pages of a command (PRP lists), one buffer for each ring
	interrupts []driver.Interrupt
	messages   *pci.MSIX // interrupts of the controller; nil: it has only an interrupt line
}

// Open starts a controller.
func Open(m driver.Machine, f *pci.Function, c Config) (*controller.Device, error) {
	if f.Class != Class {
		return nil, fmt.Errorf("%v: %w", f, ErrNotNVMe)
	}
	d := &disk{machine: m, f: f}
	if d.info.Name = c.Name; c.Name == "" {
		d.info.Name = f.String()
	}
	rings, err := d.start(max(1, min(c.Queues, mostQueues)))
	if err != nil {
		if d.stop() == nil {
			d.free()
		}
		return nil, fmt.Errorf("%v: %w", f, err)
	}
	d.info.Depth = depth * len(rings)
	return controller.Open(controller.Config{
		Machine: m, Info: d.info, Size: d.size, Rings: rings, Slots: d.pairs[0].size - 1,
		Rules:    controller.Rules{FUA: true, Flush: d.info.Volatile},
		Segments: mostPages + 1, Fits: fits, Stop: d.stop, Free: d.free,
	}), nil
}

// start prepares the controller for its first I/O command (section 7.6.1).
func (d *disk) start(queues int) ([]controller.Ring, error) {
	d.f.Enable()
	if err := d.findRegisters(); err != nil {
		return nil, err
	}
	if err := d.disable(); err != nil {
		return nil, err
	}
	if err := d.enable(); err != nil {
		return nil, err
	}
	if err := d.identify(); err != nil {
		return nil, err
	}
	n, err := d.connect(queues)
	if err != nil {
		return nil, err
	}
	return d.makeQueues(n)
}

// findRegisters maps the registers, and checks the controller's capabilities.
func (d *disk) findRegisters() (err error) {
	const first = regDoorbells
	if d.registers, err = d.f.Registers(0, 0, first); err != nil {
		return err
	}
	d.cap = capabilities(d.registers.Read64(regCapabilities))
	if d.cap == ^capabilities(0) {
		return block.ErrGone
	}
	if !d.cap.commandSet() || d.cap.minPage() > pageSize || d.cap.entries() < 2 {
		return fmt.Errorf("%w: capabilities %#x", ErrNotNVMe, uint64(d.cap))
	}
	d.registers, err = d.f.Registers(0, 0, uint64(first+2*(mostQueues+1)*d.cap.stride()))
	return err
}

// ready waits until the controller is ready (want is true) or has stopped (want is false), at most for the time that its
// register CAP.TO states. Errors: ErrReset, block.ErrGone.
func (d *disk) ready(want bool) error {
	bound := time.Duration(d.cap.timeout()+1) * 500 * time.Millisecond
	for start := time.Now(); ; time.Sleep(pollTick) {
		s := d.registers.Read32(regStatus)
		switch {
		case s == ^uint32(0):
			return block.ErrGone
		case s&statusReady != 0 == want:
			return nil
		case want && s&statusFatal != 0 || time.Since(start) > bound:
			return fmt.Errorf("%w (status %#x)", ErrReset, s)
		}
	}
}

func (d *disk) disable() error {
	d.registers.Write32(regConfig, 0)
	return d.ready(false)
}

// enable sets up the admin queues and starts the controller.
func (d *disk) enable() (err error) {
	if d.admin, err = newPair(d.machine, d.registers, 0, adminSize, d.cap.stride()); err != nil {
		return err
	}
	r := d.registers
	r.Write32(regAdminSizes, (adminSize-1)<<16|(adminSize-1))
	r.Write64(regAdminQueue, d.admin.submit.Address)
	r.Write64(regAdminDone, d.admin.done.Address)
	r.Write32(regConfig, configSizes|configEnable)
	return d.ready(true)
}

// ask sends an admin command and waits for its completion.
func (d *disk) ask(c command) (result uint32, err error) {
	d.lastID++
	c.id = d.lastID
	d.admin.add(&c)
	d.admin.show()
	for start := time.Now(); ; time.Sleep(pollTick) {
		answer, ok := d.admin.take()
		if !ok {
			if time.Since(start) > adminBound {
				return 0, block.ErrTimeout
			}
			continue
		}
		d.admin.release()
		switch {
		case answer.id != c.id:
			return 0, nonsense("admin command %d, asked was %d", answer.id, c.id)
		case answer.status != 0:
			return 0, fmt.Errorf("%w: opcode %#x, status %#x", ErrCommand, c.opcode, answer.status)
		}
		return answer.result, nil
	}
}

// connect connects interrupts, and returns the number of I/O queues that they can serve: one for
// each MSI-X vector other than vector 0, which belongs to the admin queue. If vector 0 is the only
// one, or the function has only an interrupt line, there is one I/O queue.
func (d *disk) connect(queues int) (n int, err error) {
	result, err := d.ask(command{opcode: adminSetFeatures, dwords: [3]uint32{featureQueues, uint32(queues-1)<<16 | uint32(queues-1)}})
	if err != nil {
		return 0, err
	}
	n = min(queues, int(result&0xffff)+1, int(result>>16)+1)
	if d.messages, err = d.f.MSIX(); errors.Is(err, pci.ErrNoMSIX) {
		i, err := d.f.Line()
		if err == nil {
			d.interrupts = append(d.interrupts, i)
		}
		return 1, err
	} else if err != nil {
		return 0, err
	}
	vectors := d.messages.Len()
	n = max(1, min(n, vectors-1))
	for i := range n {
		one, m, err := d.machine.Message()
		if err != nil {
			return 0, err
		}
		d.interrupts = append(d.interrupts, one)
		if err := d.messages.Set(min(i+1, vectors-1), m); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// makeQueues creates the I/O queues (sections 5.3 and 5.4).
func (d *disk) makeQueues(n int) (rings []controller.Ring, err error) {
	const contiguous, interrupts = 1, 2
	size := min(depth+1, d.cap.entries())
	for i := range n {
		p, err := newPair(d.machine, d.registers, i+1, size, d.cap.stride())
		if err != nil {
			return nil, err
		}
		d.pairs = append(d.pairs, p)
		vector := uint32(0)
		if d.messages != nil {
			vector = uint32(min(i+1, d.messages.Len()-1))
		}
		which := uint32(size-1)<<16 | uint32(i+1)
		if _, err := d.ask(command{opcode: adminCreateCompletion, prp1: p.done.Address, dwords: [3]uint32{which, vector<<16 | interrupts | contiguous}}); err != nil {
			return nil, err
		}
		if _, err := d.ask(command{opcode: adminCreateSubmission, prp1: p.submit.Address, dwords: [3]uint32{which, uint32(i+1)<<16 | contiguous}}); err != nil {
			return nil, err
		}
		list, err := d.machine.Allocate((size-1)*listLen, pageSize)
		if err != nil {
			return nil, err
		}
		d.lists = append(d.lists, list)
		rings = append(rings, &ring{disk: d, pair: p, list: list, interrupt: d.interrupts[i]})
	}
	return rings, nil
}

// stop stops the controller, and ends its access to memory even if it does not stop.
func (d *disk) stop() error {
	if d.registers != nil {
		d.registers.Write32(regConfig, 0)
		// An error does not matter, because Disable below ends the access to memory.
		d.ready(false)
	}
	if d.messages != nil {
		d.messages.Close()
	}
	d.f.Disable()
	return nil
}

// free frees the interrupts and the memory of the controller.
func (d *disk) free() {
	for _, i := range d.interrupts {
		i.Close()
	}
	for _, p := range d.pairs {
		p.free(d.machine)
	}
	for _, b := range d.lists {
		d.machine.Free(b)
	}
	if d.admin != nil {
		d.admin.free(d.machine)
	}
}
