// Package method is what a way to send frames from a Linux machine promises, and a
// way to receive them: the contract that the packet engine is written against, so
// that every way, from net.Dial to AF_XDP, can stand behind it.
//
// A method is asked for a batch (Sender.Send) and asks back for each frame: so
// the frame is written once, where the kernel or the device reads it. Which part
// of it the caller writes depends on the method: see Layer.
//
// A method is honest about what left: Counters tells what was handed over apart
// from what has left, and back-pressure is waited for and counted, never taken
// for success.
package method

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"loam/link/match"
	"loam/wire"
)

// Layer says where the bytes begin that a Sender is given.
type Layer uint8

// Layers.
const (
	Frame   Layer = iota // at the Ethernet header
	Packet               // at the IP header: the kernel finds the next hop
	Payload              // behind the UDP header: the kernel or the stack writes all headers
)

// String is the name for people.
func (l Layer) String() string {
	switch l {
	case Frame:
		return "frame"
	case Packet:
		return "packet"
	case Payload:
		return "payload"
	}
	return fmt.Sprintf("layer %d", uint8(l))
}

// HeaderLen is how many bytes of a UDP frame, without tags, stand in front of
// what a Sender of this layer is given. v6 tells the version of IP.
func (l Layer) HeaderLen(v6 bool) int {
	ip := wire.IPv4MinLen
	if v6 {
		ip = ipv6Len
	}
	switch l {
	case Packet:
		return wire.EthernetLen
	case Payload:
		return wire.EthernetLen + ip + wire.UDPLen
	}
	return 0
}

const ipv6Len = 40

// Copying says how AF_XDP moves frames between its memory and the device.
type Copying uint8

// Ways.
const (
	BestCopying Copying = iota // zero copy where the driver gives it
	ForceCopy
	ForceZeroCopy
)

// Config says what to open. A method ignores what it has no use for.
type Config struct {
	Interface string // by name
	// Queue of the interface, from 0, for methods that bind to one (xdp); the others
	// take the number for telling their senders apart.
	Queue int
	// Queues is how many receivers of tc share the interface, of which this is that of
	// Queue: each has the frames that come to its processors. 0 is 1.
	Queues int
	// Source and Destination are what methods of the layers Packet and Payload send
	// from and to. The zero AddrPort of Source lets the kernel choose.
	Source, Destination netip.AddrPort
	// NextHop is the Ethernet address that the method loam writes, whose stack has
	// nobody to ask; it takes SourceMAC for its own. The zero values mean broadcast
	// and the address of the interface.
	SourceMAC, NextHop wire.MAC
	// Size is the longest of what fill writes, in bytes, without the frame check
	// sequence. Default 1514.
	Size int
	// Batch is how many frames the method keeps room for at once, at least the
	// largest n of Send. Default 64.
	Batch int
	// Match is what a Receiver is to hand out; no rule means every frame. Receivers of
	// xdp and tc take these frames away from the kernel, the others get copies.
	Match []match.Rule
	// Copying is for xdp.
	Copying Copying
	// Promiscuous has the interface take frames to any address while the receiver is
	// open.
	Promiscuous bool
	// Qdisc sends through the queueing discipline of the interface, for the methods
	// packet and ring, which go round it otherwise.
	Qdisc bool
	// LeaveChecksum makes the senders of packet and ring a ChecksumLeaver.
	LeaveChecksum bool
	// DeviceTime has the receivers of packet and ring tell when the device saw a frame,
	// by its own clock put into the system's (package hwtime). The error of Listen is
	// hwtime.ErrNone if it has none.
	DeviceTime bool
	// Plain has the method mmsg send one datagram a message.
	Plain bool
}

// Defaults of Config.
const (
	DefaultSize  = 1514
	DefaultBatch = 64
)

// WithDefaults fills in what is zero.
func (c Config) WithDefaults() Config {
	if c.Size == 0 {
		c.Size = DefaultSize
	}
	if c.Batch == 0 {
		c.Batch = DefaultBatch
	}
	return c
}

// Counters are of a Sender since it was opened.
type Counters struct {
	Handed uint64 `json:"handed"` // frames that the kernel, the device or the stack took
	Bytes  uint64 `json:"bytes"`  // in them, as fill wrote them
	// Left are frames whose sending the kernel reported done: by completion ring, by
	// ring status, or by a system call that does the work before it returns.
	Left uint64 `json:"left"`
	// Refused are frames that the kernel took and gave up, or would not take because
	// of what they are (EMSGSIZE, EINVAL, a malformed header).
	Refused uint64 `json:"refused"`
	// Times that the method had to wait, by reason.
	Busy      uint64 `json:"busy"`       // EAGAIN, EBUSY, a ring without a free slot
	NoBuffers uint64 `json:"no_buffers"` // ENOBUFS, ENOMEM
	Down      uint64 `json:"down"`       // ENETDOWN, and ENXIO of a device that relinks
	// Kicks are system calls.
	Kicks uint64 `json:"kicks"`
}

// Add adds o to c.
func (c *Counters) Add(o Counters) {
	c.Handed += o.Handed
	c.Bytes += o.Bytes
	c.Left += o.Left
	c.Refused += o.Refused
	c.Busy += o.Busy
	c.NoBuffers += o.NoBuffers
	c.Down += o.Down
	c.Kicks += o.Kicks
}

// Sender sends frames. It is used by one goroutine, Close included; Counters may
// be called by another at any time.
type Sender interface {
	Layer() Layer
	// Send asks fill for up to n frames, each written into a slot of at least
	// Config.Size bytes, and hands them over. The slot holds whatever was sent from
	// it before. fill returns the length, or 0 for no more. Send returns how many
	// frames were handed over, which is fewer than fill wrote only with an error or
	// where Counters.Refused says so. Back-pressure is waited for, up to a bound of
	// a second: then it is the error.
	//
	// A ring may keep back what it was handed until it has a batch: see Flush.
	Send(n int, fill func(slot []byte) int) (int, error)
	// Flush waits until all that was handed over has left, at most timeout: then the
	// error is ErrTimeout.
	Flush(timeout time.Duration) error
	Counters() Counters
	// Close leaves the interface as it was: no XDP program, no promiscuous mode.
	Close() error
}

// ChecksumLeaver is a Sender that has the device compute a checksum.
type ChecksumLeaver interface {
	// LeaveChecksum says that frames from now on have a checksum left out: it counts from
	// start to the end of the frame, and goes to start+offset, where the sum of the
	// pseudo header stands. start 0: they have not. A device that cannot has the kernel
	// do it.
	LeaveChecksum(start, offset int)
}

// Repeater is a Sender with a shorter way for frames that do not change: they are not
// written anew each time.
type Repeater interface {
	// Repeat hands over a frame n times, waiting as Send does. It is the same frame, at
	// the same place, each time that a Sender is called so.
	Repeat(frame []byte, n int) (int, error)
}

// Receiver receives frames. It is used by one goroutine, Close included; Drops
// may be called by another at any time.
type Receiver interface {
	// Receive hands the frames that are there to got, and waits for the first up to
	// timeout; 0 means not at all. frame is valid during the call only; at is when
	// the kernel saw it, in nanoseconds since 1970, 0 where it does not say. It
	// returns how many there were; none and no error means that the time is over.
	Receive(timeout time.Duration, got func(frame []byte, at int64)) (int, error)
	// Drops are frames that matched and found no room.
	Drops() uint64
	Close() error
}

// Passer is a Receiver that leaves some frames to the kernel because of how they come,
// and does not know whether they match.
type Passer interface {
	// Passed is how many. It may be called as Drops may.
	Passed() uint64
}

// ErrTimeout is what Flush returns when frames have not left in time.
var ErrTimeout = errors.New("method: frames have not left in time")
