// Package method defines the interfaces for sending and receiving frames on a Linux machine, and implements them in
// many ways, from net.Dial to AF_XDP. The packet engine uses only these interfaces, so it works with every method.
//
// The caller of Sender.Send passes a callback that writes one frame at a time. Each frame is therefore written only
// once, directly into the memory that the kernel or the device reads. Layer says which part of the frame the caller
// writes.
//
// Counters distinguish frames handed over from frames that have left. A method that meets back-pressure waits and
// counts the wait; it never reports unsent frames as sent.
package method

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"loam/link/match"
	"loam/wire"
)

// Layer is the place in a frame where the bytes that a Sender takes begin.
type Layer uint8

// Layers.
const (
	Frame   Layer = iota // starts at the Ethernet header
	Packet               // starts at the IP header; the kernel finds the next hop
	Payload              // starts after the UDP header; the kernel or the stack writes all headers
)

// String returns a readable name.
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

// HeaderLen returns the length, in bytes, of the headers that a Sender of this layer writes itself, for a UDP frame
// without VLAN tags. v6 selects IPv6.
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

// Copying selects how AF_XDP moves frames between its memory and the device.
type Copying uint8

// Copy modes.
const (
	BestCopying Copying = iota // zero copy if the driver supports it
	ForceCopy
	ForceZeroCopy
)

// Config configures a Sender or a Receiver. A method ignores fields that do not apply to it.
type Config struct {
	Interface string // by name
	// Queue is the interface queue, from 0, for methods that bind to one queue (xdp). Other methods use it only as
	// the number of the sender.
	Queue int
	// Queues is the number of tc receivers that share the interface; Queue is the number of this one. Each receives
	// the frames that arrive on its own set of processors. 0 means 1.
	Queues int
	// Source and Destination are the endpoints for methods of the layers Packet and Payload. With a zero Source,
	// the kernel chooses it.
	Source, Destination netip.AddrPort
	// SourceMAC and NextHop are the Ethernet addresses that the method loam writes, since its stack does not
	// resolve them. Zero means the address of the interface for SourceMAC and broadcast for NextHop.
	SourceMAC, NextHop wire.MAC
	// Size is the largest number of bytes that fill writes, without the frame check sequence. Default 1514.
	Size int
	// Batch is the number of frames that the method has room for at a time. It must be at least the largest n
	// passed to Send. Default 64.
	Batch int
	// Match selects the frames that a Receiver delivers; no rule means every frame. Receivers of xdp and tc remove
	// these frames from the kernel's input, receivers of other methods get copies.
	Match []match.Rule
	// Copying is the copy mode of xdp.
	Copying Copying
	// Promiscuous puts the interface into promiscuous mode while the receiver is open.
	Promiscuous bool
	// Qdisc sends through the queueing discipline of the interface. It applies to packet, ring and loam, which
	// bypass it by default.
	Qdisc bool
	// LeaveChecksum makes the senders of packet and ring implement ChecksumLeaver.
	LeaveChecksum bool
	// DeviceTime makes the receivers of packet and ring report the device's own receive time, converted to the
	// system clock (package hwtime). If the device has no time stamps, Listen returns hwtime.ErrNone.
	DeviceTime bool
	// Plain makes the method mmsg send one datagram per message, without runs.
	Plain bool
}

// Defaults of Config.
const (
	DefaultSize  = 1514
	DefaultBatch = 64
)

// WithDefaults returns c with defaults in place of zero fields.
func (c Config) WithDefaults() Config {
	if c.Size == 0 {
		c.Size = DefaultSize
	}
	if c.Batch == 0 {
		c.Batch = DefaultBatch
	}
	return c
}

// Counters are the counters of a Sender since it was opened.
type Counters struct {
	Handed uint64 `json:"handed"` // frames that the kernel, the device or the stack accepted
	Bytes  uint64 `json:"bytes"`  // bytes of the handed frames, as fill wrote them
	// Left counts frames whose sending the kernel has reported as done: by a completion ring, by the status of a
	// ring slot, or by returning from a system call that does the work synchronously.
	Left uint64 `json:"left"`
	// Refused counts frames that the kernel accepted and gave up, or rejected because of their content (EMSGSIZE,
	// EINVAL, a malformed header).
	Refused uint64 `json:"refused"`
	// How often the method had to wait, by reason.
	Busy      uint64 `json:"busy"`       // EAGAIN, EBUSY, or no free slot in a ring
	NoBuffers uint64 `json:"no_buffers"` // ENOBUFS, ENOMEM
	Down      uint64 `json:"down"`       // ENETDOWN, or ENXIO while a device re-establishes its link
	// Kicks counts system calls.
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

// Sender sends frames. It is used by one goroutine, including Close. Only Counters may be called by other
// goroutines, at any time.
type Sender interface {
	Layer() Layer
	// Send calls fill for up to n frames and hands the frames over. fill writes a frame into slot, which has at
	// least Config.Size bytes, and returns the frame's length, or 0 to end the batch early. A slot contains
	// whatever was sent from it before.
	//
	// Send returns the number of frames handed over. It is smaller than the number written only if an error is
	// returned or Counters.Refused has grown. Send waits while the device is busy, for DefaultPatience unless
	// SetPatience changes it, and then returns an error.
	//
	// A ring may hold frames back until it has a whole batch: see Flush.
	Send(n int, fill func(slot []byte) int) (int, error)
	// Flush waits until all frames handed over have left. After timeout it returns ErrTimeout.
	Flush(timeout time.Duration) error
	Counters() Counters
	// Close closes the sender and restores the interface: no XDP program and no promiscuous mode remain.
	Close() error
}

// ChecksumLeaver is a Sender that can let the device compute a checksum.
type ChecksumLeaver interface {
	// LeaveChecksum makes all following frames leave a checksum to the device. The checksum covers the bytes from
	// start to the end of the frame and is stored at start+offset, where the frame contains the sum of the pseudo
	// header. With start 0, frames have complete checksums again. If the device cannot compute it, the kernel does.
	LeaveChecksum(start, offset int)
}

// Patient is a Sender whose waiting time is configurable: how long it waits while no frame can leave, for example
// because the link is down, before it returns an error. The default is DefaultPatience.
type Patient interface {
	// SetPatience sets the waiting time. It may be called at any time, even while Send waits.
	SetPatience(time.Duration)
}

// Repeater is a Sender with a short path for identical frames: they are not written again each time.
type Repeater interface {
	// Repeat hands over the frame n times and waits like Send. Every call on a Sender must pass the same slice with
	// the same content.
	Repeat(frame []byte, n int) (int, error)
}

// Receiver receives frames. It is used by one goroutine, including Close. Only Drops may be called by other
// goroutines, at any time.
type Receiver interface {
	// Receive calls got for each available frame and returns their number. If none is available it waits for the
	// first one, at most timeout; with timeout 0 it does not wait. It returns 0 and no error when the time is over.
	// frame is valid only during the call of got. at is when the kernel received the frame, in nanoseconds since
	// 1970, or 0 if unknown.
	Receive(timeout time.Duration, got func(frame []byte, at int64)) (int, error)
	// Drops returns the number of matching frames that were dropped for lack of room.
	Drops() uint64
	Close() error
}

// Passer is a Receiver that leaves some frames to the kernel because of their form, without checking whether they
// match.
type Passer interface {
	// Passed returns the number of frames left to the kernel. Like Drops, it may be called by any goroutine.
	Passed() uint64
}

// ErrTimeout is returned by Flush if frames have not left in time.
var ErrTimeout = errors.New("method: frames have not left in time")
