package controller

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"loam/block"
	"loam/driver"
)

// Ring is one hardware queue of a controller. Its methods, except C, are called by one goroutine at
// a time. If a Ring is also a driver.Caller, its interrupts call a function, so that a request comes back without a switch to
// the goroutine of the queue.
type Ring interface {
	// C returns a channel that wakes the queue after the hardware has completed a command: see
	// driver.Interrupt.
	C() <-chan struct{}
	// Acknowledge is called after an interrupt, before Take.
	Acknowledge()
	// Start writes the command for a step. data is empty unless the step is a Read or Write. There
	// is always room: no more steps are started than there are slots.
	Start(s Step, data []driver.Segment)
	// Kick notifies the hardware of the started commands.
	Kick()
	// Take returns a step that the hardware has completed. ok is false if there is none; the hardware
	// then interrupts for the next one. A fatal error means that the hardware is unusable.
	Take() (c Completion, ok bool, fatal error)
}

// Recoverer is a Ring that may need a reset after a failed command, which takes time. Its Take then
// returns ErrRecover. Recover is called without the queue's lock; until it returns, only C may be
// called at the same time. Afterwards Take is called again.
type Recoverer interface {
	Recover() error
}

// ErrRecover is returned by Take to request a call of Recover.
var ErrRecover = errors.New("controller: the queue has to recover")

// Completion is the result of a step (see Step).
type Completion struct {
	Slot int
	Err  error
}

// queue is a ring of the hardware with the requests that wait for it or are in it.
type queue struct {
	device *Device
	ring   Ring
	// work has capacity 1. A goroutine that leaves work to loop sends, without blocking; loop receives. If it is full, loop has
	// not begun yet.
	work chan struct{}

	mu     sync.Mutex // guards all fields below, and the methods of the field ring
	slots  *Slots
	memory *memory
	paused bool  // the ring is recovering after an error: requests wait
	broken bool  // the ring is unusable: requests wait until the device is shut down
	ended  error // why new requests are rejected; nil: they are accepted
	// timer, if armed, fires when the oldest step may be overdue. loop receives.
	timer *time.Timer
	armed bool
}

// submit queues requests, and starts as many as the hardware has room for.
func (q *queue) submit(rs []*block.Request) {
	d := q.device
	size := d.Size()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range rs {
		switch err := r.Check(&d.info, size); {
		case q.ended != nil:
			d.counters.Reject(r, q.ended)
		case err != nil:
			d.counters.Reject(r, err)
		case r.Op == block.Flush && !d.info.Volatile:
			d.counters.Finish(r, nil)
		default:
			d.counters.Begin(r)
			q.slots.Add(r)
		}
	}
	q.start()
}

// start starts waiting requests as far as the hardware has room for them.
func (q *queue) start() {
	if q.paused || q.broken {
		return
	}
	started := false
	now := time.Now()
	for {
		s, ok := q.slots.Next(now)
		if !ok {
			break
		}
		data, err := q.prepare(s)
		if err != nil {
			q.device.counters.Finish(q.slots.Done(s.Slot, err), err)
			continue
		}
		q.ring.Start(s, data)
		started = true
	}
	if !started {
		return
	}
	q.ring.Kick()
	if !q.armed && q.ended == nil {
		q.armed = true
		q.timer.Reset(q.device.info.Timeout)
	}
}

func (q *queue) prepare(s Step) ([]driver.Segment, error) {
	if s.Op != block.Read && s.Op != block.Write {
		return nil, nil
	}
	data, copied, err := q.memory.prepare(s.Slot, s.Request)
	if copied {
		q.device.counters.Copied.Add(1)
	}
	return data, err
}

// loop processes completions of the ring until the device is closed.
func (q *queue) loop() {
	for {
		select {
		case <-q.ring.C():
			q.interrupted()
		case <-q.work:
			q.interrupted()
		case <-q.timer.C:
			q.checkTime()
		case <-q.device.done:
			return
		}
		for q.isPaused() {
			q.resume(q.ring.(Recoverer).Recover())
		}
	}
}

func (q *queue) isPaused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.paused && q.ended == nil
}

// resume ends the pause of the queue after a recovery, which failed if err is not nil.
func (q *queue) resume(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = false
	if err != nil {
		q.fail(err)
		return
	}
	q.take()
}

// called processes completions in the goroutine of the machine's interrupts, or leaves them to loop if the lock is held.
func (q *queue) called() {
	if !q.mu.TryLock() {
		q.wake()
		return
	}
	defer q.mu.Unlock()
	q.process()
}

// wake makes loop call interrupted.
func (q *queue) wake() {
	select {
	case q.work <- struct{}{}:
	default:
	}
}

func (q *queue) interrupted() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.process()
}

// process handles an interrupt.
func (q *queue) process() {
	if q.ended == nil && !q.broken && !q.paused {
		q.ring.Acknowledge()
		q.take()
	}
}

// take returns completed requests to their users, and starts waiting ones. During a pause it does nothing.
func (q *queue) take() {
	for !q.paused {
		c, ok, fatal := q.ring.Take()
		if fatal == nil && ok && !q.slots.Busy(c.Slot) {
			fatal = fmt.Errorf("it completed command %d, which it does not have", c.Slot)
		}
		if fatal == ErrRecover {
			q.paused = true
			q.wake() // loop calls Recover
			return
		}
		if fatal != nil {
			q.fail(fatal)
			return
		}
		if !ok {
			break
		}
		q.done(c)
	}
	q.start()
}

// fail shuts the device down. No further command is started on the ring.
func (q *queue) fail(cause error) {
	q.broken = true
	q.device.Fail(cause)
}

// done ends the step that a completion belongs to.
func (q *queue) done(c Completion) {
	if c.Err == nil {
		q.memory.finish(c.Slot, q.slots.Request(c.Slot))
	}
	if r := q.slots.Done(c.Slot, c.Err); r != nil {
		q.device.counters.Finish(r, c.Err)
	}
}

// checkTime shuts the device down if a step has taken longer than its time limit. Before that it processes completions,
// because the interrupt of the step may have been lost.
func (q *queue) checkTime() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = false
	if q.ended != nil || q.broken {
		return
	}
	q.take()
	oldest, ok := q.slots.Oldest()
	if !ok || q.armed {
		return
	}
	left := q.device.info.Timeout - time.Since(oldest)
	if left <= 0 {
		q.fail(block.ErrTimeout)
		return
	}
	q.armed = true
	q.timer.Reset(left)
}

// end rejects new requests from now on, and stops the use of the hardware.
func (q *queue) end(later error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = later
	q.timer.Stop()
}

// drain returns all requests with an error. If held is set, the hardware may still access the memory of those that it has.
func (q *queue) drain(cause error, held bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for {
		r, _, started := q.slots.Drain()
		if r == nil {
			return
		}
		err := q.ended
		if cause == block.ErrTimeout && !started.IsZero() && now.Sub(started) >= q.device.info.Timeout {
			err = fmt.Errorf("%s: %w", q.device.info.Name, block.ErrTimeout)
		}
		if held && !started.IsZero() {
			err = fmt.Errorf("%w: %w", err, block.ErrHeld)
		}
		q.device.counters.Finish(r, err)
	}
}
