// Package pipe connects two devices in one process: each receives what the other sends. Tests and
// examples use it, and so do two stacks that share a process.
//
// Frames are handed over, not copied. A Send moves pointers and wakes the goroutine in the Recv of
// the other end, if it is parked. If a queue is full, Send does not take all frames, so a pipe
// loses nothing.
//
// Offload metadata is passed unchanged, as on a Linux veth. With OffloadTSO4, a frame of 64 kB
// arrives as one frame of 64 kB. With OffloadChecksum, no checksum is computed at all. For frames
// as on a real wire, leave Config.Offloads empty.
package pipe

import (
	"loam/link"
	"loam/link/ring"
	"loam/wire"
)

// Config describes both ends. The zero value is an Ethernet pipe of MTU 1500
// with one queue and no offloads.
type Config struct {
	Name     string      // name of the pipe; default "pipe"; the ends append ".a" and ".b"
	Medium   link.Medium // Ethernet by default
	MTU      int         // in bytes; default 1500; at most MaxMTU
	MACs     [2]wire.MAC // addresses of the two ends, a and b; default 02:00:00:00:00:0a and 02:00:00:00:00:0b
	Offloads link.Offloads
	Queues   int // number of queues; default 1; queue i of end a is connected to queue i of end b
	Depth    int // capacity in frames of each direction of each queue, default 256
}

// MaxMTU is the largest MTU of a pipe in bytes.
const MaxMTU = 65535

// AllOffloads is the set of all offloads. A pipe inside one process can offer them at no cost.
const AllOffloads = link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6 | link.OffloadUSO

func (c *Config) setDefaults() {
	if c.Name == "" {
		c.Name = "pipe"
	}
	if c.MTU == 0 {
		c.MTU = 1500
	}
	c.MTU = min(c.MTU, MaxMTU)
	if c.MACs == [2]wire.MAC{} && c.Medium == link.Ethernet {
		c.MACs = [2]wire.MAC{{2, 0, 0, 0, 0, 0xa}, {2, 0, 0, 0, 0, 0xb}}
	}
	c.Queues = max(c.Queues, 1)
	if c.Depth <= 0 {
		c.Depth = 256
	}
}

// Device is one end of a pipe.
type Device struct {
	info   link.Info
	ends   []*queue
	queues []link.Queue // the elements of ends, as interfaces
}

// New returns two devices that are connected to each other.
func New(c Config) (a, b *Device) {
	c.setDefaults()
	info := link.Info{Name: c.Name + ".a", Medium: c.Medium, MAC: c.MACs[0], MTU: c.MTU, Offloads: c.Offloads}
	a = &Device{info: info}
	info.Name, info.MAC = c.Name+".b", c.MACs[1]
	b = &Device{info: info}
	for range c.Queues {
		ab, ba := ring.New(c.Depth), ring.New(c.Depth)
		a.add(ab, ba)
		b.add(ba, ab)
	}
	return a, b
}

func (d *Device) add(out, in *ring.Ring) {
	q := &queue{info: &d.info, out: out, in: in}
	d.ends = append(d.ends, q)
	d.queues = append(d.queues, q)
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// Stats implements link.Device.
func (d *Device) Stats() (s link.Stats) {
	for _, q := range d.ends {
		s.Add(q.counters.Stats())
	}
	return s
}

// Close closes this end and frees the frames that wait to be received here. The other end still
// receives the frames already sent to it, and then link.ErrClosed. Its Send returns link.ErrClosed,
// and its Room channels are closed.
func (d *Device) Close() error {
	for _, q := range d.ends {
		q.out.End()
		q.in.Close()
	}
	return nil
}

// queue is one end of two rings.
type queue struct {
	info     *link.Info
	out, in  *ring.Ring
	counters link.Counters
}

// Recv implements link.Queue.
func (q *queue) Recv(fs []*link.Frame) (int, error) { return q.in.Receive(&q.counters, fs) }

// Send implements link.Queue.
func (q *queue) Send(fs []*link.Frame) (int, error) {
	return q.out.Transmit(q.info, &q.counters, fs)
}

// Room implements link.Queue.
func (q *queue) Room() <-chan struct{} { return q.out.Room() }
