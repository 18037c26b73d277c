// Package loop is a device whose frames come back to itself: the loopback
// interface of a stack. Its MTU is large and it leaves checksums and segments
// undone, since nothing on the way could damage or refuse a frame: a checksum
// that nobody computes costs nothing.
package loop

import (
	"loam/link"
	"loam/link/ring"
)

// Config describes the device. The zero value is what a stack wants.
type Config struct {
	Name   string // default "lo"
	MTU    int    // default and at most 65536, as on Linux
	Queues int    // default 1: what queue i sends queue i receives
	Depth  int    // frames that a queue holds, default 256
}

// MaxMTU is the largest MTU in bytes. An IPv6 packet may be 40 bytes longer than
// that, an IPv4 packet is at most a byte shorter.
const MaxMTU = 65536

// Device is a loopback.
type Device struct {
	info   link.Info
	ends   []*queue
	queues []link.Queue // the same as ends
}

// New returns a loopback device. Its medium is IP: packets without a link-layer
// header.
func New(c Config) *Device {
	if c.Name == "" {
		c.Name = "lo"
	}
	if c.MTU <= 0 || c.MTU > MaxMTU {
		c.MTU = MaxMTU
	}
	if c.Depth <= 0 {
		c.Depth = 256
	}
	d := &Device{info: link.Info{
		Name: c.Name, Medium: link.IP, MTU: c.MTU,
		Offloads: link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6 | link.OffloadUSO,
	}}
	for range max(c.Queues, 1) {
		q := &queue{info: &d.info, ring: ring.New(c.Depth)}
		d.ends = append(d.ends, q)
		d.queues = append(d.queues, q)
	}
	return d
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

// Close implements link.Device. Frames that have not been received are freed.
func (d *Device) Close() error {
	for _, q := range d.ends {
		q.ring.Close()
	}
	return nil
}

// queue is a ring whose ends belong to the same device.
type queue struct {
	info     *link.Info
	ring     *ring.Ring
	counters link.Counters
}

// Recv implements link.Queue.
func (q *queue) Recv(fs []*link.Frame) (int, error) { return q.ring.Receive(&q.counters, fs) }

// Send implements link.Queue.
func (q *queue) Send(fs []*link.Frame) (int, error) {
	return q.ring.Transmit(q.info, &q.counters, fs)
}

// Room implements link.Queue.
func (q *queue) Room() <-chan struct{} { return q.ring.Room() }
