// Package relay is the common part of wrappers of block devices. It passes each request of the user
// to the wrapped device as a second request. One goroutine receives the completed ones.
package relay

import (
	"sync"

	"loam/block"
	"loam/internal/crew"
)

// Relay passes requests on. Call New: the zero value is not usable.
type Relay struct {
	device   block.Device
	returned func(outer *block.Request, err error)
	to       *block.Completions
	crew     crew.Crew
	closing  sync.Once
	err      error

	mu     sync.Mutex // guards the fields below
	free   []*passed
	count  int  // number of requests in the wrapped device
	closed bool // Close was called: no further request is passed on
	// ended has capacity 1. Close and back send, without blocking, when the relay is closed and no request is
	// left in the device. loop receives. It is never closed.
	ended chan struct{}
}

// passed is a request to the device (inner) with the user's request that it stands for (outer).
type passed struct {
	request block.Request
	batch   [1]*block.Request
	outer   *block.Request
}

// New returns a relay to d. One goroutine calls returned for every request that comes back, and Pass calls it after Close;
// returned passes the outer request to its user.
func New(d block.Device, returned func(outer *block.Request, err error)) *Relay {
	r := &Relay{device: d, returned: returned, to: block.NewCompletions(), ended: make(chan struct{}, 1)}
	r.crew.Start(r.loop)
	return r
}

// Pass submits a copy of inner to the device. When it completes, outer completes with the same error. Pass sets the fields
// To and Tag of the copy. After Close, outer completes at once with ErrClosed.
func (r *Relay) Pass(queue int, outer *block.Request, inner block.Request) {
	p := r.acquire()
	if p == nil {
		r.returned(outer, block.ErrClosed)
		return
	}
	p.outer, p.request = outer, inner
	p.request.To, p.request.Tag = r.to, p
	p.batch[0] = &p.request
	r.device.Submit(queue, p.batch[:])
}

// acquire returns an unused request, or nil after Close.
func (r *Relay) acquire() *passed {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.count++
	if n := len(r.free); n > 0 {
		p := r.free[n-1]
		r.free = r.free[:n-1]
		return p
	}
	return &passed{}
}

// loop processes completed requests until the relay is closed and none is left.
func (r *Relay) loop() {
	var done [64]*block.Request
	for {
		select {
		case <-r.to.C():
		case <-r.ended:
			return
		}
		for n := r.to.Take(done[:]); n > 0; n = r.to.Take(done[:]) {
			for _, inner := range done[:n] {
				r.back(inner)
			}
		}
	}
}

// back processes one request that the wrapped device has completed, and completes the user's request.
func (r *Relay) back(inner *block.Request) {
	p := inner.Tag.(*passed)
	outer, err := p.outer, inner.Err
	p.outer, p.request = nil, block.Request{}
	r.mu.Lock()
	r.free = append(r.free, p)
	r.mu.Unlock()
	r.returned(outer, err)
	r.mu.Lock()
	r.count--
	r.checkEnd()
	r.mu.Unlock()
}

// checkEnd ends the loop when the last request is back. mu is held.
func (r *Relay) checkEnd() {
	if r.closed && r.count == 0 {
		select {
		case r.ended <- struct{}{}:
		default:
		}
	}
}

// Close rejects further requests, closes the device, and returns when all requests have come back.
// It may be called more than once, and returns the same.
func (r *Relay) Close() error {
	r.closing.Do(func() {
		r.mu.Lock()
		r.closed = true
		r.checkEnd()
		r.mu.Unlock()
		r.err = r.device.Close()
		r.crew.Wait()
	})
	return r.err
}
