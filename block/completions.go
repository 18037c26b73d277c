package block

import "sync"

// Completions is a queue of completed requests for one user: a goroutine, or a group that shares
// the work. It holds any number of requests, because they are linked through their own fields, so a
// device never waits for a slow user.
type Completions struct {
	// c has capacity 1. A device sends, without blocking, after it has added a request. If c is full, the
	// earlier wake-up serves the new request too; the user receives. It is never closed. A wake-up may be
	// stale.
	c chan struct{}

	mu   sync.Mutex // guards the field done
	done List
}

// NewCompletions returns an empty Completions.
func NewCompletions() *Completions { return &Completions{c: make(chan struct{}, 1)} }

// C returns the channel that wakes the user: see Take.
func (c *Completions) C() <-chan struct{} { return c.c }

// Take moves completed requests to rs, and returns their number. It does not block. If requests are
// left over, C is ready again.
func (c *Completions) Take(rs []*Request) (n int) {
	c.mu.Lock()
	for n < len(rs) && c.done.n > 0 {
		rs[n] = c.done.Pop()
		n++
	}
	left := c.done.n > 0
	c.mu.Unlock()
	if left {
		c.wake()
	}
	return n
}

// Wait is Take, but blocks until at least one request has completed. The caller has a request in
// flight, so the wait is bounded by the device's timeout.
func (c *Completions) Wait(rs []*Request) (n int) {
	for {
		if n = c.Take(rs); n > 0 {
			return n
		}
		<-c.c
	}
}

func (c *Completions) push(r *Request) {
	c.mu.Lock()
	c.done.Push(r)
	c.mu.Unlock()
	c.wake()
}

func (c *Completions) wake() {
	select {
	case c.c <- struct{}{}:
	default:
	}
}
