package ninep

import (
	"io"
	"time"

	"loam/abi/linux"
)

// Receiving in the caller's goroutine. A reply that wakes the goroutine receive, which then wakes the
// caller, costs more than the request itself. So the caller of a request receives the reply itself (it
// leads). It looks for the reply for some time before it blocks its thread, unless the CPUs are busy: then
// looking takes the CPU from the server. Between calls, receive waits in idle.
//
// Exactly one goroutine reads: the one that holds conn.reading. conn.waiting counts calls with a
// waiting caller. A goroutine that stops reading while waiting is not 0 must wake receive (park),
// because another caller may have found conn.reading held.

// Trier is a connection on which a goroutine can look for input without blocking. Without it, all replies
// are received by one goroutine.
type Trier interface {
	// TryRead reads input that has arrived. Errors: EAGAIN if there is none; io.EOF.
	TryRead(p []byte) (int, error)
	// Yield lets another thread of the host use this CPU.
	Yield()
}

// Prompter is a connection on which a message costs little while the server is awake.
type Prompter interface {
	// Awake reports whether the server receives without being woken.
	Awake() bool
}

// idleTime is the time without reads by callers after which receive reads again.
const idleTime = 2 * time.Millisecond

// source is the input of a connection. Without try, reads block.
type source struct {
	io.Reader
	try Trier
}

func (s *source) Read(p []byte) (int, error) {
	if s.try != nil {
		return s.try.TryRead(p)
	}
	return s.Reader.Read(p)
}

// wait waits for the reply to a request.
func (c *conn) wait(k *call) {
	if c.trier != nil {
		c.lead(k)
	}
	<-k.done
}

// landed reports whether a call has ended.
func (k *call) landed() bool { return len(k.done) > 0 }

// lead receives replies in the caller's goroutine until the reply to k has arrived. It does nothing if another
// goroutine is receiving.
func (c *conn) lead(k *call) {
	if !c.reading.TryLock() {
		return
	}
	if !k.long() {
		c.patience.Wait(func() bool { return c.look(k) }, c.trier.Yield)
	}
	for !k.landed() {
		c.step()
	}
	c.led.Store(true)
	c.reading.Unlock()
	if c.waiting.Load() > 0 {
		c.park()
	}
}

// long reports whether the server mostly takes longer for the request than a caller would poll.
func (k *call) long() bool { return k.kind == TypeList || k.kind == TypeFetch }

// look receives all replies that have arrived. It reports whether the reply to k was among them. The caller holds
// reading.
func (c *conn) look(k *call) bool {
	for !k.landed() {
		c.source.try = c.trier
		_, err := c.in.Peek(HeaderSize)
		c.source.try = nil
		if err == linux.EAGAIN {
			return false
		}
		c.step() // step also records the end of the connection
	}
	return true
}

// park makes receive read again. If the channel is full, receive has not taken the earlier value yet, and
// will read when it does.
func (c *conn) park() {
	select {
	case c.parked <- struct{}{}:
	default:
	}
}

// idle returns when receive must read again: a caller waits, callers have stopped reading, or the connection
// has ended.
func (c *conn) idle() {
	if c.waiting.Load() > 0 {
		return
	}
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	for {
		select {
		case <-c.parked:
			return
		case <-timer.C:
			if !c.led.Swap(false) {
				return
			}
			timer.Reset(idleTime)
		}
	}
}
