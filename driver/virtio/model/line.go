package model

import (
	"slices"
	"sync"

	"loam/driver"
)

// Interrupt is one driver's view of an interrupt source. It implements driver.Interrupt.
type Interrupt struct {
	c           chan struct{} // see driver.Interrupt
	done, close func()
}

// NewInterrupt returns an Interrupt whose methods Done and Close call the given
// functions.
func NewInterrupt(done, closing func()) *Interrupt {
	return &Interrupt{c: make(chan struct{}, 1), done: done, close: closing}
}

// C implements driver.Interrupt.
func (i *Interrupt) C() <-chan struct{} { return i.c }

// Done implements driver.Interrupt.
func (i *Interrupt) Done() { i.done() }

// Close implements driver.Interrupt.
func (i *Interrupt) Close() { i.close() }

// Ring notifies the driver. It is called by the interrupt source.
func (i *Interrupt) Ring() {
	select {
	case i.c <- struct{}{}:
	default:
	}
}

// Lines holds the interrupt lines of a machine. In the zero value no line is raised.
type Lines struct {
	mu  sync.Mutex // guards the field named all
	all map[uint32]*line
}

// line is an interrupt line and its listeners.
type line struct {
	raised    bool
	listeners []*Interrupt
}

// at returns the line with a number.
func (l *Lines) at(gsi uint32) *line {
	if l.all == nil {
		l.all = map[uint32]*line{}
	}
	if l.all[gsi] == nil {
		l.all[gsi] = &line{}
	}
	return l.all[gsi]
}

// Line implements driver.Machine.
func (l *Lines) Line(gsi uint32, t driver.Trigger) (driver.Interrupt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.at(gsi)
	var i *Interrupt
	i = NewInterrupt(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if at.raised && t != driver.EdgeHigh {
			i.Ring() // the line is still raised
		}
	}, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		at.listeners = slices.DeleteFunc(at.listeners, func(o *Interrupt) bool { return o == i })
	})
	at.listeners = append(at.listeners, i)
	if at.raised {
		i.Ring()
	}
	return i, nil
}

// Set raises or lowers a line. It is called by the device.
func (l *Lines) Set(gsi uint32, raised bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.at(gsi)
	if raised && !at.raised {
		for _, i := range at.listeners {
			i.Ring()
		}
	}
	at.raised = raised
}
