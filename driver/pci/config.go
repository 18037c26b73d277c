package pci

import (
	"fmt"
	"sync"

	"loam/boot/acpi"
	"loam/driver"
)

// Address is the location of a function. The zero value is bus 0, device 0, function 0, which is the host bridge.
type Address struct {
	Bus, Device, Function uint8 // a machine has up to 256 buses, each with 32 devices of 8 functions
}

// String returns the address in the form bus:device.function, as lspci prints it.
func (a Address) String() string {
	return fmt.Sprintf("%02x:%02x.%x", a.Bus, a.Device, a.Function)
}

// config is a method of access to configuration space. register is an offset, a multiple of 4. A register that does not
// exist reads as all ones.
type config interface {
	read(a Address, register int) uint32
	write(a Address, register int, v uint32)
	size() int // size of each function's space in bytes
}

// portConfig is configuration mechanism #1 (PCI 3.0 section 3.2.2.3.2): a write to one I/O port selects a register, and
// a second port transfers its value.
type portConfig struct {
	mu    sync.Mutex // makes the two port accesses atomic
	ports driver.Ports
}

const (
	configAddress = 0xcf8
	configData    = 0xcfc
	configEnable  = 1 << 31
	configSize    = 256
)

func (c *portConfig) selectRegister(a Address, register int) {
	c.ports.Out32(configAddress, configEnable|uint32(a.Bus)<<16|uint32(a.Device)<<11|uint32(a.Function)<<8|uint32(register))
}

func (c *portConfig) read(a Address, register int) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.selectRegister(a, register)
	return c.ports.In32(configData)
}

func (c *portConfig) write(a Address, register int, v uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.selectRegister(a, register)
	c.ports.Out32(configData, v)
}

func (c *portConfig) size() int { return configSize }

// memoryConfig is the enhanced configuration mechanism of PCI Express, which maps configuration space in memory (Base
// Specification section 7.2.2). Each bus is mapped at its first access. All 256 buses would need 65,536 pages, and most
// machines have only one bus.
type memoryConfig struct {
	machine driver.Machine
	where   acpi.ECAM

	mu    sync.Mutex // guards buses
	buses [256]driver.Registers
}

const (
	ecamSize = 4096 // bytes of configuration space for each function
	ecamBus  = 32 * 8 * ecamSize
)

// newMemoryConfig maps the first bus. It returns an error if that bus cannot be accessed.
func newMemoryConfig(m driver.Machine, e acpi.ECAM) (*memoryConfig, error) {
	c := &memoryConfig{machine: m, where: e}
	var err error
	if c.buses[e.First], err = m.Registers(e.Address+uint64(e.First)*ecamBus, ecamBus); err != nil {
		return nil, fmt.Errorf("pci: configuration space in memory: %w", err)
	}
	return c, nil
}

// bus returns the registers of a bus; nil if the bus does not exist or cannot be accessed.
func (c *memoryConfig) bus(n uint8) driver.Registers {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buses[n] == nil && n >= c.where.First && n <= c.where.Last {
		// A bus that cannot be accessed stays nil, as if it did not exist.
		if r, err := c.machine.Registers(c.where.Address+uint64(n)*ecamBus, ecamBus); err == nil {
			c.buses[n] = r
		}
	}
	return c.buses[n]
}

func (a Address) offset(register int) int {
	return (int(a.Device)<<3|int(a.Function))*ecamSize + register
}

func (c *memoryConfig) read(a Address, register int) uint32 {
	if r := c.bus(a.Bus); r != nil {
		return r.Read32(a.offset(register))
	}
	return ^uint32(0)
}

func (c *memoryConfig) write(a Address, register int, v uint32) {
	if r := c.bus(a.Bus); r != nil {
		r.Write32(a.offset(register), v)
	}
}

func (c *memoryConfig) size() int { return ecamSize }
