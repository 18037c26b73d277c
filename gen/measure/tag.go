// Package measure determines what happened to frames on their way from a sender to a receiver. The sender writes a tag
// into each payload. From the tags, the receiver's trackers count lost, duplicated and reordered frames, and measure
// the latency.
//
// Reading order: tag.go, tracker.go, window.go. The package is pure: times are passed in as nanoseconds.
package measure

import (
	"encoding/binary"

	"loam/wire"
)

// A tag has 18 bytes, exactly the payload of a 64-byte UDP frame (14 + 20 + 8 + 18, and 4 for the frame check
// sequence). Its fields are big-endian:
//
//	0      magic 0x10a, version 2           2 bytes
//	2      Internet checksum of the tag     2
//	4      run of the sender                2
//	6      stream                           2
//	8      sequence number                  4
//	12     time of sending, nanoseconds     6
//
// A sender draws a random run number each time it starts. So the frames of two senders, or of two runs of one sender,
// are separate sequences and are not counted as duplicates of each other. Two runs get the same number with a
// probability of 1 in 65536.
//
// The sequence number wraps after 2^32 frames, which takes 43 seconds at 100 million frames per second; the receiver
// extends it to 64 bits (Tracker.extend). The time wraps every 78 hours. The receiver computes the difference to its
// own clock, which is correct up to 39 hours.
//
// The checksum makes the sum of the tag's 16-bit words 0xffff, which is zero in ones' complement. So a tag does not
// change the UDP or TCP checksum that covers it, and that checksum need not be recomputed for each frame.

// TagLen is the size of a tag in bytes.
const TagLen = 18

const (
	magic   = 0x10a2
	mask48  = 1<<48 - 1
	signBit = 1 << 47
)

// Tag is the data that a sender writes into a payload.
type Tag struct {
	Run      uint16 // random number of the sender's run
	Stream   uint16
	Sequence uint32 // number of the frame in its flow; starts at 0 and wraps around
	Sent     int64  // nanoseconds since an arbitrary start; only the lower 48 bits are transmitted
}

// Put writes the tag into the first TagLen bytes of b.
func (t Tag) Put(b []byte) {
	b = b[:TagLen]
	binary.BigEndian.PutUint32(b, magic<<16)
	binary.BigEndian.PutUint16(b[4:], t.Run)
	binary.BigEndian.PutUint16(b[6:], t.Stream)
	binary.BigEndian.PutUint32(b[8:], t.Sequence)
	put48(b[12:], uint64(t.Sent))
	binary.BigEndian.PutUint16(b[2:], ^wire.Sum(b, 0))
}

// ParseTag parses the tag at the start of a payload. ok is false if the payload does not begin with a valid tag.
func ParseTag(b []byte) (t Tag, ok bool) {
	if len(b) < TagLen || binary.BigEndian.Uint16(b) != magic || wire.Sum(b[:TagLen], 0) != 0xffff {
		return t, false
	}
	return Tag{binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:]), binary.BigEndian.Uint32(b[8:]), int64(get48(b[12:]))}, true
}

// Since returns the time from the sending of the tag to the time now, in nanoseconds. The
// result is correct up to 39 hours. It is negative if the sender's clock is ahead.
func (t Tag) Since(now int64) int64 {
	d := (now - t.Sent) & mask48
	if d&signBit != 0 {
		d -= 1 << 48
	}
	return d
}

func put48(b []byte, v uint64) {
	binary.BigEndian.PutUint16(b, uint16(v>>32))
	binary.BigEndian.PutUint32(b[2:], uint32(v))
}

func get48(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}
