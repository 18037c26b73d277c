// Package tcp implements TCP (RFC 9293) as a pure state machine. Conn is one transmission control block. It
// has no clock, lock, goroutine or I/O.
//
// The owner of a Conn, normally a network stack, calls it with the current time and an event: a segment
// arrived, the program wrote or read bytes, or a deadline passed. The owner then asks the Conn what to send
// and when to call again.
//
// Input never sends. It changes state; Poll then returns the segments to send, one at a time, for as long as
// the owner has room. A full device therefore slows the machine down instead of losing segments.
//
// The machine never touches the bytes that a program writes. It names ranges of the outgoing stream (Out.Off,
// Out.Len), and the owner copies those bytes into a frame. Received bytes are written to Incoming at their
// offset in the stream, in or out of order. They are committed once no byte in front of them is missing.
//
// # An owner's loop
//
//	c := tcp.Dial(now, cfg, id, key.ISN(now, id), key.TimestampOffset(id), mss, out, in)
//	for !c.Done() {
//		// wait for a segment, the program, or c.Deadline(), whichever is first
//		c.Receive(now, &seg)       // segments that have arrived
//		c.Written(now)             // the program has written
//		c.Consumed(now)            // the program has read
//		if c.Deadline() <= now {
//			c.Tick(now)
//		}
//		for roomToSend() && c.Poll(now, maxPayload, &o) {
//			send(&o)
//		}
//	}
//
// The owner may report several events before it polls. Acknowledgments are merged, and the segments to send
// follow from all events together. An owner whose device splits large frames (segmentation offload) passes
// the payload size of such a frame to Poll; other owners pass 0.
//
// An Outgoing must keep written bytes until Release. An Incoming must be able to store the whole window that
// was offered. The window grows up to Config.MaxReceiveBuffer as the program reads.
//
// Three cases need no Conn, or not the existing one. ResetFor makes the reply to a segment without a
// connection. CanReuse decides whether a SYN may replace a connection in TIME-WAIT. During a SYN flood, a
// listener replies with Key.CookieSYNACK and keeps no state.
//
// # Not implemented
//
// TCP Fast Open, AccECN, the user timeout option (RFC 5482) and authentication (RFC 5925) are neither
// implemented nor offered to a peer.
package tcp

import (
	"net/netip"
	"time"

	"loam/wire"
)

// Time is the time since an epoch that the owner chose, on a monotonic clock.
type Time = time.Duration

// Never is the deadline of a Conn without a running timer.
const Never = Time(1<<63 - 1)

// ID identifies a connection by its two endpoints, as seen from this end.
type ID struct {
	Local, Remote netip.AddrPort
}

// Outgoing holds the bytes that the program has written and the peer has not acknowledged. Offset 0 is the
// first byte of the stream.
type Outgoing interface {
	// End returns the offset after the last byte that the program has written.
	End() uint64
	// Release reports that the peer has acknowledged every byte before the offset off.
	Release(off uint64)
}

// Incoming holds the bytes that have arrived and that the program has not read.
type Incoming interface {
	// WriteAt stores p at the offset off. This is at or after the committed end of the
	// stream, and off+len(p) never exceeds the offered window.
	WriteAt(p []byte, off uint64)
	// Commit makes every byte before the offset off readable.
	Commit(off uint64)
	// Consumed returns the offset of the first byte that the program has not read.
	Consumed() uint64
}

// Segment is one received segment, or several consecutive ones that a device or the owner has merged. The
// owner has verified checksums and lengths.
type Segment struct {
	wire.TCP
	Payload []byte
	CE      bool // the IP header carries the ECN mark "congestion experienced"
}

// Out is one segment to send, or several of the same kind in one frame. If MSS is below Len, the owner sends
// the frame with a GSO size of MSS.
type Out struct {
	wire.TCP        // ports, numbers, flags, window, options; all fields except the checksum
	Off      uint64 // offset of the payload in the outgoing stream
	Len      int    // length of the payload in bytes
	MSS      int    // payload of each segment in bytes, for a frame that is larger than a segment
	ECT      bool   // the IP packet is marked as ECN-capable (ECT)
}
