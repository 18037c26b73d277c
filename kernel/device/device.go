// Package device implements driver.Machine, the machine that drivers use, for a program that runs in ring 0. It is
// ordinary Go above the runtime. I/O ports are accessed by instructions, registers and shared memory by their
// addresses. The rest are calls to the kernel that Linux does not have (kernel/device.go).
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

// Machine is the machine that the program runs on. There is only one, which Open returns. Its methods may be called by any
// goroutine.
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

// Open returns the machine. The first call starts the goroutine that waits for interrupts.
func Open() *Machine { return open() }

var _ driver.Machine = (*Machine)(nil)

// Errors of Machine's methods.
var (
	ErrRegisters  = errors.New("device: there are no registers of a device")
	ErrMemory     = errors.New("device: there is no memory for it in one piece")
	ErrInterrupts = errors.New("device: there is no interrupt left, or no such line")
)

// In8 reads a byte from an I/O port.
func (*Machine) In8(port uint16) uint8 { return amd64.In8(port) }

// In16 reads two bytes from an I/O port.
func (*Machine) In16(port uint16) uint16 { return amd64.In16(port) }

// In32 reads four bytes from an I/O port.
func (*Machine) In32(port uint16) uint32 { return amd64.In32(port) }

// Out8 writes a byte to an I/O port.
func (*Machine) Out8(port uint16, v uint8) { amd64.Out8(port, v) }

// Out16 writes two bytes to an I/O port.
func (*Machine) Out16(port uint16, v uint16) { amd64.Out16(port, v) }

// Out32 writes four bytes to an I/O port.
func (*Machine) Out32(port uint16, v uint32) { amd64.Out32(port, v) }

// call makes a call to the kernel. It returns false if the kernel returns an error.
func call(number, a, b uintptr) (uintptr, bool) {
	r, errno := kernelCall(number, a, b)
	return r, errno == 0
}

// Message allocates a message-signalled interrupt, and returns it with the message that the device has to write. It
// returns ErrInterrupts if none is free.
func (m *Machine) Message() (driver.Interrupt, driver.Message, error) {
	n, ok := call(kernel.CallMessage, 0, 0)
	if !ok {
		return nil, driver.Message{}, ErrInterrupts
	}
	address, data := kernel.MessageOf(int(n))
	return m.bells.message(int(n)), driver.Message{Address: address, Data: data}, nil
}
