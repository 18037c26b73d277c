package controller

import (
	"errors"
	"testing"
	"time"

	"loam/block"
	"loam/driver"
	"loam/driver/virtio/model"
)

// brokenRing completes nothing, and its Take returns a fatal error. A command that is started on it
// is a bug of the queue.
type brokenRing struct{ started int }

func (r *brokenRing) C() <-chan struct{}           { return nil }
func (r *brokenRing) Acknowledge()                 {}
func (r *brokenRing) Start(Step, []driver.Segment) { r.started++ }
func (r *brokenRing) Kick()                        {}
func (r *brokenRing) Take() (Completion, bool, error) {
	return Completion{}, false, errors.New("nonsense")
}

// Between a fatal error of the hardware and the shutdown of the device, requests are accepted, but
// none is started.
func TestNothingStartsOnBrokenRing(t *testing.T) {
	r := &brokenRing{}
	d := openRing(t, r)
	q := d.queues[0]
	flush := request(block.Flush, 0)
	q.mu.Lock()
	q.take()
	q.slots.Add(flush)
	q.start()
	if r.started != 0 {
		t.Error("a command was started")
	}
	q.mu.Unlock()
	flush.To.Wait(make([]*block.Request, 1))
	if !errors.Is(flush.Err, block.ErrGone) {
		t.Errorf("the request came back with %v", flush.Err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// callingRing completes each command when its interrupt calls. It sends nothing to C.
type callingRing struct {
	brokenRing
	call func()
	done []Completion
}

func (r *callingRing) Call(f func()) { r.call = f }
func (r *callingRing) Start(s Step, _ []driver.Segment) {
	r.done = append(r.done, Completion{Slot: s.Slot})
}
func (r *callingRing) Take() (c Completion, ok bool, fatal error) {
	if len(r.done) == 0 {
		return c, false, nil
	}
	c, r.done = r.done[0], r.done[1:]
	return c, true, nil
}

// If interrupts of a ring can call a function, a request comes back in this call. A call after Close does nothing.
func TestInterruptCalls(t *testing.T) {
	r := &callingRing{}
	d := openRing(t, r)
	flush := request(block.Flush, 0)
	d.Submit(0, []*block.Request{flush})
	if n := flush.To.Take(make([]*block.Request, 1)); n != 0 || r.call == nil {
		t.Fatalf("%d requests came back early; the ring got a function: %v", n, r.call != nil)
	}
	r.call()
	if n := flush.To.Take(make([]*block.Request, 1)); n != 1 || flush.Err != nil {
		t.Errorf("%d requests came back, %v", n, flush.Err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	r.done = []Completion{{}}
	if r.call(); len(r.done) != 1 {
		t.Error("a call after Close uses the ring")
	}
}

// An interrupt that calls a function does not wait for a submitter of requests. The queue's loop then returns the request.
func TestInterruptDoesNotWait(t *testing.T) {
	r := &callingRing{}
	d := openRing(t, r)
	flush := request(block.Flush, 0)
	d.Submit(0, []*block.Request{flush})
	q := d.queues[0]
	q.mu.Lock()
	called := make(chan struct{})
	go func() { r.call(); close(called) }()
	select {
	case <-called:
	case <-time.After(10 * time.Second):
		t.Error("the interrupt waits for the lock of a queue")
	}
	q.mu.Unlock()
	if flush.To.Wait(make([]*block.Request, 1)); flush.Err != nil {
		t.Error(flush.Err)
	}
}

// recoveringRing needs a reset before it returns completions.
type recoveringRing struct {
	callingRing
	resets int
}

func (r *recoveringRing) Recover() error { r.resets++; return nil }
func (r *recoveringRing) Take() (Completion, bool, error) {
	if r.resets == 0 {
		return Completion{}, false, ErrRecover
	}
	return r.callingRing.Take()
}

// A ring whose interrupt calls a function can recover: the queue's loop then calls Recover.
func TestInterruptOfRecoveringRing(t *testing.T) {
	r := &recoveringRing{}
	d := openRing(t, r)
	flush := request(block.Flush, 0)
	d.Submit(0, []*block.Request{flush})
	r.call()
	if flush.To.Wait(make([]*block.Request, 1)); flush.Err != nil || r.resets != 1 {
		t.Errorf("%d resets, %v", r.resets, flush.Err)
	}
}

// If the hardware cannot be stopped, requests that it has come back with ErrHeld, since it may still access their memory.
func TestHeldMemory(t *testing.T) {
	stuck := errors.New("no reset")
	d := Open(Config{
		Machine: model.New(), Info: block.Info{LogicalSector: 512, Volatile: true, Timeout: 1 << 40},
		Rings: []Ring{&callingRing{}}, Slots: 1, Segments: 1, Stop: func() error { return stuck }, Free: func() { t.Error("memory is freed") },
	})
	started, waiting := request(block.Flush, 0), request(block.Flush, 0)
	d.Submit(0, []*block.Request{started, waiting})
	if err := d.Close(); err != stuck {
		t.Errorf("close: %v", err)
	}
	if !errors.Is(started.Err, block.ErrHeld) || !errors.Is(started.Err, block.ErrClosed) || errors.Is(waiting.Err, block.ErrHeld) {
		t.Errorf("the started request came back with %v, the waiting one with %v", started.Err, waiting.Err)
	}
}

// openRing opens a device with one ring, until the test ends.
func openRing(t *testing.T, r Ring) *Device {
	d := Open(Config{
		Machine: model.New(), Info: block.Info{LogicalSector: 512, Volatile: true, Timeout: 1 << 40},
		Rings: []Ring{r}, Slots: 2, Segments: 1, Stop: func() error { return nil }, Free: func() {},
	})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
