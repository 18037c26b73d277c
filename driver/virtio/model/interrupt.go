package model

import (
	"errors"
	"slices"

	"loam/driver"
)

// interrupt is one driver's share of a source.
type interrupt struct {
	c           chan struct{} // see driver.Interrupt
	done, close func()
}

func (i *interrupt) C() <-chan struct{} { return i.c }
func (i *interrupt) Done()              { i.done() }
func (i *interrupt) Close()             { i.close() }

func (i *interrupt) ring() {
	select {
	case i.c <- struct{}{}:
	default:
	}
}

// messageAddress is where messages are written to; the data says which.
const messageAddress = 0xfee0_0000

// Message implements driver.Machine.
func (m *Machine) Message() (driver.Interrupt, driver.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.messages)
	i := &interrupt{c: make(chan struct{}, 1), done: func() {}}
	i.close = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.messages[n] = nil
	}
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
		i.ring()
	}
}

// line is an interrupt line.
type line struct {
	raised bool
	all    []*interrupt
}

// mostLine is the last line that the machine has.
const mostLine = 23

// Line implements driver.Machine.
func (m *Machine) Line(gsi uint32, t driver.Trigger) (driver.Interrupt, error) {
	if gsi > mostLine {
		return nil, errors.New("model: there is no such line")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.line(gsi)
	i := &interrupt{c: make(chan struct{}, 1)}
	i.done = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if l.raised && t != driver.EdgeHigh {
			i.ring()
		}
	}
	i.close = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		l.all = slices.DeleteFunc(l.all, func(o *interrupt) bool { return o == i })
	}
	l.all = append(l.all, i)
	return i, nil
}

func (m *Machine) line(gsi uint32) *line {
	l := m.lines[gsi]
	if l == nil {
		l = &line{}
		m.lines[gsi] = l
	}
	return l
}

// set is what a device does with its line.
func (m *Machine) set(gsi uint32, raised bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.line(gsi)
	if raised && !l.raised {
		for _, i := range l.all {
			i.ring()
		}
	}
	l.raised = raised
}
