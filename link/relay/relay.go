// Package relay runs a machine in each direction of each queue of a device: the
// frame of a wrapper that holds frames back (fault, shape), so that what it does
// to them is a pure machine, and the goroutines, rings and timers are here.
//
//	Send -> ring -> loop (machine) -> the device's Send
//	Recv <- ring <- loop (machine) <- ring <- reader <- the device's Recv
//
// One goroutine, the loop, owns a machine. A direction without a machine is
// passed on as it is. Rings are bounded and a machine says how much it takes, so
// that a full device, or a reader who does not come, holds up whoever sends.
package relay

import (
	"sync"
	"time"

	"loam/link"
	"loam/link/ring"
)

// Machine holds frames. Its methods are called by one goroutine, but for
// Dropped. Time is counted from when the device was made.
type Machine interface {
	// Room is how many frames Push takes now.
	Room() int
	// Push takes f over.
	Push(now time.Duration, f *link.Frame)
	// Pop hands out frames that are due, in order.
	Pop(now time.Duration, fs []*link.Frame) int
	// Next is when Pop has a frame again; ok is false if the machine is empty.
	Next() (at time.Duration, ok bool)
	// Discard frees all that is held.
	Discard()
	// Dropped is how many frames Push has freed. Any goroutine may ask.
	Dropped() uint64
}

// depth is how many frames each ring holds.
const depth = 4 * link.BatchSize

// Device is a device with machines in front.
type Device struct {
	inner  link.Device
	info   link.Info
	start  time.Time
	ends   []*queue
	queues []link.Queue // the same as ends

	done    chan struct{} // closed by Close: every loop ends
	closing sync.Once
	running sync.WaitGroup
	err     error // of closing inner
}

// New wraps d. send and recv make the machine of a direction of queue i, or
// return nil for none.
func New(d link.Device, send, recv func(i int) Machine) *Device {
	r := &Device{inner: d, info: d.Info(), start: time.Now(), done: make(chan struct{})}
	for i, q := range d.Queues() {
		end := newQueue(r, q, send(i), recv(i))
		r.ends = append(r.ends, end)
		r.queues = append(r.queues, end)
	}
	return r
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// Stats implements link.Device. Frames are counted here, on this side of the
// machines; what was lost on the other side is added.
func (d *Device) Stats() link.Stats {
	inner := d.inner.Stats()
	s := link.Stats{RxDropped: inner.RxDropped, RxErrors: inner.RxErrors, TxDropped: inner.TxDropped, TxErrors: inner.TxErrors}
	for _, q := range d.ends {
		s.Add(q.stats())
	}
	return s
}

// Close implements link.Device. Frames that are held are lost.
func (d *Device) Close() error {
	d.closing.Do(func() {
		close(d.done)
		d.err = d.inner.Close()
		for _, q := range d.ends {
			q.close()
		}
	})
	d.running.Wait()
	return d.err
}

// queue is a queue of the device with a line in one direction or both.
type queue struct {
	inner    link.Queue
	info     *link.Info
	counters link.Counters
	out, in  *line // nil: passed on as it is
	arrived  *ring.Ring
}

func newQueue(d *Device, inner link.Queue, send, recv Machine) *queue {
	q := &queue{inner: inner, info: &d.info}
	if send != nil {
		q.out = newLine(d, send, inner, func() {})
		d.running.Go(q.out.loop)
	}
	if recv != nil {
		q.arrived = ring.New(depth)
		q.in = newLine(d, recv, q.arrived, q.arrived.End)
		d.running.Go(q.in.loop)
		d.running.Go(q.read)
	}
	return q
}

// Send implements link.Queue.
func (q *queue) Send(fs []*link.Frame) (int, error) {
	if q.out == nil {
		return link.Transmit(q.info, &q.counters, q.inner, fs)
	}
	return q.out.source.Transmit(q.info, &q.counters, fs)
}

// Recv implements link.Queue.
func (q *queue) Recv(fs []*link.Frame) (int, error) {
	if q.in != nil {
		return q.arrived.Receive(&q.counters, fs)
	}
	n, err := q.inner.Recv(fs)
	bytes := 0
	for _, f := range fs[:n] {
		bytes += f.Len()
	}
	q.counters.Received(n, bytes)
	return n, err
}

// Room implements link.Queue.
func (q *queue) Room() <-chan struct{} {
	if q.out == nil {
		return q.inner.Room()
	}
	return q.out.source.Room()
}

// read carries frames from the device to the line.
func (q *queue) read() {
	source := q.in.source
	defer source.End()
	fs := make([]*link.Frame, link.BatchSize)
	for {
		n, err := q.inner.Recv(fs)
		for sent := 0; sent < n; {
			k, err := source.Send(fs[sent:n])
			sent += k
			if err != nil {
				link.FreeAll(fs[sent:n])
				return
			}
			if sent < n {
				<-source.Room()
			}
		}
		if err != nil {
			return
		}
	}
}

func (q *queue) stats() link.Stats {
	s := q.counters.Stats()
	if q.out != nil {
		s.TxDropped += q.out.machine.Dropped()
	}
	if q.in != nil {
		s.RxDropped += q.in.machine.Dropped()
	}
	return s
}

func (q *queue) close() {
	if q.out != nil {
		q.out.source.Close()
	}
	if q.in != nil {
		q.in.source.Close()
		q.arrived.Close()
	}
}
