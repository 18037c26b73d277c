package socket

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Waiter lets a program's goroutines wait for one condition of a socket, such as "readable", with a deadline. It is a
// doorbell: a channel of capacity 1.
//
// Code that may have made the condition true calls Ring. A waiting goroutine receives from the channel, checks the
// condition, and waits again if the condition does not hold. A ring wakes one goroutine, and a goroutine that stops waiting
// rings for the next one. Closing and deadlines therefore need no channels of their own, and waiting is a single receive.
//
// No ring is lost. A goroutine increments the field waiting, then checks the condition, then receives. The other side
// changes the condition first and then reads the field.
//
// Rejected: sync.Cond, which has no deadline. A channel that is closed for each event, which costs an allocation for each
// event. A select over data, close and deadline, which costs three times as much as one receive.
//
// The zero value is ready for use. The channel is created at the first wait, so that a connection without a waiting
// goroutine does not need one.
type Waiter struct {
	deadline atomic.Int64  // deadline in nanoseconds since clockZero; 0: none
	mu       sync.Mutex    // guards bell, timer and closed
	bell     chan struct{} // capacity 1, never closed; if full, a ring is already pending
	timer    *time.Timer
	closed   bool
	waiting  atomic.Int32 // number of goroutines that wait
}

var clockZero = time.Now()

// Ring wakes one waiting goroutine.
func (w *Waiter) Ring() {
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

// enter registers a waiting goroutine and returns the channel to receive from.
func (w *Waiter) enter() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bell == nil {
		w.bell = make(chan struct{}, 1)
	}
	w.waiting.Add(1)
	return w.bell
}

// leave ends the registration of enter and wakes the next goroutine.
func (w *Waiter) leave() {
	if w.waiting.Add(-1) > 0 {
		w.Ring()
	}
}

// expired returns os.ErrDeadlineExceeded if the deadline has passed.
func (w *Waiter) expired() error {
	d := w.deadline.Load()
	if d == 0 || int64(time.Since(clockZero)) < d {
		return nil
	}
	return os.ErrDeadlineExceeded
}

// Close stops the timer and rejects further deadlines. It is called when the socket is
// closed.
func (w *Waiter) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.stopTimer()
}

// SetDeadline sets the time at which waiting ends; the zero time means never. Errors:
// ErrClosed.
func (w *Waiter) SetDeadline(t time.Time) error {
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
	w.timer = time.AfterFunc(time.Until(t), w.Ring)
	return nil
}

func (w *Waiter) stopTimer() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// Await calls try until it returns something other than ErrWouldBlock, or the deadline
// has passed.
func Await[T any](w *Waiter, try func() (T, error)) (v T, err error) {
	var bell <-chan struct{}
	for {
		if err = w.expired(); err != nil {
			break
		}
		if v, err = try(); err != ErrWouldBlock {
			break
		}
		if bell == nil { // enter before the last check of the condition, so that no ring is lost
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
