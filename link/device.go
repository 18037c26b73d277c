package link

import (
	"errors"

	"loam/wire"
)

// BatchSize is how many frames go through a channel or a system call at once.
// Measured: a channel hop costs 60 to 250 ns for one frame and about 6 ns a
// frame for 64 of them.
const BatchSize = 64

// ErrClosed is what a queue returns when its device has been closed, by either
// side.
var ErrClosed = errors.New("link: device closed")

// Medium says what a frame begins with.
type Medium uint8

// Media.
const (
	Ethernet Medium = iota // an Ethernet II header
	IP                     // an IP header: point to point, no addresses, no ARP
)

// Offloads is the set of things that a device does for the stack, in its
// sending direction, and of the things it may leave undone in frames that it
// receives (the same letters: a device that can send a frame with an unfinished
// checksum may also deliver one).
type Offloads uint8

// Offloads, in the terms of virtio-net.
const (
	OffloadChecksum Offloads = 1 << iota // finishes the checksum that Offload.CsumStart names
	OffloadTSO4                          // cuts TCP over IPv4 into segments of GSOSize
	OffloadTSO6                          // the same over IPv6
	OffloadUSO                           // cuts UDP into datagrams of GSOSize
)

// Has reports whether all of want is offered.
func (o Offloads) Has(want Offloads) bool { return o&want == want }

// Info describes a device. It does not change while the device is open.
type Info struct {
	Name     string // for people: "tap0", "pipe"
	Medium   Medium
	MAC      wire.MAC // of this end; zero where the device does not know or has none
	MTU      int      // largest IP packet in bytes, one segment of a larger GSO frame included
	Offloads Offloads
}

// Device is a link: where frames leave the stack and come in. Its methods may
// be called from several goroutines.
type Device interface {
	// Info describes the device.
	Info() Info
	// Queues returns the same queues every time, at least one. Frames of one
	// flow stay in one queue when the device can arrange it.
	Queues() []Queue
	// Stats adds up all queues.
	Stats() Stats
	// Close releases everything, wakes every Recv with ErrClosed and closes
	// every Room. It may be called more than once.
	Close() error
}

// Queue is one pair of directions of a device. At most one goroutine calls Recv
// and at most one calls Send at a time; these may be different ones.
type Queue interface {
	// Recv blocks until at least one frame is there and fills fs, which is not
	// empty, from the front. The caller owns these frames and frees them. An
	// error other than ErrClosed is final too.
	Recv(fs []*Frame) (int, error)
	// Send takes ownership of the first n frames and never blocks. A frame that
	// the device cannot carry (too long, an offload that it does not have) is
	// taken, freed and counted in Stats. n < len(fs) without an error means
	// there is no room now: Room will ring. Frames that were not taken stay the
	// caller's, after an error too. The first of them may have been shortened: a
	// GSO frame of which some segments have gone is then one of the rest.
	Send(fs []*Frame) (n int, err error)
	// Room has one place. The device sends (without blocking) after a Send that
	// came up short, once there is room; it closes the channel with the device.
	// A ring may be stale: Send again and see.
	Room() <-chan struct{}
}

// Stats are counters since the device was opened.
type Stats struct {
	RxFrames, RxBytes uint64
	TxFrames, TxBytes uint64
	RxDropped         uint64 // arrived, and there was no room for it
	RxErrors          uint64 // arrived damaged (framing, metadata)
	TxDropped         uint64 // taken by Send and lost on purpose or for want of a reader (shape, fault, a full socket)
	TxErrors          uint64 // refused: too long, or an offload that the device lacks
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
