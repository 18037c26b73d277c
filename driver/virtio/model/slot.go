package model

import "loam/driver"

// newSlot returns the common part of a function with a number of MSI-X vectors.
func (m *Machine) newSlot(bar, size, gsi uint32, vectors int) *slot {
	return &slot{machine: m, bar: bar, size: size, gsi: gsi, table: make([]driver.Message, vectors), masked: make([]bool, vectors)}
}

// raise sends the message of a vector or, without MSI-X, raises the function's interrupt line.
func (s *slot) raise(vector uint16) {
	if len(s.table) == 0 {
		s.machine.lines.Set(s.gsi, true)
		return
	}
	s.mu.Lock()
	ok := int(vector) < len(s.table) && !s.masked[vector]
	var v driver.Message
	if ok {
		v = s.table[vector]
	}
	s.mu.Unlock()
	if ok {
		s.machine.deliver(v)
	}
}

// vector returns v if it is the number of a vector, and noVector otherwise.
func (s *slot) vector(v uint64) uint16 {
	if v >= uint64(len(s.table)) {
		return noVector
	}
	return uint16(v)
}

// setVector writes a 32-bit word to the vector table of MSI-X.
func (s *slot) setVector(i, at int, v uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.table) {
		return
	}
	switch at {
	case 0:
		s.table[i].Address = uint64(v)
	case 4:
		s.table[i].Address |= uint64(v) << 32
	case 8:
		s.table[i].Data = v
	case 12:
		s.masked[i] = v&1 != 0
	}
}

// Registers is the BAR of a PCI function that is not virtio. width is in bytes; at is a multiple of width.
type Registers interface {
	Read(at, width int) uint64
	Write(at, width int, v uint64)
}

// Function describes a PCI function that is not virtio.
type Function struct {
	ID        uint32 // device ID and vendor ID
	Class     uint32 // class, subclass and interface: 24 bits
	BAR, Size int    // number and size of its only BAR; the size is a power of two, at least 4096
	Vectors   int    // number of MSI-X vectors, whose table is after the registers; 0: it has an interrupt line
	MSI       bool   // the function has MSI in addition to its interrupt line
	Registers Registers
}

// Plug is a PCI function that was added to a machine. The model of the device uses it to raise interrupts and to access
// memory.
type Plug struct{ *slot }

// AddFunction adds a function in the next free slot of bus 0.
func (m *Machine) AddFunction(f Function) Plug {
	m.mu.Lock()
	defer m.mu.Unlock()
	number := uint32(len(m.functions) + 1)
	size := 2 * uint32(f.Size)
	s := m.newSlot(4+uint32(f.BAR), size, number, f.Vectors)
	address := uint32(barAddress + number*barSpace)
	s.config = [64]uint32{0: f.ID, 1: 1 << 20, 2: f.Class << 8, 13: msixCap, 15: 1<<8 | number}
	s.config[s.bar] = address
	switch {
	case f.MSI:
		s.config[msixCap/4] = 1<<23 | 0x05
	case f.Vectors > 0:
		s.config[msixCap/4] = uint32(f.Vectors-1)<<16 | 0x11
		s.config[msixCap/4+1] = uint32(f.Size) | uint32(f.BAR)
	default:
		s.config[13] = 0
	}
	m.functions[number<<11] = s
	m.windows = append(m.windows, window{uint64(address), int(size), &plugged{f, s}})
	return Plug{s}
}

// Raise sends the message of a vector or, without MSI-X, raises the function's interrupt line.
func (p Plug) Raise(vector int) { p.raise(uint16(vector)) }

// RaiseMSI sends the MSI message if the driver has enabled MSI, and otherwise raises the function's interrupt line.
func (p Plug) RaiseMSI() {
	const enabled = 1 << 16
	p.machine.mu.Lock()
	c := p.config[msixCap/4:]
	v := driver.Message{Address: uint64(c[1]) | uint64(c[2])<<32, Data: c[3]}
	on := c[0]&0xff == 0x05 && c[0]&enabled != 0
	p.machine.mu.Unlock()
	if on {
		p.machine.deliver(v)
	} else {
		p.machine.lines.Set(p.gsi, true)
	}
}

// Lower lowers the function's interrupt line.
func (p Plug) Lower() { p.machine.lines.Set(p.gsi, false) }

// Memory returns size bytes of memory at a device address. It panics if no driver has provided that memory.
func (p Plug) Memory(address uint64, size int) []byte { return p.machine.at(address, size) }

// Master reports whether the driver has enabled the device's access to memory (PCI 3.0 section 6.2.2).
func (p Plug) Master() bool {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	const master = 4
	return p.config[1]&master != 0
}

// plugged makes the registers of a Function accessible as a window of the machine.
type plugged struct {
	Function
	slot *slot
}

func (p *plugged) read(at, width int) uint64 {
	if at >= p.Size {
		return 0
	}
	return p.Registers.Read(at, width)
}

func (p *plugged) write(at, width int, v uint64) {
	if at >= p.Size {
		p.slot.setVector((at-p.Size)/16, (at-p.Size)%16, uint32(v))
		return
	}
	p.Registers.Write(at, width, v)
}
