package device

import (
	"math/bits"
	"sync"

	"loam/arch/amd64"
	"loam/driver"
	"loam/kernel"
)

// One goroutine waits for all interrupts, and rings the bell of each that comes.

// bells are the interrupts in use, by number.
type bells struct {
	kernel func(number, a, b uintptr) (uintptr, bool) // asks the kernel: Machine's call

	mu  sync.Mutex
	all [kernel.MaxInterrupts][]*interrupt // more than one share a line

	lines map[uint32]*wire // by global number
}

// wire is a line that drivers share.
type wire struct {
	number int
	users  int
	owing  int // of a level-triggered line: how many have not said Done since it rang
}

// interrupt is one driver's.
type interrupt struct {
	ring  chan struct{} // one place: sent by serve, received by the driver, never closed; full: it rings already
	done  func()
	close func()
	owes  bool // under bells.mu
}

func (i *interrupt) C() <-chan struct{} { return i.ring }
func (i *interrupt) Done()              { i.done() }
func (i *interrupt) Close()             { i.close() }

func (b *bells) init(ask func(number, a, b uintptr) (uintptr, bool)) {
	b.kernel = ask
	b.lines = map[uint32]*wire{}
}

func (b *bells) start() {
	pollInterrupts()
	go b.serve()
}

// serve never ends.
func (b *bells) serve() {
	for {
		for rung := awaitInterrupts(); rung != 0; rung &= rung - 1 {
			b.ring(bits.TrailingZeros64(rung))
		}
	}
}

// ring wakes all drivers of an interrupt.
func (b *bells) ring(number int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		if l.number == number {
			l.owing = len(b.all[number])
		}
	}
	for _, i := range b.all[number] {
		i.owes = true
		select {
		case i.ring <- struct{}{}:
		default:
		}
	}
}

// message makes an interrupt that nobody shares.
func (b *bells) message(number int) *interrupt {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(number, func() { b.kernel(kernel.CallClose, uintptr(number), 0) })
}

// add makes an interrupt. b.mu is held.
func (b *bells) add(number int, end func()) *interrupt {
	i := &interrupt{ring: make(chan struct{}, 1), done: func() {}}
	i.close = sync.OnceFunc(func() {
		b.remove(number, i)
		end()
	})
	b.all[number] = append(b.all[number], i)
	return i
}

func (b *bells) remove(number int, i *interrupt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i.owes = false
	list := b.all[number]
	for at := range list {
		if list[at] == i {
			b.all[number] = append(list[:at:at], list[at+1:]...)
		}
	}
}

// Line connects to a line, which others may be connected to.
func (m *Machine) Line(gsi uint32, t driver.Trigger) (driver.Interrupt, error) {
	i, ok := m.bells.line(gsi, t)
	if !ok {
		return nil, ErrInterrupts
	}
	return i, nil
}

// line is Line. The lock is held until the driver is among those who are rung: a line that
// rings as soon as it is open, and finds nobody who says Done, would stay masked.
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

// settle is Done: the line may ring again when nobody owes that any more.
func (b *bells) settle(l *wire, i *interrupt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.owes {
		i.owes = false
		if l.owing--; l.owing == 0 {
			b.kernel(kernel.CallDone, uintptr(l.number), 0)
		}
	}
}

// leave is Close on a line: the last gives it back, and the others do not wait for
// who has gone.
func (b *bells) leave(gsi uint32, l *wire) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(b.lines, gsi)
		b.kernel(kernel.CallClose, uintptr(l.number), 0)
		return
	}
	l.owing = 0
	for _, i := range b.all[l.number] {
		if i.owes {
			l.owing++
		}
	}
	if l.owing == 0 {
		b.kernel(kernel.CallDone, uintptr(l.number), 0)
	}
}
