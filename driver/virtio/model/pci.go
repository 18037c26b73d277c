package model

import (
	"sync"

	"loam/driver"
)

// function is a virtio device on the PCI bus (virtio 1.2 section 4.1). It consists of a configuration space and of one
// BAR that contains all registers.
type function struct {
	*Device
	*slot
}

// slot is the part of the simulation that all PCI functions have in common.
type slot struct {
	machine *Machine
	config  [64]uint32
	bar     uint32 // index of the only BAR in config
	size    uint32 // size of the BAR in bytes
	gsi     uint32

	mu     sync.Mutex       // guards the fields below
	table  []driver.Message // vector table of MSI-X
	masked []bool
}

// Layout of the registers in the BAR.
const (
	barAddress = 0xe000_0000
	barSize    = 0x4000
	barSpace   = 0x1_0000 // distance between the BARs of two functions
	atCommon   = 0x0000
	atISR      = 0x1000
	atDevice   = 0x1800
	atNotify   = 0x2000
	atTable    = 0x3000
	notifyStep = 4
	msixCap    = 0x98
)

// AddPCI adds a device with the given number of queues in the next free slot of bus 0. vectors is the number of its
// MSI-X vectors; 0 means that it has an interrupt line instead.
func (m *Machine) AddPCI(d *Device, queues, vectors int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slot := uint32(len(m.functions) + 1)
	address := uint32(barAddress + slot*barSpace)
	f := &function{d, m.newSlot(4, barSize, slot, vectors)}
	f.config = [64]uint32{
		0: uint32(0x1040+d.Kind)<<16 | 0x1af4, 1: 1 << 20, // the status bit for a list of capabilities
		2: 0xff << 24, 4: address, 13: 0x40, 15: 1<<8 | slot,
	}
	f.capability(0x40, 0x50, 1, atCommon, 0x38)
	f.capability(0x50, 0x60, 3, atISR, 4)
	f.capability(0x60, 0x74, 4, atDevice, 0x100)
	last := uint8(0)
	if vectors > 0 {
		last = msixCap
		f.config[msixCap/4] = uint32(vectors-1)<<16 | 0x11
		f.config[msixCap/4+1] = atTable
	}
	f.capability(0x74, last, 2, atNotify, notifyStep*uint32(queues))
	f.config[0x84/4] = notifyStep
	m.functions[slot<<11] = f.slot
	m.windows = append(m.windows, window{uint64(address), barSize, f})
	d.start(m, queues, f.raise)
}

// capability writes a virtio capability (virtio 1.2 section 4.1.4).
func (f *function) capability(at, next uint8, kind, offset, length uint32) {
	f.config[at/4] = kind<<24 | 20<<16 | uint32(next)<<8 | 9
	f.config[at/4+2], f.config[at/4+3] = offset, length
}

func (f *function) raise(vector uint16, _ uint8) { f.slot.raise(vector) }

// Out32 implements driver.Ports: PCI configuration mechanism #1.
func (m *Machine) Out32(port uint16, v uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if port == 0xcf8 {
		m.configPort = v
		return
	}
	f := m.functions[m.configPort&0xff_ff00]
	if port != 0xcfc || f == nil {
		return
	}
	switch i := m.configPort >> 2 & 63; {
	case i == f.bar:
		f.config[i] = v &^ (f.size - 1)
	case i >= 4 && i < 10: // BARs that the function does not have
	default:
		f.config[i] = v
	}
}

// In32 implements driver.Ports.
func (m *Machine) In32(port uint16) uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.functions[m.configPort&0xff_ff00]
	if port != 0xcfc || f == nil {
		return ^uint32(0)
	}
	i := m.configPort >> 2 & 63
	if i == 1 {
		return f.config[i] | 1<<20
	}
	return f.config[i]
}

// In8 and the methods below implement driver.Ports. No device responds at any of their ports.
func (m *Machine) In8(uint16) uint8     { return 0xff }
func (m *Machine) In16(uint16) uint16   { return 0xffff }
func (m *Machine) Out8(uint16, uint8)   {}
func (m *Machine) Out16(uint16, uint16) {}

func (f *function) read(at, width int) uint64 {
	if h := f.Hostile; h != nil && h.Read != nil {
		return h.Read(at, width, f.answer(at, width))
	}
	return f.answer(at, width)
}

// answer returns the correct value of a register.
func (f *function) answer(at, width int) uint64 {
	d := f.Device
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case at >= atDevice && at < atNotify:
		return d.readConfig(at-atDevice, width)
	case at == atISR:
		v := d.isr
		d.isr = 0
		f.slot.machine.lines.Set(f.gsi, false)
		return uint64(v)
	case at >= atISR:
		return 0
	}
	return f.common(at)
}

// common reads a register of the common configuration (virtio 1.2 section 4.1.4.3).
func (f *function) common(at int) uint64 {
	d, q := f.Device, f.queue()
	switch at {
	case 0x04:
		return d.Features >> (32 * d.selectors[0]) & 0xffff_ffff
	case 0x10:
		return uint64(d.configVector)
	case 0x12:
		return uint64(len(d.Queues))
	case 0x14:
		return uint64(d.status)
	case 0x15:
		return uint64(d.generation)
	}
	if q == nil {
		return 0
	}
	switch at {
	case 0x18:
		return uint64(q.size)
	case 0x1a:
		return uint64(q.vector)
	case 0x1e:
		return uint64(q.index)
	}
	return 0
}

// write handles a write to a register of the BAR.
func (f *function) write(at, width int, v uint64) {
	d := f.Device
	switch {
	case at == 0x14:
		d.setStatus(uint8(v))
		return
	case at >= atNotify && at < atTable:
		d.Poke()
		return
	}
	if at >= atTable {
		f.setVector((at-atTable)/16, (at-atTable)%16, uint32(v))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch at {
	case 0x00:
		d.selectors[0] = uint32(v)
	case 0x08:
		d.selectors[1] = uint32(v)
	case 0x0c:
		setHalf(&d.accepted, d.selectors[1] != 0, v)
	case 0x10:
		d.configVector = f.vector(v)
	case 0x16:
		d.queueSelect = int(v)
	default:
		if q := d.queue(); q != nil {
			f.setQueue(q, at, v)
		}
	}
}

// setQueue writes to a register of the selected queue.
func (f *function) setQueue(q *Queue, at int, v uint64) {
	switch at {
	case 0x18:
		q.size = int(v)
	case 0x1a:
		q.vector = f.vector(v)
	case 0x1c:
		q.enabled = v != 0
	case 0x20, 0x24:
		setHalf(&q.desc, at == 0x24, v)
	case 0x28, 0x2c:
		setHalf(&q.avail, at == 0x2c, v)
	case 0x30, 0x34:
		setHalf(&q.used, at == 0x34, v)
	}
}
