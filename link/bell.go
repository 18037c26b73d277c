package link

import "sync"

// Bell implements Queue.Room for a device: a channel with a buffer of one that any goroutine may
// signal and that is closed once. Use NewBell; the zero value is not ready.
type Bell struct {
	// c is sent to by Ring, which never blocks: if c is full, a signal is already pending. The
	// goroutine that waits for room receives from it. Close closes it.
	c chan struct{}

	mu     sync.Mutex // guards closed, so that Ring never sends on a closed channel
	closed bool
}

// NewBell returns a bell with no pending signal.
func NewBell() *Bell { return &Bell{c: make(chan struct{}, 1)} }

// C returns the channel to wait on.
func (b *Bell) C() <-chan struct{} { return b.c }

// Ring wakes one waiter, or the next one to wait. It never blocks, and does nothing after Close.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	select {
	case b.c <- struct{}{}:
	default:
	}
}

// Close closes the channel. It may be called more than once.
func (b *Bell) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.c)
	}
}
