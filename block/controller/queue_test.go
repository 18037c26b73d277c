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
