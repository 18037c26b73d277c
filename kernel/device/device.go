// Package device is the machine that drivers see (driver.Machine), in a program that
// runs in ring 0. It is ordinary Go above the runtime. Most of it needs nobody:
// ports are instructions, registers and shared memory are addresses. For the rest it
// makes calls of its own to the kernel (kernel/device.go there).
//
// Reading order: device.go, memory_unsafe.go, registers_unsafe.go, interrupt.go.
package device

import (
	"errors"
	"sync"

	"loam/arch/amd64"
	"loam/driver"
	"loam/kernel"
)

// Machine is the machine. There is one: see Open.
type Machine struct {
	bells bells
	free  pool
}

var open = sync.OnceValue(func() *Machine {
	m := &Machine{}
	m.bells.init(call)
	m.bells.start()
	return m
})

// Open returns the machine.
func Open() *Machine { return open() }

var _ driver.Machine = (*Machine)(nil)

// Errors.
var (
	ErrRegisters  = errors.New("device: there are no registers of a device")
	ErrMemory     = errors.New("device: there is no memory for it in one piece")
	ErrInterrupts = errors.New("device: there is no interrupt left, or no such line")
)

// In8 reads a port.
func (*Machine) In8(port uint16) uint8 { return amd64.In8(port) }

// In16 reads two bytes.
func (*Machine) In16(port uint16) uint16 { return amd64.In16(port) }

// In32 reads four bytes.
func (*Machine) In32(port uint16) uint32 { return amd64.In32(port) }

// Out8 writes to a port.
func (*Machine) Out8(port uint16, v uint8) { amd64.Out8(port, v) }

// Out16 writes two bytes.
func (*Machine) Out16(port uint16, v uint16) { amd64.Out16(port, v) }

// Out32 writes four bytes.
func (*Machine) Out32(port uint16, v uint32) { amd64.Out32(port, v) }

// call asks the kernel.
func call(number, a, b uintptr) (uintptr, bool) {
	r, errno := kernelCall(number, a, b)
	return r, errno == 0
}

// Message allots an interrupt that comes by a message.
func (m *Machine) Message() (driver.Interrupt, driver.Message, error) {
	n, ok := call(kernel.CallMessage, 0, 0)
	if !ok {
		return nil, driver.Message{}, ErrInterrupts
	}
	address, data := kernel.MessageOf(int(n))
	return m.bells.message(int(n)), driver.Message{Address: address, Data: data}, nil
}
