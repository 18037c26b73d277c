package link

import "sync"

// Bell is how a device keeps the promises of Queue.Room: a channel with one
// place that can be rung from anywhere and is closed once. The zero value is not
// ready; see NewBell.
type Bell struct {
	// c is sent to by Ring (never blocking: a full channel is a bell that rings
	// already), received from by whoever waits for room, closed by Close.
	c chan struct{}

	mu     sync.Mutex // guards closed, and so keeps Ring from sending on a closed channel
	closed bool
}

// NewBell returns a bell that has not rung.
func NewBell() *Bell { return &Bell{c: make(chan struct{}, 1)} }

// C is the channel to wait on.
func (b *Bell) C() <-chan struct{} { return b.c }

// Ring wakes one waiter, now or when it comes. It never blocks, and does nothing
// once the bell is closed.
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
