// Package loop is a device that receives the frames it sends: the loopback interface of a stack.
// Its MTU is large, and it offers all offloads: nothing on the path can damage or reject a frame,
// so checksums are not computed and segments are not cut.
package loop

import (
	"loam/link"
	"loam/link/ring"
)

// Config describes the device. The zero value is suitable for a stack.
type Config struct {
	Name   string // name of the device; default "lo"
	MTU    int    // in bytes; default and maximum 65536, as on Linux
	Queues int    // number of queues; default 1; queue i receives what queue i sends
	Depth  int    // capacity of a queue in frames, default 256
}

// MaxMTU is the largest MTU in bytes. An IPv6 packet can be up to 39 bytes longer. An IPv4 packet
// is at most 65535 bytes.
const MaxMTU = 65536

// Device is a loopback device.
type Device struct {
	info   link.Info
	ends   []*queue
	queues []link.Queue // the elements of ends, as interfaces
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

// Count counts frames that the owner of the device has delivered without it.
func (d *Device) Count(frames, bytes int) {
	d.ends[0].counters.Sent(frames, bytes)
	d.ends[0].counters.Received(frames, bytes)
}

// Close implements link.Device. Frames that have not been received are freed.
func (d *Device) Close() error {
	for _, q := range d.ends {
		q.ring.Close()
	}
	return nil
}

// queue is a ring whose two ends belong to the same device.
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
