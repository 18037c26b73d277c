package qtest

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"loam/driver"
)

// interrupt is one driver's share of a source of interrupts.
type interrupt struct {
	c     chan struct{} // see driver.Interrupt
	done  func()
	close func()
}

func newInterrupt() *interrupt { return &interrupt{c: make(chan struct{}, 1)} }

func (i *interrupt) C() <-chan struct{} { return i.c }
func (i *interrupt) Done()              { i.done() }
func (i *interrupt) Close()             { i.close() }

func (i *interrupt) ring() {
	select {
	case i.c <- struct{}{}:
	default:
	}
}

// lines are the inputs of the I/O APIC.
type lines struct {
	state     sync.Mutex // guards all below
	raised    map[uint32]bool
	listeners map[uint32][]*interrupt
}

// set is called with what QEMU reports.
func (l *lines) set(gsi uint32, raised bool) {
	l.state.Lock()
	defer l.state.Unlock()
	l.raised[gsi] = raised
	if raised {
		for _, i := range l.listeners[gsi] {
			i.ring()
		}
	}
}

// Line implements driver.Machine.
func (l *lines) Line(gsi uint32, t driver.Trigger) (driver.Interrupt, error) {
	l.state.Lock()
	defer l.state.Unlock()
	i := newInterrupt()
	i.done = func() {
		l.state.Lock()
		defer l.state.Unlock()
		if t != driver.EdgeHigh && l.raised[gsi] {
			i.ring() // the line is asserted still, or again
		}
	}
	i.close = func() {
		l.state.Lock()
		defer l.state.Unlock()
		l.listeners[gsi] = slices.DeleteFunc(l.listeners[gsi], func(o *interrupt) bool { return o == i })
	}
	l.listeners[gsi] = append(l.listeners[gsi], i)
	if l.raised[gsi] {
		i.ring()
	}
	return i, nil
}

// messages are interrupts by message. Each has four bytes of the machine's memory,
// which its device writes to.
type messages struct {
	mu  sync.Mutex // guards all
	all map[*interrupt]driver.Buffer
}

// Message implements driver.Machine.
func (m *Machine) Message() (driver.Interrupt, driver.Message, error) {
	b, err := m.Allocate(4, 4)
	if err != nil {
		return nil, driver.Message{}, err
	}
	i := newInterrupt()
	i.done = func() {}
	i.close = func() {
		m.messages.mu.Lock()
		defer m.messages.mu.Unlock()
		delete(m.messages.all, i)
		m.Free(b)
	}
	m.messages.mu.Lock()
	defer m.messages.mu.Unlock()
	m.messages.all[i] = b
	return i, driver.Message{Address: b.Address, Data: 1}, nil
}

// lookForMessages looks at the memory of all messages, often.
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
				clear(b.Bytes) // before the ring: what comes later is seen later
				i.ring()
			}
		}
		m.messages.mu.Unlock()
	}
}
