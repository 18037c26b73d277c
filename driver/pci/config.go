package pci

import (
	"fmt"
	"sync"

	"loam/boot/acpi"
	"loam/driver"
)

// Address is where a function is. The zero value is bus 0, device 0, function 0:
// the host bridge.
type Address struct {
	Bus, Device, Function uint8 // 256 buses of 32 devices of 8 functions
}

func (a Address) String() string {
	return fmt.Sprintf("%02x:%02x.%x", a.Bus, a.Device, a.Function)
}

// config is configuration space. Registers are multiples of 4. What is not there
// reads as ones.
type config interface {
	read(a Address, register int) uint32
	write(a Address, register int, v uint32)
	size() int // of each function's space, in bytes
}

// portConfig is mechanism #1 (PCI 3.0 section 3.2.2.3.2): the address goes to one
// port, the data through another.
type portConfig struct {
	mu    sync.Mutex // keeps the two accesses together
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

// memoryConfig is the enhanced mechanism of PCI Express (section 7.2.2 there). Each
// bus is a window of its own, opened when it is first looked at: 256 buses would be
// 65,536 pages, and most machines have one.
type memoryConfig struct {
	machine driver.Machine
	where   acpi.ECAM

	mu    sync.Mutex // guards buses
	buses [256]driver.Registers
}

const (
	ecamSize = 4096 // of a function
	ecamBus  = 32 * 8 * ecamSize
)

// newMemoryConfig fails if not even the first bus can be reached.
func newMemoryConfig(m driver.Machine, e acpi.ECAM) (*memoryConfig, error) {
	c := &memoryConfig{machine: m, where: e}
	var err error
	if c.buses[e.First], err = m.Registers(e.Address+uint64(e.First)*ecamBus, ecamBus); err != nil {
		return nil, fmt.Errorf("pci: configuration space in memory: %w", err)
	}
	return c, nil
}

// bus is the window of a bus; nil for one that is not there.
func (c *memoryConfig) bus(n uint8) driver.Registers {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buses[n] == nil && n >= c.where.First && n <= c.where.Last {
		// One that cannot be reached stays nil, and is as if it were not there.
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
