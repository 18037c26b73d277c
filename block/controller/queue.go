package controller

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"loam/block"
	"loam/driver"
)

// Ring is one hardware queue of a controller. Its methods but C are called by one
// goroutine at a time.
type Ring interface {
	// C wakes when the hardware has completed something: see driver.Interrupt.
	C() <-chan struct{}
	// Acknowledge is called after C has woken, before Take.
	Acknowledge()
	// Start makes a command of a step. data is empty unless the step is a Read or
	// Write. There is room: no more steps are started than there are slots.
	Start(s Step, data []driver.Segment)
	// Kick shows the hardware what was started.
	Kick()
	// Take returns a step that the hardware has done. ok is false if there is none;
	// then C wakes for the next. A fatal error says that the hardware cannot be used
	// any more.
	Take() (c Completion, ok bool, fatal error)
}

// Recoverer is a Ring that may have to be reset after a failed command, which takes
// time. Take returns ErrRecover then; Recover is called without the queue's lock, and
// meanwhile no other method but C. Afterwards Take is called again.
type Recoverer interface {
	Recover() error
}

// ErrRecover asks for a call of Recover.
var ErrRecover = errors.New("controller: the queue has to recover")

// Completion says how a step has ended.
type Completion struct {
	Slot int
	Err  error
}

// queue is a ring with its requests.
type queue struct {
	device *Device
	ring   Ring

	mu     sync.Mutex // guards all below, and the methods of ring
	slots  *Slots
	memory *memory
	paused bool  // the ring recovers: requests wait
	broken bool  // the ring cannot be used any more: requests wait for the end
	ended  error // why no request is accepted; nil: they are
	// timer fires when the oldest step may be overdue, if armed. loop receives.
	timer *time.Timer
	armed bool
}

// submit takes requests, and starts what the hardware has room for.
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
			q.slots.Add(r)
		}
	}
	q.start()
}

// start gives the hardware what it has room for.
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

// loop takes completions until the device is closed.
func (q *queue) loop() {
	for {
		select {
		case <-q.ring.C():
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

// resume goes on after a recovery.
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

func (q *queue) interrupted() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended == nil && !q.broken {
		q.ring.Acknowledge()
		q.take()
	}
}

// take returns the requests that are done, and starts others.
func (q *queue) take() {
	for {
		c, ok, fatal := q.ring.Take()
		if fatal == nil && ok && !q.slots.Busy(c.Slot) {
			fatal = fmt.Errorf("it completed command %d, which it does not have", c.Slot)
		}
		if fatal == ErrRecover {
			q.paused = true
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

// fail gives the device up. Nothing is started on the ring any more.
func (q *queue) fail(cause error) {
	q.broken = true
	q.device.Fail(cause)
}

// done ends a step.
func (q *queue) done(c Completion) {
	if c.Err == nil {
		q.memory.finish(c.Slot, q.slots.Request(c.Slot))
	}
	if r := q.slots.Done(c.Slot, c.Err); r != nil {
		q.device.counters.Finish(r, c.Err)
	}
}

// checkTime gives the device up if a step is overdue. Before that it looks for
// completions whose interrupt was lost.
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

// end accepts no more requests, and leaves the hardware alone from now on.
func (q *queue) end(later error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = later
	q.timer.Stop()
}

// drain returns all requests. The hardware does not reach their memory any more.
func (q *queue) drain(cause error) {
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
		q.device.counters.Finish(r, err)
	}
}
