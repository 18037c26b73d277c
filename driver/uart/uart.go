// Package uart is the driver of 16550 serial ports (National Semiconductor PC16550D
// data sheet, June 1995), woken by interrupts in both directions.
//
// One goroutine owns the registers. Between it and callers are two buffers, of what
// was received and of what is to be sent. When the first is full the port is left
// alone until somebody reads, so that a sender which can wait (a monitor with a
// pipe) loses nothing.
package uart

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"loam/driver"
	"loam/internal/crew"
)

// Errors.
var (
	ErrAbsent = errors.New("uart: there is no serial port")
	ErrGone   = errors.New("uart: the serial port does not answer any more")
	ErrClosed = errors.New("uart: the serial port is closed")
)

// The first serial port of a PC: its ports begin here, and this is its IRQ.
const (
	COM1    = 0x3f8
	COM1IRQ = 4
)

// Registers, from the first port on (data sheet, table II), and their bits.
const (
	data        = 0 // to read: what was received; to write: to send
	enable      = 1 // of interrupts
	identify    = 2 // to read
	queues      = 2 // to write
	lineControl = 3
	modem       = 4
	lineStatus  = 5
	scratch     = 7

	enableReceived = 1 << 0
	enableEmpty    = 1 << 1

	identifyQueues = 3 << 6 // both set: the queues work
	queuesReset    = 7      // switches them on, too

	bits8   = 3      // and no parity, and one stop bit
	divisor = 1 << 7 // shows the divisor in the first two registers

	modemOn = 1<<0 | 1<<1 | 1<<3 // DTR, RTS, and OUT2, which lets interrupts through

	statusReceived = 1 << 0
	statusOverrun  = 1 << 1
	statusEmpty    = 1 << 5
	statusNothing  = 0xff // no device answers
)

const (
	queueDepth = 16
	bufferSize = 4096

	// burst bounds how long the port is attended to without looking elsewhere: it may
	// say for ever that there is more.
	burst = 256
	// retry is how often a port that does not become empty is looked at: an interrupt
	// may be lost.
	retry = 100 * time.Millisecond
	// drainBound is how long Close waits for what is to be sent.
	drainBound = 2 * time.Second
)

// Port is an open serial port. Its methods may be called from several goroutines.
type Port struct {
	ports driver.Ports
	base  uint16
	irq   driver.Interrupt
	depth int // of the queue for sending

	mu      sync.Mutex // guards all below
	in, out buffer
	failure error // ErrGone

	// Each has one place and is sent to without blocking (full: it rings already).
	kick    chan struct{} // Read and Write send when the loop has something to do
	arrived chan struct{} // the loop sends when in is not empty
	room    chan struct{} // the loop sends when out is not full, and when it is empty

	// Only one reads and one writes at a time: the token of each has one place.
	reading, writing chan struct{}

	received, sent, overruns atomic.Uint64

	done    chan struct{} // closed when the port is closed, or has gone
	stopped sync.Once     // closes done
	closing sync.Once
	crew    crew.Crew
}

// Counters count since the port was opened.
type Counters struct {
	Received, Sent uint64 // bytes
	Overruns       uint64 // times that the port itself had no room for what came
}

// Open takes over the serial port at a base, with the line that it interrupts by,
// and sets 115200 bits a second, 8 data bits, no parity, 1 stop bit.
func Open(m driver.Machine, base uint16, gsi uint32, t driver.Trigger) (*Port, error) {
	for _, v := range []uint8{0x5a, 0xa5} {
		m.Out8(base+scratch, v)
		if m.In8(base+scratch) != v {
			return nil, ErrAbsent
		}
	}
	irq, err := m.Line(gsi, t)
	if err != nil {
		return nil, err
	}
	p := &Port{
		ports: m, base: base, irq: irq,
		kick: make(chan struct{}, 1), arrived: make(chan struct{}, 1), room: make(chan struct{}, 1),
		reading: make(chan struct{}, 1), writing: make(chan struct{}, 1), done: make(chan struct{}),
	}
	p.setUp()
	p.crew.Start(p.loop)
	return p, nil
}

func (p *Port) setUp() {
	p.put(enable, 0)
	p.put(lineControl, divisor)
	p.put(data, 1)
	p.put(enable, 0)
	p.put(lineControl, bits8)
	p.put(queues, queuesReset)
	p.depth = 1
	if p.get(identify)&identifyQueues == identifyQueues {
		p.depth = queueDepth
	}
	p.put(modem, modemOn)
}

func (p *Port) get(register uint16) uint8    { return p.ports.In8(p.base + register) }
func (p *Port) put(register uint16, v uint8) { p.ports.Out8(p.base+register, v) }

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// loop owns the registers.
func (p *Port) loop() {
	timer := time.NewTimer(retry)
	defer timer.Stop()
	for {
		more, pending := p.attend()
		p.irq.Done()
		if more {
			ring(p.kick)
		}
		var late <-chan time.Time
		if pending {
			timer.Reset(retry)
			late = timer.C
		}
		select {
		case <-p.irq.C():
		case <-p.kick:
		case <-late:
		case <-p.done:
			p.put(enable, 0)
			return
		}
	}
}

// attend moves bytes in both directions. more says that the port has not come to
// an end; pending that it has still to send.
func (p *Port) attend() (more, pending bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	more = true
	for range burst {
		if !p.step() {
			more = false
			break
		}
	}
	if p.failure != nil {
		p.stopped.Do(func() { close(p.done) })
		return false, false
	}
	if p.in.len() > 0 {
		ring(p.arrived)
	}
	if p.out.free() > 0 {
		ring(p.room)
	}
	pending = p.out.len() > 0
	wanted := uint8(0)
	if p.in.free() > 0 {
		wanted |= enableReceived
	}
	if pending {
		wanted |= enableEmpty
	}
	// To be written even if it is as it was: that has the port look at its reasons to
	// interrupt again, and a line that rises is seen once only.
	p.put(enable, 0)
	p.put(enable, wanted)
	return more, pending
}

// step moves what can be moved at once, and reports whether that was anything.
func (p *Port) step() bool {
	s := p.get(lineStatus)
	if s == statusNothing {
		p.failure = ErrGone
		return false
	}
	if s&statusOverrun != 0 {
		p.overruns.Add(1)
	}
	moved := false
	if s&statusReceived != 0 && p.in.free() > 0 {
		p.in.put(p.get(data))
		p.received.Add(1)
		moved = true
	}
	if s&statusEmpty != 0 && p.out.len() > 0 {
		for range min(p.depth, p.out.len()) {
			p.put(data, p.out.take())
			p.sent.Add(1)
		}
		moved = true
	}
	return moved
}

// enter takes the only place of a direction, and fails once the port has ended.
func (p *Port) enter(direction chan struct{}) error {
	select {
	case direction <- struct{}{}:
	case <-p.done:
		return p.state()
	}
	select {
	case <-p.done:
		<-direction
		return p.state()
	default:
		return nil
	}
}

// Read waits for input and returns what is there, at most as much as fits into b.
func (p *Port) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if err := p.enter(p.reading); err != nil {
		return 0, err
	}
	defer func() { <-p.reading }()
	for {
		p.mu.Lock()
		n := 0
		for n < len(b) && p.in.len() > 0 {
			b[n] = p.in.take()
			n++
		}
		p.mu.Unlock()
		if n > 0 {
			ring(p.kick) // there may be more in the port
			return n, nil
		}
		select {
		case <-p.arrived:
		case <-p.done:
			return 0, p.state()
		}
	}
}

// Write returns when all of b is in the buffer for what is to be sent.
func (p *Port) Write(b []byte) (n int, err error) {
	if err := p.enter(p.writing); err != nil {
		return 0, err
	}
	defer func() { <-p.writing }()
	for n < len(b) {
		p.mu.Lock()
		for n < len(b) && p.out.free() > 0 {
			p.out.put(b[n])
			n++
		}
		p.mu.Unlock()
		ring(p.kick)
		if n == len(b) {
			break
		}
		select {
		case <-p.room:
		case <-p.done:
			return n, p.state()
		}
	}
	return n, nil
}

// Counters are those of the port.
func (p *Port) Counters() Counters {
	return Counters{Received: p.received.Load(), Sent: p.sent.Load(), Overruns: p.overruns.Load()}
}

func (p *Port) state() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return p.failure
	}
	return ErrClosed
}

// Close sends what is to be sent, for no longer than a bound, and leaves the port
// without interrupts.
func (p *Port) Close() error {
	p.closing.Do(func() {
		p.drain()
		p.stopped.Do(func() { close(p.done) })
		p.crew.Wait()
		p.irq.Close()
	})
	return nil
}

// drain waits until the buffer for what is to be sent is empty.
func (p *Port) drain() {
	timer := time.NewTimer(drainBound)
	defer timer.Stop()
	for {
		p.mu.Lock()
		left := p.out.len()
		p.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-p.room:
		case <-p.done:
			return
		case <-timer.C:
			return
		}
	}
}

// buffer is a queue of bytes.
type buffer struct {
	bytes      [bufferSize]byte
	head, tail uint32 // they wrap around
}

func (b *buffer) len() int  { return int(b.tail - b.head) }
func (b *buffer) free() int { return bufferSize - b.len() }

func (b *buffer) put(v byte) {
	b.bytes[b.tail%bufferSize] = v
	b.tail++
}

func (b *buffer) take() byte {
	v := b.bytes[b.head%bufferSize]
	b.head++
	return v
}
