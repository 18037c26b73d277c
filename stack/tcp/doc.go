// Package tcp is TCP by RFC 9293 as a pure machine: Conn is one transmission
// control block. It has no clock, lock, goroutine or I/O. Whoever owns a Conn
// calls it with the time and an event (a segment, bytes written or read by the
// program, a deadline that has passed), then asks it what there is to send, and
// when to come back.
//
// Input never sends. It changes state; Poll then says what to send, segment by
// segment, for as long as the owner has room for it. So a full device slows the
// machine down instead of losing its segments.
//
// The machine never touches the bytes that a program writes: it names ranges of
// the outgoing stream (Out.Off, Out.Len), and the owner copies them into a
// frame. Bytes that arrive are handed to Incoming at their place in the stream,
// in or out of order, and committed when nothing is missing in front of them.
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
// Several events may come before the polling: acknowledgments are merged, and
// what is sent follows from all of them. An owner whose device cuts large frames
// passes the size of such a frame to Poll, any other 0. An Outgoing must keep what
// is written until Release; an Incoming must be able to take all of the window
// that was offered, which grows up to Config.MaxReceiveBuffer as the program
// reads.
//
// Segments without a connection are answered by ResetFor; a SYN in TIME-WAIT is
// first shown to CanReuse; a listener under a flood answers by Key.CookieSYNACK
// and keeps nothing.
//
// # What is not there
//
// TCP Fast Open, AccECN, the user timeout option (RFC 5482), authentication (RFC
// 5925) and pacing are not implemented, nor offered to a peer.
package tcp

import (
	"net/netip"
	"time"

	"loam/wire"
)

// Time is the time since an epoch that the owner chose, on a monotonic clock.
type Time = time.Duration

// Never is the deadline of a machine that waits for nothing.
const Never = Time(1<<63 - 1)

// ID names a connection from this end.
type ID struct {
	Local, Remote netip.AddrPort
}

// Outgoing holds the bytes that the program has written and that the peer has
// not acknowledged yet. Offset 0 is the first byte of the stream.
type Outgoing interface {
	// End is the offset behind the last byte written.
	End() uint64
	// Release is called when everything in front of off is acknowledged.
	Release(off uint64)
}

// Incoming holds the bytes that arrived and that the program has not read yet.
type Incoming interface {
	// WriteAt stores p at offset off, which lies at or behind what has been
	// committed, and off+len(p) never beyond the window that was offered.
	WriteAt(p []byte, off uint64)
	// Commit makes everything in front of off readable.
	Commit(off uint64)
	// Consumed is the offset of the first byte that the program has not read.
	Consumed() uint64
}

// Segment is one segment that arrived, or several in order that a device or the
// owner has put together; checksums are verified, lengths checked.
type Segment struct {
	wire.TCP
	Payload []byte
	CE      bool // the IP header carries the ECN mark "congestion experienced"
}

// Out is one segment to send, or several of the same kind in one frame: if
// MSS is below Len, the frame carries a GSO size of MSS.
type Out struct {
	wire.TCP        // ports, numbers, flags, window, options; all but the checksum
	Off      uint64 // payload: where in the outgoing stream
	Len      int    // payload: how many bytes
	MSS      int    // bytes of payload in each segment of a larger frame
	ECT      bool   // to be sent ECN-capable
}
