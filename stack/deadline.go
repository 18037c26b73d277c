package stack

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// waiter is where goroutines of a program wait for one condition of a socket
// ("readable", say), with a deadline: a doorbell with one place.
//
// Whoever may have made the condition true rings. A waiting goroutine takes the
// ring, looks at the condition itself, and waits again if it does not hold. A
// ring wakes one goroutine, and one that leaves rings for the next. So closing
// and deadlines need no channel of their own, and waiting is a plain receive.
//
// No ring is lost: a goroutine counts itself in, then looks, then receives; who
// rings changes the condition first, then looks at the count.
//
// Rejected: sync.Cond has no deadline; a channel closed at each event costs an
// allocation an event; select over data, close and deadline costs three times
// as much as one receive.
//
// The zero value is ready. The channel is made when somebody first waits, so a
// connection that nobody waits on does not pay for it.
type waiter struct {
	waiting  atomic.Int32
	deadline atomic.Int64 // nanoseconds since clockZero; 0: none
	mu       sync.Mutex   // guards what follows
	closed   bool
	bell     chan struct{} // rung by anybody, received by waiting goroutines, never closed; full: a ring is waiting already
	timer    *time.Timer
}

var clockZero = time.Now()

// ring wakes a goroutine that waits.
func (w *waiter) ring() {
	if w.waiting.Load() == 0 {
		return
	}
	w.mu.Lock()
	bell := w.bell
	w.mu.Unlock()
	select {
	case bell <- struct{}{}:
	default:
	}
}

// enter counts a goroutine in and returns what it may receive from.
func (w *waiter) enter() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bell == nil {
		w.bell = make(chan struct{}, 1)
	}
	w.waiting.Add(1)
	return w.bell
}

// leave undoes enter and has the next one look.
func (w *waiter) leave() {
	if w.waiting.Add(-1) > 0 {
		w.ring()
	}
}

// expired returns os.ErrDeadlineExceeded when the deadline has passed.
func (w *waiter) expired() error {
	d := w.deadline.Load()
	if d == 0 || int64(time.Since(clockZero)) < d {
		return nil
	}
	return os.ErrDeadlineExceeded
}

// close lets go of the timer and refuses another: the socket has been closed.
func (w *waiter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.stopTimer()
}

// setDeadline sets the time after which waiting ends; the zero time means never.
// Errors: ErrClosed.
func (w *waiter) setDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.stopTimer()
	if t.IsZero() {
		w.deadline.Store(0)
		return nil
	}
	d := t.Sub(clockZero)
	if d == 0 {
		d = 1
	}
	w.deadline.Store(int64(d))
	w.timer = time.AfterFunc(time.Until(t), w.ring)
	return nil
}

func (w *waiter) stopTimer() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// await repeats try until it does not return ErrWouldBlock or the deadline has
// passed.
func await[T any](w *waiter, try func() (T, error)) (v T, err error) {
	var bell <-chan struct{}
	for {
		if err = w.expired(); err != nil {
			break
		}
		if v, err = try(); err != ErrWouldBlock {
			break
		}
		if bell == nil { // count in, and look once more
			bell = w.enter()
			continue
		}
		<-bell
	}
	if bell != nil {
		w.leave()
	}
	return v, err
}
