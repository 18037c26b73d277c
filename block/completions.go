package block

import "sync"

// Completions receives requests that are done, for one user: a goroutine, or a group
// that shares the work. It holds any number of requests, since they are linked
// through themselves, so a device never waits for a slow user.
type Completions struct {
	// c has one place. Devices send, without blocking, after a request has come back
	// (full: the user will look once for both); the user receives. It is never
	// closed. A wake-up may be stale.
	c chan struct{}

	mu   sync.Mutex // guards done
	done List
}

// NewCompletions returns an empty Completions.
func NewCompletions() *Completions { return &Completions{c: make(chan struct{}, 1)} }

// C returns the channel that wakes the user: see Take.
func (c *Completions) C() <-chan struct{} { return c.c }

// Take moves requests that are done to rs, and returns how many. It does not block.
// If requests are left over, C is ready again.
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

// Wait is Take that blocks until at least one request is done. The caller has a
// request in flight, so the device's bound is the bound of the wait.
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
