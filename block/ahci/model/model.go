// Package model is an AHCI controller with one disk in the same process, for tests: the other side
// of loam/block/ahci, written from the same specifications (AHCI 1.3.1, ACS-3), without code of the
// driver.
//
// It does its work during the write to a register, so it has no goroutine. It behaves correctly
// unless Controller.Next returns another Lie.
package model

import (
	"encoding/binary"
	"math/bits"
	"sync"

	virtio "loam/driver/virtio/model"
)

// Lie is a way to complete a command, correct or wrong.
type Lie uint8

// Values of Lie: the ways in which the model completes a command.
const (
	Truth   Lie = iota
	Fail        // the command completes with an error, as for an unreadable sector
	Silence     // the command never completes
	Quiet       // the command completes without an interrupt
	Bus         // the command never completes; the controller reports an error of its host bus
	Pulled      // the command never completes; the disk is unplugged
	Vanish      // the command never completes; the controller is unplugged
	Extra       // the command completes correctly, and another slot completes too, whether or not that slot has a command
	Lies        // number of ways to complete a command
)

// Controller is the device. Its exported fields are set before a driver uses it.
type Controller struct {
	Data    []byte // contents of the disk at port 2, in sectors of 512 bytes; nil: no disk
	Plain   bool   // the controller has no native command queuing
	NoMSI   bool   // the controller has only an interrupt line
	FUA     bool
	Stuck   bool                     // the controller's ports do not stop
	Change  func(answer []byte)      // Change modifies the data that IDENTIFY DEVICE returns
	Next    func() Lie               // how to complete the next command with data; nil: correctly
	Bad     func(sector uint64) bool // Bad reports whether a sector cannot be read or written
	Flushed int                      // number of flushes, and of writes with FUA
	Resets  int                      // number of resets of the link so far

	// Numbers so far. They are read after the driver has closed the disk.
	Interrupts int // messages and rises of the interrupt line
	Reads      int // reads of registers

	plug virtio.Plug

	mu   sync.Mutex // guards the fields below
	regs [(0x100 + 0x80*4) / 4]uint32
	gone bool
}

var le = binary.LittleEndian

// The controller has four ports. Ports 0 and 2 are implemented, and the disk is at port 2.
const (
	disk  = 2
	at    = (0x100 + 0x80*disk) / 4 // index of the port's first register
	ports = 1<<0 | 1<<disk
)

// Indices of registers in the register space, in words of 32 bits.
const (
	control = 0x04 / 4
	status  = 0x08 / 4

	pList      = at
	pStatus    = at + 0x10/4
	pEnable    = at + 0x14/4
	pCommand   = at + 0x18/4
	pTask      = at + 0x20/4
	pSignature = at + 0x24/4
	pLink      = at + 0x28/4
	pControl   = at + 0x2c/4
	pError     = at + 0x30/4
	pActive    = at + 0x34/4
	pIssue     = at + 0x38/4

	ready = 0x50 // PxTFD.STS: DRDY and DSC, the disk is ready
)

// Add plugs a controller into a machine.
func Add(m *virtio.Machine, c *Controller) {
	c.reset()
	c.plug = m.AddFunction(virtio.Function{ID: 0x2922_8086, Class: 0x010601, BAR: 5, Size: 0x1000, MSI: !c.NoMSI, Registers: c})
}

func (c *Controller) reset() {
	clear(c.regs[:])
	const slots, queued, wide, enabled = 31 << 8, 1 << 30, 1 << 31, 1 << 31
	c.regs[0] = slots | wide | 3
	if !c.Plain {
		c.regs[0] |= queued
	}
	c.regs[control], c.regs[3] = enabled, ports
	if c.Data != nil {
		c.regs[pLink], c.regs[pSignature], c.regs[pTask] = 0x123, 0x101, ready
	}
}

// Read implements the registers.
func (c *Controller) Read(at, width int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Reads++
	if c.gone {
		return ^uint64(0)
	}
	if at/4 >= len(c.regs) {
		return 0
	}
	return uint64(c.regs[at/4])
}

// Write implements the registers.
func (c *Controller) Write(at, width int, v64 uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, v := at/4, uint32(v64)
	if c.gone || i >= len(c.regs) {
		return
	}
	switch i {
	case control:
		if v&1 != 0 {
			c.reset()
			return
		}
		c.regs[i] = v
	case status, pStatus, pError:
		c.regs[i] &^= v
		if c.regs[pStatus]&c.regs[pEnable] != 0 {
			c.interrupt() // the bit follows the state of the port
		}
		c.line()
	case pCommand:
		c.command(v)
	case pControl:
		if c.regs[i]&15 == 1 && v&15 == 0 {
			c.Resets++
			c.regs[pTask] = ready
			c.regs[pActive] = 0
		}
		c.regs[i] = v
	case pActive:
		c.regs[i] |= v
	case pIssue:
		c.regs[i] |= v
		c.work()
	case 0, 3, pTask, pLink, pSignature: // the driver cannot write these registers
	default:
		c.regs[i] = v
	}
}

// command starts and stops the port according to a value that the driver wrote to PxCMD.
func (c *Controller) command(v uint32) {
	const start, receive, receives, runs = 1 << 0, 1 << 4, 1 << 14, 1 << 15
	was := c.regs[pCommand]
	v &^= receives | runs
	if v&start != 0 || c.Stuck && was&runs != 0 {
		v |= runs
	} else if was&runs != 0 {
		c.regs[pIssue], c.regs[pActive] = 0, 0
	}
	if v&receive != 0 {
		v |= receives
	}
	c.regs[pCommand] = v
}

// line lowers the interrupt line if no interrupt is pending.
func (c *Controller) line() {
	if c.regs[status] == 0 {
		c.plug.Lower()
	}
}

// event raises an interrupt for a reason, a bit of PxIS.
func (c *Controller) event(reason uint32) {
	c.regs[pStatus] |= reason
	if c.regs[pStatus]&c.regs[pEnable] == 0 {
		return
	}
	c.interrupt()
}

// interrupt sets the port's bit, and sends an interrupt. As in QEMU, it sends one for each event, and one more if a bit that the
// driver clears stays set.
func (c *Controller) interrupt() {
	c.regs[status] |= 1 << disk
	if c.regs[control]&2 != 0 {
		c.Interrupts++
		c.plug.RaiseMSI()
	}
}

// work executes the issued commands, the last slot first, because disks may choose any order.
func (c *Controller) work() {
	for c.regs[pIssue] != 0 && c.regs[pCommand]>>15&1 != 0 && c.plug.Master() && c.regs[pTask]&1 == 0 && !c.gone {
		slot := 31 - bits.LeadingZeros32(c.regs[pIssue])
		header := c.plug.Memory(uint64(c.regs[pList])|uint64(c.regs[pList+1])<<32, 1024)[32*slot:][:32]
		if !c.carryOut(slot, header) {
			return
		}
	}
}
