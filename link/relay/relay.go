// Package relay runs a Machine in each direction of each queue of a device. It is the common part of the devices that
// delay frames (fault, shape). A Machine decides what happens to each frame, and has no goroutines or clocks; the
// goroutines, rings and timers are here.
//
//	Send -> ring -> loop (machine) -> the device's Send
//	Recv <- ring <- loop (machine) <- ring <- reader <- the device's Recv
//
// One goroutine, the loop, owns each machine. A direction without a machine is passed through
// unchanged. Rings are bounded, and a machine reports how many frames it accepts. So a full device,
// or a missing reader, blocks the sender.
package relay

import (
	"sync"
	"time"

	"loam/link"
	"loam/link/ring"
)

// Machine holds frames for a time. Only the loop calls its methods, except for Dropped. Times are
// relative to the creation of the device.
type Machine interface {
	// Room returns the number of frames that Push accepts now.
	Room() int
	// Push takes ownership of f.
	Push(now time.Duration, f *link.Frame)
	// Pop fills fs with the frames that are due, in order, and returns their number. The caller
	// owns them.
	Pop(now time.Duration, fs []*link.Frame) int
	// Next returns the time when Pop has a frame again. ok is false if the machine is empty.
	Next() (at time.Duration, ok bool)
	// Discard frees all frames in the machine.
	Discard()
	// Dropped returns the number of frames that Push has freed. Any goroutine may call it.
	Dropped() uint64
}

// depth is the capacity of each ring in frames.
const depth = 4 * link.BatchSize

// Device is a device whose frames pass through machines.
type Device struct {
	inner  link.Device
	info   link.Info
	start  time.Time
	ends   []*queue
	queues []link.Queue // the elements of ends, as interfaces

	done    chan struct{} // closed by Close, which ends every loop
	closing sync.Once
	running sync.WaitGroup
	err     error // the error of closing inner
}

// New wraps d. The functions send and recv return the machine for one direction of queue
// i, or nil for no machine. Closing the returned device also closes d.
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

// Stats implements link.Device. Frames are counted on this side of the machines. Losses of the
// wrapped device are added.
func (d *Device) Stats() link.Stats {
	inner := d.inner.Stats()
	s := link.Stats{RxDropped: inner.RxDropped, RxErrors: inner.RxErrors, TxDropped: inner.TxDropped, TxErrors: inner.TxErrors}
	for _, q := range d.ends {
		s.Add(q.stats())
	}
	return s
}

// Close implements link.Device. Frames that a Machine still holds are lost.
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

// queue is a queue of the device, with a line in one direction or both.
type queue struct {
	inner    link.Queue
	info     *link.Info
	counters link.Counters
	out, in  *line // delay lines for sent and received frames; nil: there is no Machine, and frames are passed through
	arrived  *ring.Ring
}

// newQueue returns a queue over inner, and starts the goroutines of its lines. send and recv may be
// nil.
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

// read moves frames from the wrapped device to the line of received frames. It runs on a goroutine
// of its own.
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
