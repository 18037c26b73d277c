package posix

import (
	"sync"
	"time"
)

// TCP_DEFER_ACCEPT of listeners that connections of the host's are handed to: a connection that
// brings no data is kept back for so long, as one of Loam's own is (stack.TCPConn). The host has
// accepted it all the same: who connects sees no difference.

// withheld is such a connection. It is watched from the beginning, and whoever watches it later hears of
// what happens by the same way, since HostTCP.Watch is called once.
type withheld struct {
	HostTCP
	offer func() // gives it to the program
	timer *time.Timer

	mu      sync.Mutex // guards what follows
	offered bool       // offer has been called, or is: the connection may be closed from then on
	look    func(of Events) bool
}

// withhold has offer called with c, or what stands for it, when something has come or the time is over.
func withhold(c HostTCP, wait time.Duration, offer func(HostTCP)) {
	if wait <= 0 || c.Events()&^PollOut != 0 {
		offer(c)
		return
	}
	w := &withheld{HostTCP: c}
	w.offer = func() { offer(w) }
	w.timer = time.AfterFunc(wait, w.expire)
	if c.Watch(w.hear) != 0 {
		w.expire()
	}
}

// hear is told of events by the host. It returns true when nobody wants to know any more.
func (w *withheld) hear(of Events) bool {
	w.mu.Lock()
	if w.offered {
		look := w.look
		w.mu.Unlock()
		return look != nil && look(of)
	}
	w.offered = w.Events()&^PollOut != 0
	ready := w.offered
	w.mu.Unlock()
	if ready {
		w.timer.Stop()
		w.offer()
	}
	return false
}

// expire is for a connection that has waited long enough.
func (w *withheld) expire() {
	w.mu.Lock()
	late := w.offered
	w.offered = true
	w.mu.Unlock()
	if !late {
		w.offer()
	}
}

// Watch implements HostTCP.
func (w *withheld) Watch(look func(of Events) (over bool)) Errno {
	w.mu.Lock()
	w.look = look
	w.mu.Unlock()
	look(^Events(0))
	return 0
}
