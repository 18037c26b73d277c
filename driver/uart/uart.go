// Package uart is the driver of 16550 serial ports (National Semiconductor PC16550D data sheet, June 1995). It uses
// interrupts in both directions.
//
// One goroutine, loop, owns the registers. Two buffers connect it to callers: one for received bytes, one for bytes to
// send. While the receive buffer is full, the driver does not read from the port. So no data is lost if the sender has
// flow control, as a virtual machine monitor has that passes on what it reads from a pipe.
package uart

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"loam/driver"
	"loam/internal/crew"
)

// Errors of Open and of Port's methods.
var (
	ErrAbsent = errors.New("uart: there is no serial port")
	ErrGone   = errors.New("uart: the serial port does not answer any more")
	ErrClosed = errors.New("uart: the serial port is closed")
)

// I/O address and IRQ of the first serial port of a PC.
const (
	COM1    = 0x3f8
	COM1IRQ = 4
)

// Registers, as offsets from the first port (data sheet, table II), and their bits.
const (
	data        = 0 // read: a received byte; write: a byte to send
	enable      = 1 // interrupt enable register
	identify    = 2 // read: interrupt identification register
	queues      = 2 // write: FIFO control register
	lineControl = 3
	modem       = 4
	lineStatus  = 5
	scratch     = 7

	enableReceived = 1 << 0
	enableEmpty    = 1 << 1

	identifyQueues = 3 << 6 // both bits set: the FIFOs are enabled and work
	queuesReset    = 7      // enables and clears the FIFOs

	bits8   = 3      // 8 data bits, no parity, 1 stop bit
	divisor = 1 << 7 // while set, the first two registers are the divisor of the bit rate

	modemOn = 1<<0 | 1<<1 | 1<<3 // DTR, RTS, and OUT2, which enables the interrupt output

	statusReceived = 1 << 0
	statusOverrun  = 1 << 1
	statusEmpty    = 1 << 5
	statusNothing  = 0xff // value of the register if no device responds
)

const (
	queueDepth = 16
	bufferSize = 4096

	// burst is the maximum number of bytes that one call of attend moves: a faulty port may report data without end.
	burst = 256
	// retry is the polling interval while there is data to send. Polling continues the transfer if an interrupt was
	// lost.
	retry = 100 * time.Millisecond
	// drainBound is the maximum time that Close waits for the send buffer to become empty.
	drainBound = 2 * time.Second
)

// Port is an open serial port. Its methods may be called from several goroutines. It implements io.ReadWriteCloser.
type Port struct {
	ports driver.Ports
	base  uint16
	irq   driver.Interrupt
	depth int // size of the transmit FIFO in bytes

	mu      sync.Mutex // guards in, out and failure
	in, out buffer
	failure error // ErrGone after the port has failed, otherwise nil

	// Notifications. Each channel has capacity 1. The sender does not block: if the channel is full, a notification is
	// already pending.
	kick    chan struct{} // sent by Read and Write when loop has work
	arrived chan struct{} // sent by loop when in is not empty
	room    chan struct{} // sent by loop when out is not full

	// Locks for Read and Write, each with capacity 1: the caller that has sent to the channel holds the lock.
	reading, writing chan struct{}

	received, sent, overruns atomic.Uint64

	done    chan struct{} // closed when the port is closed or has failed
	stopped sync.Once     // closes done
	closing sync.Once
	crew    crew.Crew
}

// Counters counts events since the port was opened.
type Counters struct {
	Received, Sent uint64 // numbers of bytes
	Overruns       uint64 // number of overflows of the port's receive FIFO, each with data loss
}

// Open opens the serial port at I/O address base, whose interrupt line is gsi. It sets 115200 bits per second, 8 data
// bits, no parity, 1 stop bit. It returns ErrAbsent if there is no port.
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

// setUp configures the port and detects whether its FIFOs work.
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

// ring sends a notification without blocking.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// loop handles the port until it is closed or fails. After Open, only loop accesses the registers.
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

// attend moves bytes in both directions. more means that it has to be called again at once; pending means that the send
// buffer is not empty.
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
	// Write the register even if it does not change: the write makes the port evaluate its interrupt conditions
	// again. An edge-triggered line may otherwise stay asserted without a new edge.
	p.put(enable, 0)
	p.put(enable, wanted)
	return more, pending
}

// step moves the bytes that can be moved without waiting, and reports whether it has moved any.
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

// enter locks a direction. It returns an error when the port is closed or has failed.
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

// Read waits for input and returns what is available, at most len(b) bytes.
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
			ring(p.kick) // the port may have more bytes
			return n, nil
		}
		select {
		case <-p.arrived:
		case <-p.done:
			return 0, p.state()
		}
	}
}

// Write writes b to the send buffer. It returns when the buffer contains all of b; it blocks while the buffer is full.
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

// Counters returns the counters of the port.
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

// Close waits up to drainBound until the send buffer is empty, and disables the port's interrupts. It may be called
// more than once.
func (p *Port) Close() error {
	p.closing.Do(func() {
		p.drain()
		p.stopped.Do(func() { close(p.done) })
		p.crew.Wait()
		p.irq.Close()
	})
	return nil
}

// drain waits until the send buffer is empty, at most drainBound.
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

// buffer is a circular buffer of bytes.
type buffer struct {
	bytes      [bufferSize]byte
	head, tail uint32 // number of bytes removed and added so far; both counts wrap around
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
