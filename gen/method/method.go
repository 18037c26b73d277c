// Package method defines interfaces for sending and receiving frames on a Linux machine, and implements them by many
// methods, from net.Dial to AF_XDP. The packet engine uses only these interfaces, so it works with every method.
//
// The caller of Sender.Send passes a callback that writes one frame at a time. So each frame is written only once,
// directly into the memory that the kernel or the device reads. Layer determines which part of the frame the callback
// writes.
//
// Counters distinguish frames that were passed to the kernel or device from frames that have been sent. If the kernel
// or device accepts no more frames, a method waits and counts the wait. It never counts unsent frames as sent.
package method

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"loam/link/match"
	"loam/wire"
)

// Layer determines where in a frame the bytes begin that a Sender's callback writes.
type Layer uint8

// Values of Layer.
const (
	Frame   Layer = iota // the bytes begin at the Ethernet header
	Packet               // the bytes begin at the IP header; the kernel finds the next hop
	Payload              // the bytes begin after the UDP header; the kernel or the stack writes all headers
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

// HeaderLen returns the size, in bytes, of the headers before the bytes that the callback writes, for a UDP frame
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

// Values of Copying: whether AF_XDP copies frames.
const (
	BestCopying Copying = iota // zero copy if the driver supports it
	ForceCopy
	ForceZeroCopy
)

// Config configures a Sender or a Receiver. A method ignores fields that do not apply to it.
type Config struct {
	Interface string // name of the interface
	// Queue is the number of the interface queue, from 0, for methods that bind to one queue (xdp). Other methods use
	// it only to number senders.
	Queue int
	// Queues is the number of tc receivers that share the interface, and Queue the number of this receiver. Each
	// receives the frames that arrive on its own share of the processors. 0 means 1.
	Queues int
	// Source and Destination are the endpoints, for methods of the layers Packet and Payload. If Source is zero, the
	// kernel chooses it.
	Source, Destination netip.AddrPort
	// SourceMAC and NextHop are the Ethernet addresses in the frames of the method loam, whose stack does not resolve
	// addresses. Zero means the address of the interface for SourceMAC, and broadcast for NextHop.
	SourceMAC, NextHop wire.MAC
	// Size is the maximum number of bytes that fill writes, without the frame check sequence. Default 1514.
	Size int
	// Batch is the number of frames for which the method has buffers. It must be at least the largest n that is passed
	// to Send. Default 64.
	Batch int
	// Match selects the frames that a Receiver delivers; no rule means every frame. The methods xdp and tc take these
	// frames away from the kernel; receivers of other methods get copies.
	Match []match.Rule
	// Copying is the copy mode of xdp.
	Copying Copying
	// Promiscuous puts the interface into promiscuous mode while the receiver is open.
	Promiscuous bool
	// Qdisc sends frames through the queueing discipline of the interface. It applies to packet, ring and loam, which
	// bypass the queueing discipline by default.
	Qdisc bool
	// LeaveChecksum makes the senders of packet and ring implement ChecksumLeaver.
	LeaveChecksum bool
	// DeviceTime makes the receivers of packet and ring report the time at which the device received a frame, converted
	// to the system clock (package hwtime). If the device cannot time stamp frames, Listen returns hwtime.ErrNone.
	DeviceTime bool
	// Plain makes the method mmsg send one datagram per message, not several that the kernel segments.
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

// Counters counts events of a Sender since it was opened.
type Counters struct {
	Handed uint64 `json:"handed"` // frames that the kernel, the device or the stack accepted
	Bytes  uint64 `json:"bytes"`  // bytes of the Handed frames, as fill wrote them
	// Left counts frames that have been sent according to the kernel: it has reported so by a completion ring or by the
	// status of a ring slot, or it has returned from a system call that sends synchronously.
	Left uint64 `json:"left"`
	// Refused counts frames that the kernel accepted but did not send, or that it rejected because of their content
	// (EMSGSIZE, EINVAL, a malformed header).
	Refused uint64 `json:"refused"`
	// Number of times that the method had to wait, by reason.
	Busy      uint64 `json:"busy"`       // waits because of EAGAIN, EBUSY, or no free slot in a ring
	NoBuffers uint64 `json:"no_buffers"` // waits because of ENOBUFS or ENOMEM
	Down      uint64 `json:"down"`       // waits because of ENETDOWN, or of ENXIO while a device re-establishes its link
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

// Sender sends frames. Only one goroutine may use it, including Close. The exception is Counters, which any goroutine
// may call at any time.
type Sender interface {
	Layer() Layer
	// Send calls fill for up to n frames and passes the frames to the kernel or device. fill writes a frame into slot,
	// which has at least Config.Size bytes, and returns the frame's length, or 0 to end the batch early. A slot may
	// still contain a frame that was sent before.
	//
	// Send returns the number of frames that were accepted. It is smaller than the number of frames written only if
	// Send returns an error or has increased Counters.Refused. While the device is busy, Send waits, for
	// DefaultPatience unless SetPatience has changed that; then it returns an error.
	//
	// A method with a ring may delay frames until a batch is complete: see Flush.
	Send(n int, fill func(slot []byte) int) (int, error)
	// Flush waits until all accepted frames have been sent. After timeout it returns ErrTimeout.
	Flush(timeout time.Duration) error
	Counters() Counters
	// Close closes the sender and restores the interface: no XDP program and no promiscuous mode remain.
	Close() error
}

// ChecksumLeaver is a Sender that can let the device compute a checksum.
type ChecksumLeaver interface {
	// LeaveChecksum makes the device compute a checksum of all following frames. The checksum covers the bytes from
	// start to the end of the frame. It is stored at start+offset, where the frame contains the sum of the pseudo
	// header. If start is 0, the following frames contain complete checksums again. If the device cannot compute
	// checksums, the kernel does.
	LeaveChecksum(start, offset int)
}

// Patient is a Sender whose patience can be set. The patience is the time that it waits while no frame can be sent, for
// example because the link is down, before it returns an error. The default is DefaultPatience.
type Patient interface {
	// SetPatience sets the waiting time. It may be called at any time, even while Send waits.
	SetPatience(time.Duration)
}

// Repeater is a Sender with a fast path for identical frames: they are not written again for each call.
type Repeater interface {
	// Repeat sends the frame n times, and waits as Send does. Every call on a Sender must pass the same slice with the
	// same content.
	Repeat(frame []byte, n int) (int, error)
}

// Receiver receives frames. Only one goroutine may use it, including Close. The exception is Drops, which any goroutine
// may call at any time.
type Receiver interface {
	// Receive calls got for each available frame and returns the number of calls. If no frame is available, it waits
	// for the first one, at most for timeout; with timeout 0 it does not wait. After the timeout it returns 0 and no
	// error. frame is valid only during the call of got. at is the time at which the kernel received the frame, in
	// nanoseconds since 1970, or 0 if it is unknown.
	Receive(timeout time.Duration, got func(frame []byte, at int64)) (int, error)
	// Drops returns the number of matching frames that were dropped because a buffer was full.
	Drops() uint64
	Close() error
}

// Passer is a Receiver that leaves some frames to the kernel because of their format, without checking whether they
// match.
type Passer interface {
	// Passed returns the number of frames left to the kernel. Like Drops, it may be called by any goroutine.
	Passed() uint64
}

// ErrTimeout is returned by Flush if some frames were not sent before the timeout.
var ErrTimeout = errors.New("method: frames have not left in time")
