package device

import (
	"math/bits"
	"sync"

	"loam/arch/amd64"
	"loam/driver"
	"loam/kernel"
)

// Interrupts for drivers. The goroutine of serve waits for all interrupts and notifies the drivers of each.

// bells holds the interrupts in use, by their number in the kernel.
type bells struct {
	kernel func(number, a, b uintptr) (uintptr, bool) // makes a call to the kernel

	mu  sync.Mutex
	all [kernel.MaxInterrupts][]*interrupt // drivers of each interrupt; several can share a line

	lines map[uint32]*wire // shared lines by global number (GSI)
}

// wire is an interrupt line that drivers share.
type wire struct {
	number  int
	users   int
	pending int // for a level-triggered line: number of drivers that have not called Done since the line fired
}

// interrupt is the interrupt of one driver. It implements driver.Interrupt.
type interrupt struct {
	// capacity 1; serve sends, the driver receives; never closed; if it is full, the driver is already notified
	ring   chan struct{}
	done   func()
	close  func()
	waited bool // the driver has not yet called Done; guarded by bells.mu

	f func() // called instead of a send to ring; nil: there is no such function. Guarded by bells.mu
}

// C implements driver.Interrupt.
func (i *interrupt) C() <-chan struct{} { return i.ring }
func (i *interrupt) Done()              { i.done() }
func (i *interrupt) Close()             { i.close() }

// signal is a message-signalled interrupt, which only one driver has. It implements driver.Caller.
type signal struct {
	*interrupt
	bells *bells
}

// Call implements driver.Caller.
func (s signal) Call(f func()) {
	s.bells.mu.Lock()
	defer s.bells.mu.Unlock()
	s.f = f
}

// init prepares b. The function ask makes a call to the kernel.
func (b *bells) init(ask func(number, a, b uintptr) (uintptr, bool)) {
	b.kernel = ask
	b.lines = map[uint32]*wire{}
}

func (b *bells) start() {
	pollInterrupts()
	go b.serve()
}

// serve notifies drivers of interrupts. It never returns.
func (b *bells) serve() {
	for {
		for rung := awaitInterrupts(); rung != 0; rung &= rung - 1 {
			b.ring(bits.TrailingZeros64(rung))
		}
	}
}

// ring notifies all drivers that use the interrupt with a number.
func (b *bells) ring(number int) {
	if f := b.notify(number); f != nil {
		completes(true)
		f()
		completes(false)
	}
}

// notify sends to the drivers that use the interrupt with a number, or returns the function that must be called instead.
func (b *bells) notify(number int) (f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		if l.number == number {
			l.pending = len(b.all[number])
		}
	}
	for _, i := range b.all[number] {
		i.waited = true
		if i.f != nil {
			return i.f // a signal has a single driver
		}
		select {
		case i.ring <- struct{}{}:
		default:
		}
	}
	return nil
}

// message adds an interrupt that is not shared. Done does nothing for it.
func (b *bells) message(number int) signal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return signal{b.add(number, func() { b.kernel(kernel.CallClose, uintptr(number), 0) }), b}
}

// add registers a driver for the interrupt with a number. Close of the result calls the
// function end. The caller holds b.mu.
func (b *bells) add(number int, end func()) *interrupt {
	i := &interrupt{ring: make(chan struct{}, 1), done: func() {}}
	i.close = sync.OnceFunc(func() {
		b.remove(number, i)
		end()
	})
	b.all[number] = append(b.all[number], i)
	return i
}

// remove removes a driver's interrupt, which is then no longer notified.
func (b *bells) remove(number int, i *interrupt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i.waited = false
	list := b.all[number]
	for at := range list {
		if list[at] == i {
			b.all[number] = append(list[:at:at], list[at+1:]...)
		}
	}
}

// Line connects to the interrupt line with a global number (GSI). Drivers may share a line; the trigger of the
// first one applies. It returns ErrInterrupts if there is no such line or no free interrupt.
func (m *Machine) Line(gsi uint32, t driver.Trigger) (driver.Interrupt, error) {
	i, ok := m.bells.line(gsi, t)
	if !ok {
		return nil, ErrInterrupts
	}
	return i, nil
}

// line implements Line. It holds the lock until the driver is registered. Otherwise a line that fires as soon as it
// is open would find no driver to call Done, and would stay masked.
func (b *bells) line(gsi uint32, t driver.Trigger) (*interrupt, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[gsi]
	if l == nil {
		var flags uintptr
		switch t {
		case driver.LevelLow:
			flags = amd64.IOAPICLevel | amd64.IOAPICLow
		case driver.LevelHigh:
			flags = amd64.IOAPICLevel
		}
		n, ok := b.kernel(kernel.CallLine, uintptr(gsi), flags)
		if !ok {
			return nil, false
		}
		l = &wire{number: int(n)}
		b.lines[gsi] = l
	}
	l.users++
	i := b.add(l.number, func() { b.leave(gsi, l) })
	i.done = func() { b.settle(l, i) }
	return i, true
}

// settle implements Done. When every driver of the line has called Done, the line is unmasked.
func (b *bells) settle(l *wire, i *interrupt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.waited {
		i.waited = false
		if l.pending--; l.pending == 0 {
			b.kernel(kernel.CallDone, uintptr(l.number), 0)
		}
	}
}

// leave implements Close on a line. The last driver releases the line. Otherwise the line no longer waits for this
// driver's Done.
func (b *bells) leave(gsi uint32, l *wire) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(b.lines, gsi)
		b.kernel(kernel.CallClose, uintptr(l.number), 0)
		return
	}
	l.pending = 0
	for _, i := range b.all[l.number] {
		if i.waited {
			l.pending++
		}
	}
	if l.pending == 0 {
		b.kernel(kernel.CallDone, uintptr(l.number), 0)
	}
}
