package qtest

import (
	"encoding/binary"
	"sync"
	"time"

	"loam/driver"
	"loam/driver/virtio/model"
)

// messages are the message-signalled interrupts in use. Each has four bytes in the machine's memory; the device raises
// the interrupt by writing to them.
type messages struct {
	mu  sync.Mutex // guards the field named all
	all map[*model.Interrupt]driver.Buffer
}

// Message implements driver.Machine.
func (m *Machine) Message() (driver.Interrupt, driver.Message, error) {
	b, err := m.Allocate(4, 4)
	if err != nil {
		return nil, driver.Message{}, err
	}
	var i *model.Interrupt
	i = model.NewInterrupt(func() {}, func() {
		m.messages.mu.Lock()
		defer m.messages.mu.Unlock()
		delete(m.messages.all, i)
		m.Free(b)
	})
	m.messages.mu.Lock()
	defer m.messages.mu.Unlock()
	m.messages.all[i] = b
	return i, driver.Message{Address: b.Address, Data: 1}, nil
}

// lookForMessages polls the memory of all messages every 50 µs, and notifies the drivers whose message was written.
func (m *Machine) lookForMessages() {
	tick := time.NewTicker(50 * time.Microsecond)
	defer tick.Stop()
	for {
		select {
		case <-m.done:
			return
		case <-tick.C:
		}
		m.messages.mu.Lock()
		for i, b := range m.messages.all {
			if binary.LittleEndian.Uint32(b.Bytes) != 0 {
				clear(b.Bytes) // cleared before the notification, so that the next poll sees a later message
				i.Ring()
			}
		}
		m.messages.mu.Unlock()
	}
}
