package pci

import (
	"fmt"

	"loam/boot/acpi"
	"loam/driver"
)

// Registers of every function (PCI 3.0 section 6.1), and of bridges (PCI-to-PCI bridge 1.2
// section 3.2).
const (
	regID         = 0x00
	regCommand    = 0x04 // command in the lower half; status in the upper half, whose bits are cleared by writing ones
	regClass      = 0x08 // the class; the lowest byte is the revision
	regHeader     = 0x0c
	regBAR        = 0x10
	regBuses      = 0x18 // bus numbers of a bridge
	regMemory     = 0x20 // base and limit of the memory that a bridge forwards
	regSubsystem  = 0x2c
	regCapability = 0x34
	regInterrupt  = 0x3c

	commandPorts  = 1 << 0
	commandMemory = 1 << 1
	commandMaster = 1 << 2
	commandNoLine = 1 << 10 // disables the interrupt line
	commandMask   = 0xffff  // mask that leaves the status bits unchanged

	statusCapabilities = 1 << 20 // bit in the upper half of regCommand: the function has a list of capabilities

	multiFunction = 0x80
	headerDevice  = 0
	headerBridge  = 1

	none = 0xffff // vendor ID that means no device
)

// Bus is the hierarchy of PCI buses behind the host bridge.
type Bus struct {
	machine   driver.Machine
	config    config
	functions []*Function // all functions except bridges, in the order of the scan
	bridges   []*bridge   // parents precede their children
}

// bridge is a PCI-to-PCI bridge, which leads to another bus.
type bridge struct {
	at        Address
	secondary uint8
}

// Function is one function of a device.
type Function struct {
	Address            Address
	Vendor, Device     uint16
	Subsystem          uint16 // subsystem ID, without the subsystem vendor ID
	Class              uint32 // class, subclass, interface: 24 bits
	Revision           uint8
	bus                *Bus
	bars               [6]BAR
	Interrupt          uint8 // number of the interrupt line, as recorded by firmware; 0xff: none
	InterruptConnected bool  // the function has an interrupt pin
}

// String returns the function's address and IDs for messages.
func (f *Function) String() string {
	return fmt.Sprintf("pci %v (%04x:%04x)", f.Address, f.Vendor, f.Device)
}

// Scan finds all functions. If firmware describes memory-mapped configuration space, Scan uses it, and otherwise I/O
// ports. tables may be nil.
func Scan(m driver.Machine, tables *acpi.Tables) (*Bus, error) {
	var c config = &portConfig{ports: m}
	if tables != nil {
		if e, ok := tables.ECAM(0); ok && e.Segment == 0 {
			memory, err := newMemoryConfig(m, e)
			if err != nil {
				return nil, err
			}
			c = memory
		}
	}
	b := &Bus{machine: m, config: c}
	b.scan()
	return b, nil
}

// Functions returns all functions except bridges, in the order of the scan.
func (b *Bus) Functions() []*Function { return b.functions }

// scan visits the buses breadth first. It visits each bus only once, even if bridges are misconfigured.
func (b *Bus) scan() {
	var seen [256]bool
	seen[0] = true
	for pending := []uint8{0}; len(pending) > 0; pending = pending[1:] {
		for device := range uint8(32) {
			b.scanDevice(Address{Bus: pending[0], Device: device}, &seen, &pending)
		}
	}
}

// scanDevice records all functions of a device. It adds buses behind bridges to pending.
func (b *Bus) scanDevice(a Address, seen *[256]bool, pending *[]uint8) {
	functions := uint8(1)
	for ; a.Function < functions; a.Function++ {
		id := b.config.read(a, regID)
		if id&0xffff == none {
			continue
		}
		header := uint8(b.config.read(a, regHeader) >> 16)
		if a.Function == 0 && header&multiFunction != 0 {
			functions = 8
		}
		switch header &^ multiFunction {
		case headerDevice:
			b.functions = append(b.functions, b.newFunction(a, id))
		case headerBridge:
			if bus, ok := b.cross(a, seen); ok {
				*pending = append(*pending, bus)
				b.bridges = append(b.bridges, &bridge{at: a, secondary: bus})
			}
		}
	}
}

// cross returns the number of the bus behind the bridge at address a. If firmware has not
// numbered the bus, cross assigns a number. It returns false if the number belongs to
// another bus already; the bridge is then ignored.
func (b *Bus) cross(a Address, seen *[256]bool) (bus uint8, ok bool) {
	buses := b.config.read(a, regBuses)
	bus = uint8(buses >> 8)
	if bus == 0 {
		for bus = 1; bus != 0 && seen[bus]; bus++ {
		}
		if bus == 0 {
			return 0, false
		}
		b.number(a, bus)
	}
	if seen[bus] {
		return 0, false
	}
	seen[bus] = true
	return bus, true
}

// number assigns the number bus to the bus behind the bridge at address a. It also raises the highest bus
// number of all bridges on the path from the root, so that they forward accesses to the new bus (PCI-to-PCI
// bridge 1.2 section 3.2.5.4).
func (b *Bus) number(a Address, bus uint8) {
	v := b.config.read(a, regBuses)&0xff00_0000 | uint32(bus)<<16 | uint32(bus)<<8 | uint32(a.Bus)
	b.config.write(a, regBuses, v)
	for i := len(b.bridges) - 1; i >= 0; i-- {
		parent := b.bridges[i]
		if parent.secondary != a.Bus {
			continue
		}
		v := b.config.read(parent.at, regBuses)
		if uint8(v>>16) < bus {
			b.config.write(parent.at, regBuses, v&^0xff_0000|uint32(bus)<<16)
		}
		a = parent.at
	}
}

func (b *Bus) newFunction(a Address, id uint32) *Function {
	class := b.config.read(a, regClass)
	interrupt := b.config.read(a, regInterrupt)
	f := &Function{
		Address: a, bus: b,
		Vendor: uint16(id), Device: uint16(id >> 16),
		Subsystem: uint16(b.config.read(a, regSubsystem) >> 16),
		Class:     class >> 8, Revision: uint8(class),
		Interrupt: uint8(interrupt), InterruptConnected: interrupt>>8&0xff != 0,
	}
	f.findBARs()
	return f
}

// read and write access a register of configuration space, whose offset must be in range.
func (f *Function) read(register int) uint32     { return f.bus.config.read(f.Address, register) }
func (f *Function) write(register int, v uint32) { f.bus.config.write(f.Address, register, v) }

// command sets and clears bits of the command register. The status bits are in the same word; writing zeros to them
// leaves them unchanged.
func (f *Function) command(set, clear uint32) {
	f.write(regCommand, f.read(regCommand)&commandMask&^clear|set)
}

// Read32 reads a register of configuration space. It is for capabilities that this package does not support. Registers
// out of range read as all ones.
func (f *Function) Read32(register int) uint32 {
	if register < 0 || register%4 != 0 || register >= f.bus.config.size() {
		return ^uint32(0)
	}
	return f.read(register)
}

// Enable makes the device respond to accesses to its registers, and allows it to access memory (bus master).
func (f *Function) Enable() { f.command(commandMemory|commandPorts|commandMaster, 0) }

// Disable reverses Enable. Afterwards the device can neither access memory nor raise its interrupt line.
func (f *Function) Disable() { f.command(commandNoLine, commandMemory|commandPorts|commandMaster) }

// Gone reports whether the device no longer responds, usually because it was removed.
func (f *Function) Gone() bool { return f.read(regID)&0xffff == none }

// Line connects to the function's interrupt line. It is for a device without MSI-X. It uses the line number that
// firmware has recorded, which on PCs is also an input number of the I/O APIC. Other routings are described only in
// AML, and are not supported.
func (f *Function) Line() (driver.Interrupt, error) {
	const unknown = 0xff // no interrupt line is recorded (PCI 3.0 section 6.2.4)
	if !f.InterruptConnected || f.Interrupt == unknown {
		return nil, fmt.Errorf("%v: firmware has routed no interrupt line to it", f)
	}
	i, err := f.bus.machine.Line(uint32(f.Interrupt), driver.LevelLow)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", f, err)
	}
	f.command(0, commandNoLine)
	return i, nil
}
