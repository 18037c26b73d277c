package model

import (
	"errors"

	"loam/driver"
)

// messageAddress is the address in all messages. The data of a message is the number of the interrupt.
const messageAddress = 0xfee0_0000

// Message implements driver.Machine.
func (m *Machine) Message() (driver.Interrupt, driver.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.messages)
	i := NewInterrupt(func() {}, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.messages[n] = nil
	})
	m.messages = append(m.messages, i)
	if m.calls != nil {
		return caller{i, m, uint32(n)}, driver.Message{Address: messageAddress, Data: uint32(n)}, nil
	}
	return i, driver.Message{Address: messageAddress, Data: uint32(n)}, nil
}

// caller is a message-signalled interrupt that implements driver.Caller: see Calls.
type caller struct {
	driver.Interrupt
	machine *Machine
	number  uint32
}

// Call implements driver.Caller. Each interrupt calls f in a new goroutine.
func (c caller) Call(f func()) {
	c.machine.mu.Lock()
	defer c.machine.mu.Unlock()
	c.machine.calls[c.number] = f
}

// deliver handles a message-signalled interrupt, which a device has written.
func (m *Machine) deliver(v driver.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.Address != messageAddress || int(v.Data) >= len(m.messages) {
		return // a memory write that is not a message for this machine
	}
	i, f := m.messages[v.Data], m.calls[v.Data]
	switch {
	case i == nil:
	case f != nil:
		go f()
	default:
		i.Ring()
	}
}

// mostLine is the highest interrupt line of the machine.
const mostLine = 23

// Line implements driver.Machine.
func (m *Machine) Line(gsi uint32, t driver.Trigger) (driver.Interrupt, error) {
	if gsi > mostLine {
		return nil, errors.New("model: there is no such line")
	}
	return m.lines.Line(gsi, t)
}
