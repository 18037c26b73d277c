package handed

import (
	"sync"
	"time"

	"loam/abi/linux"
	"loam/posix/file"
)

// TCP_DEFER_ACCEPT for connections of the host: a connection without data is withheld from the listener
// for a limited time, as Loam's own connections are (stack.TCPConn). The host has completed the
// handshake anyway, so the client sees no difference.

// withheld is a connection that is not offered to the listener until it has data. HostTCP.Watch can be called only once, and
// withheld calls it at the start. It therefore passes later events to the function that its own method Watch gets.
type withheld struct {
	HostTCP
	offer func() // hands the connection to the program
	timer *time.Timer

	mu      sync.Mutex // guards the fields below
	offered bool       // offer has been called; from then on, the program may close the connection
	look    func(of file.Events) bool
}

// withhold calls the function offer with c, or with a wrapper of it, when data has
// arrived or the duration wait is over.
func withhold(c HostTCP, wait time.Duration, offer func(HostTCP)) {
	if wait <= 0 || c.Events()&^file.PollOut != 0 {
		offer(c)
		return
	}
	w := &withheld{HostTCP: c}
	w.offer = func() { offer(w) }
	w.timer = time.AfterFunc(wait, w.expire)
	if c.Watch(w.receive) != 0 {
		w.expire()
	}
}

// receive takes events from the host. It returns true when no more events are needed.
func (w *withheld) receive(of file.Events) bool {
	w.mu.Lock()
	if w.offered {
		look := w.look
		w.mu.Unlock()
		return look != nil && look(of)
	}
	w.offered = w.Events()&^file.PollOut != 0
	ready := w.offered
	w.mu.Unlock()
	if ready {
		w.timer.Stop()
		w.offer()
	}
	return false
}

// expire offers the connection to the listener when the time of TCP_DEFER_ACCEPT is up.
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
func (w *withheld) Watch(look func(of file.Events) (over bool)) linux.Errno {
	w.mu.Lock()
	w.look = look
	w.mu.Unlock()
	look(^file.Events(0))
	return 0
}
