// Package trace wraps a block device and records every request: when it was submitted and when it
// came back, with the data of writes. From such a log, package crash builds the contents that a
// device may have after a power failure.
//
// The order of events in the log is the order to which the rules of package block refer. A
// submission is recorded before the device gets the request, and a completion before the user does:
// if a write is recorded as completed before a flush is recorded as submitted, the flush covers it.
package trace

import (
	"bytes"
	"sync"

	"loam/block"
	"loam/block/relay"
)

// Event is the submission or the completion of a request.
type Event struct {
	Completed bool
	ID        uint64 // number of the request: from 1, in order of submission

	// These fields describe the request of a submission.
	Op     block.Op
	Flags  block.Flags
	Offset int64
	Length int64
	Data   []byte // the data of a Write

	// These fields describe the result of a completion.
	Failed bool
}

// Sink receives events in order, one at a time. It may keep the data of an event.
type Sink interface {
	Record(Event)
}

// Log is a sink that keeps events in memory. The zero value is empty.
type Log struct {
	mu     sync.Mutex // guards the field events
	events []Event
}

// Record implements Sink.
func (l *Log) Record(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// Events returns the events recorded so far. The caller must not change them.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[:len(l.events):len(l.events)]
}

// Device passes all requests to another device, and records them.
type Device struct {
	block.Device
	relay *relay.Relay

	mu   sync.Mutex // guards all below, and keeps the log in order
	sink Sink
	last uint64
	ids  map[*block.Request]uint64 // the IDs of the requests in flight
}

// New returns a device that passes requests on to d and records them in s. When it is closed, it closes d.
func New(d block.Device, s Sink) *Device {
	t := &Device{Device: d, sink: s, ids: map[*block.Request]uint64{}}
	t.relay = relay.New(d, t.returned)
	return t
}

// Submit implements block.Device.
func (t *Device) Submit(queue int, rs []*block.Request) {
	for _, r := range rs {
		t.submitted(r)
		t.relay.Pass(queue, r, *r)
	}
}

// submitted records a valid request. Invalid requests are not recorded.
func (t *Device) submitted(r *block.Request) {
	info := t.Device.Info()
	if r.Check(&info, t.Device.Size()) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.ids[r] = t.last
	e := Event{ID: t.last, Op: r.Op, Flags: r.Flags, Offset: r.Offset, Length: r.Bytes()}
	if r.Op == block.Write {
		e.Data = bytes.Join(r.Data, nil)
	}
	t.sink.Record(e)
}

// returned records the completion of a request, and returns the request to its user.
func (t *Device) returned(r *block.Request, err error) {
	t.mu.Lock()
	if id, ok := t.ids[r]; ok {
		delete(t.ids, r)
		t.sink.Record(Event{Completed: true, ID: id, Failed: err != nil})
	}
	t.mu.Unlock()
	r.Complete(err)
}

// Close implements block.Device.
func (t *Device) Close() error { return t.relay.Close() }
