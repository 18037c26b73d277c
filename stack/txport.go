package stack

import (
	"sync"

	"loam/link"
)

// txPort serializes the use of one device queue. A queue allows one sender at a time, and signals room only after a Send that
// did not take all frames. So after such a Send, all senders wait for the signal. Another Send in between would cancel the
// signal and reorder frames.
type txPort struct {
	queue link.Queue

	mu      sync.Mutex    // guards the fields below, except woken
	control []*link.Frame // frames of the interface (ARP, DHCP) and of LinkConns, sent first; at most maxControl
	waiting []*txLink     // links that wait for room; each is listed once
	closed  bool

	woken []*txLink // owned by loop: the links that it resumes now; loop swaps it with waiting
}

// maxControl bounds the frames of the interface and of LinkConns that wait for room.
const maxControl = 64

// send passes frames to the device and returns how many it took. If it did not take all,
// l.resume is posted when there is room.
func (p *txPort) send(l *txLink, frames []*link.Frame) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return 0, link.ErrClosed
	case len(p.control) == 0 && len(p.waiting) == 0:
		n, err = p.queue.Send(frames)
	}
	if err == nil && n < len(frames) {
		p.waiting = append(p.waiting, l)
	}
	return n, err
}

// sendControl sends a frame of the interface or of a LinkConn, before everything else that waits for room. It takes ownership
// of the frame. It returns false if the frame was dropped for lack of room.
func (p *txPort) sendControl(f *link.Frame) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		f.Free()
		return true
	}
	if len(p.control) == maxControl {
		f.Free()
		return false
	}
	inLine := len(p.control) > 0 || len(p.waiting) > 0
	p.control = append(p.control, f)
	if !inLine {
		p.flushControl()
	}
	return true
}

// flushControl sends the control frames and reports whether all were sent.
func (p *txPort) flushControl() bool {
	if len(p.control) == 0 {
		return true
	}
	n, err := p.queue.Send(p.control)
	if err != nil {
		link.FreeAll(p.control[n:])
		n = len(p.control)
	}
	rest := copy(p.control, p.control[n:])
	clear(p.control[rest:])
	p.control = p.control[:rest]
	return rest == 0
}

// loop wakes the shards that wait for room. It ends when the device is closed.
func (p *txPort) loop() {
	for range p.queue.Room() {
		p.mu.Lock()
		if p.flushControl() {
			p.waiting, p.woken = p.woken, p.waiting
		}
		p.mu.Unlock()
		for _, l := range p.woken {
			l.shard.post(l.goOn)
		}
		clear(p.woken)
		p.woken = p.woken[:0]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	link.FreeAll(p.control)
	p.control, p.waiting = nil, nil
}
