package link

import (
	"errors"

	"loam/wire"
)

// BatchSize is the largest number of frames that pass through a channel or a system call at once.
// Measured: a channel operation costs 60 to 250 ns for a single frame, and about 6 ns per frame for
// a batch of 64.
const BatchSize = 64

// ErrClosed is the error that a queue returns after either side has closed its device.
var ErrClosed = errors.New("link: device closed")

// Medium is the kind of header that a frame begins with.
type Medium uint8

// Values of Medium.
const (
	Ethernet Medium = iota // an Ethernet II header
	IP                     // an IP header: point to point, no addresses, no ARP
)

// Offloads is a set of offload features. In the sending direction, the device does this work for
// the stack. In the receiving direction, the device may deliver frames in which the same work is
// not done: a device that can send a frame with an unfinished checksum may also deliver one.
type Offloads uint8

// The offloads, named after those of virtio-net.
const (
	OffloadChecksum Offloads = 1 << iota // the device finishes the checksum that begins at Offload.CsumStart
	OffloadTSO4                          // the device cuts TCP over IPv4 into segments of Offload.GSOSize payload bytes
	OffloadTSO6                          // the device cuts TCP over IPv6 in the same way
	OffloadUSO                           // the device cuts UDP into datagrams of Offload.GSOSize payload bytes
)

// Has reports whether o contains every offload in the set want.
func (o Offloads) Has(want Offloads) bool { return o&want == want }

// Info describes a device. It does not change while the device is open.
type Info struct {
	Name     string // name of the device for messages: "tap0", "pipe"
	Medium   Medium
	MAC      wire.MAC // address of this end; zero if the device has no address or does not know it
	MTU      int      // largest IP packet in bytes; for a GSO frame, of each segment
	Offloads Offloads
}

// Device is a link over which a stack sends and receives frames. Its methods may be called from
// several goroutines.
type Device interface {
	// Info describes the device.
	Info() Info
	// Queues returns the same queues on every call, at least one. Frames of one flow stay in one
	// queue if the device can arrange it.
	Queues() []Queue
	// Stats returns the sums of the counters of all queues.
	Stats() Stats
	// Close releases all resources, makes every Recv return ErrClosed, and closes every Room
	// channel. It may be called more than once.
	Close() error
}

// Queue is one send direction and one receive direction of a device. At most one goroutine calls
// Recv at a time, and at most one calls Send. They may be two different goroutines.
type Queue interface {
	// Recv blocks until at least one frame has arrived and fills fs from the front. fs must not be
	// empty. The caller owns the returned frames and frees them. Every error is final, not only
	// ErrClosed.
	Recv(fs []*Frame) (int, error)
	// Send takes ownership of the first n frames and never blocks. A frame that the device cannot
	// carry (too long, or an offload that the device lacks) is taken, freed, and counted in Stats.
	// n < len(fs) without an error means that there is no room now, and that Room will signal. The
	// caller keeps the frames that were not taken, also after an error. The first of them may have
	// been shortened: if some segments of a GSO frame have been sent, the frame now holds the rest.
	Send(fs []*Frame) (n int, err error)
	// Room returns a channel with a buffer of one. After a Send that did not take all frames, the
	// device sends to it (without blocking) once there is room. The device closes the channel when
	// it is closed. A signal may be stale: call Send again to find out.
	Room() <-chan struct{}
}

// Stats are counters that start at zero when a device is opened.
type Stats struct {
	RxFrames, RxBytes uint64
	TxFrames, TxBytes uint64
	RxDropped         uint64 // frames that arrived but were dropped because there was no room
	RxErrors          uint64 // frames that arrived damaged (bad framing or metadata)
	TxDropped         uint64 // frames taken by Send and then lost: dropped on purpose (shape, fault), or without a reader, or by a full socket
	TxErrors          uint64 // frames taken by Send and rejected: too long, or with an offload that the device lacks
}

// Add adds o to s.
func (s *Stats) Add(o Stats) {
	s.RxFrames += o.RxFrames
	s.RxBytes += o.RxBytes
	s.TxFrames += o.TxFrames
	s.TxBytes += o.TxBytes
	s.RxDropped += o.RxDropped
	s.RxErrors += o.RxErrors
	s.TxDropped += o.TxDropped
	s.TxErrors += o.TxErrors
}
