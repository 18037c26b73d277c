// Package offload wraps a device and implements in software the offloads that it lacks. A stack can
// then always send frames of 64 kB with unfinished checksums, and also receives such frames.
//
// When sending, it cuts GSO frames with link.Segment and finishes checksums. When receiving, it
// merges the TCP segments of a batch with link.Coalesce.
//
// A GSO frame that does not fit into the device's queue is sent in parts. The caller keeps the
// frame, shortened by the segments that were sent, and sends it again when Room signals, like any
// frame that was not taken. So this package needs no goroutine and no timer: the caller knows
// all frames that wait, except for at most one batch of segments, which the caller's next Send
// sends first.
package offload

import (
	"sync"

	"loam/link"
)

// All is the set of all offloads, which the wrapping device offers.
const All = link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6 | link.OffloadUSO

// Device is a device with all offloads.
type Device struct {
	inner  link.Device
	info   link.Info
	ends   []*queue
	queues []link.Queue // the elements of ends, as interfaces
}

// New wraps d. Closing the returned device also closes d.
func New(d link.Device) *Device {
	w := &Device{inner: d, info: d.Info()}
	hardware := w.info
	w.info.Offloads = All
	for _, q := range d.Queues() {
		end := &queue{inner: q, hardware: hardware, info: &w.info}
		w.ends = append(w.ends, end)
		w.queues = append(w.queues, end)
	}
	return w
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// Stats implements link.Device. Frames are counted as the wrapped device sends and receives them.
func (d *Device) Stats() link.Stats {
	s := d.inner.Stats()
	for _, q := range d.ends {
		s.Add(q.counters.Stats())
	}
	return s
}

// Close implements link.Device.
func (d *Device) Close() error {
	err := d.inner.Close()
	for _, q := range d.ends {
		q.discard()
	}
	return err
}

// queue is one queue of the wrapped device.
type queue struct {
	inner    link.Queue
	hardware link.Info // Info of the wrapped device: its own offloads
	info     *link.Info
	counters link.Counters // only its counts of errors are used

	mu sync.Mutex // guards the segments between Send and Close
	// segments holds the segments cut off a frame, and one place for the rest of the frame. held is
	// the part of segments that the device has not taken yet.
	segments [link.BatchSize + 1]*link.Frame
	held     []*link.Frame
}

// Recv implements link.Queue.
func (q *queue) Recv(fs []*link.Frame) (int, error) {
	n, err := q.inner.Recv(fs)
	return link.Coalesce(q.info.Medium, fs[:n]), err
}

// Room implements link.Queue.
func (q *queue) Room() <-chan struct{} { return q.inner.Room() }

// Send implements link.Queue.
func (q *queue) Send(fs []*link.Frame) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.held) > 0 {
		if err := q.flush(); err != nil || len(q.held) > 0 {
			return 0, err
		}
	}
	for n < len(fs) {
		run := q.ready(fs[n:])
		if run > 0 {
			sent, err := q.inner.Send(fs[n : n+run])
			n += sent
			if sent < run || err != nil {
				return n, err
			}
			continue
		}
		taken, err := q.sendHard(fs[n])
		if !taken || err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// ready finishes the checksums of the frames at the front of fs, and returns how many of them the
// device can send as they are.
func (q *queue) ready(fs []*link.Frame) int {
	for i, f := range fs {
		if !q.hardware.Carries(f) && (f.GSO != link.GSONone || !q.info.Carries(f) || !f.FinishChecksum()) {
			return i
		}
	}
	return len(fs)
}

// sendHard segments and sends f, a frame that ready does not accept. A frame that the device can
// never send is freed and counted. taken is false if part of f is still to be sent; the caller then
// keeps f.
func (q *queue) sendHard(f *link.Frame) (taken bool, err error) {
	for {
		cut, ok := 0, q.info.Carries(f)
		if ok {
			cut, ok = link.Segment(q.info.Medium, f, q.segments[:link.BatchSize])
		}
		if !ok {
			f.Free()
			q.counters.TxError()
			return true, nil
		}
		last := f.GSO == link.GSONone
		if last {
			q.segments[cut] = f
			cut++
		}
		n, err := q.inner.Send(q.segments[:cut])
		if n == cut && last {
			return true, err
		}
		if last {
			cut-- // the caller keeps f
		}
		if q.held = q.segments[n:cut]; n < cut || last || err != nil {
			return false, err
		}
	}
}

// flush sends the held segments.
func (q *queue) flush() error {
	n, err := q.inner.Send(q.held)
	q.held = q.held[n:]
	return err
}

// discard frees the held segments.
func (q *queue) discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	link.FreeAll(q.held)
	q.held = nil
}
