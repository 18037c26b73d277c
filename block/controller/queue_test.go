package controller

import (
	"errors"
	"testing"

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
	d := Open(Config{
		Machine: model.New(), Info: block.Info{LogicalSector: 512, Volatile: true, Timeout: 1 << 40},
		Rings: []Ring{r}, Slots: 2, Segments: 1, Stop: func() error { return nil }, Free: func() {},
	})
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

func (r *callingRing) Call(f func()) bool { r.call = f; return true }
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
	d := Open(Config{
		Machine: model.New(), Info: block.Info{LogicalSector: 512, Volatile: true, Timeout: 1 << 40},
		Rings: []Ring{r}, Slots: 2, Segments: 1, Stop: func() error { return nil }, Free: func() {},
	})
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
	r.call()
}
