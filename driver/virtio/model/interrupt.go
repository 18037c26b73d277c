package model

import (
	"errors"

	"loam/driver"
)

// messageAddress is where messages are written to; the data says which.
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
	return i, driver.Message{Address: messageAddress, Data: uint32(n)}, nil
}

// deliver is what a device does with a message.
func (m *Machine) deliver(v driver.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.Address != messageAddress || int(v.Data) >= len(m.messages) {
		return // it was written somewhere else
	}
	if i := m.messages[v.Data]; i != nil {
		i.Ring()
	}
}

// mostLine is the last line that the machine has.
const mostLine = 23

// Line implements driver.Machine.
func (m *Machine) Line(gsi uint32, t driver.Trigger) (driver.Interrupt, error) {
	if gsi > mostLine {
		return nil, errors.New("model: there is no such line")
	}
	return m.lines.Line(gsi, t)
}
