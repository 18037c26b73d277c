// Package measure tells what became of frames: the sender puts a tag into each
// payload, and the receiver's trackers count from the tags what was lost, doubled
// and put out of order, and how long it took.
//
// Read tag.go, tracker.go, window.go. Everything is pure: times come in as
// nanoseconds.
package measure

import (
	"encoding/binary"

	"loam/wire"
)

// The tag is 18 bytes, which is what a UDP frame of 64 bytes has for payload
// (14 + 20 + 8 + 18, and 4 for the frame check sequence). Big-endian:
//
//	0      magic 0x10a, version 1           2 bytes
//	2      Internet checksum of the tag     2
//	4      stream                           2
//	6      sequence number                  6
//	12     time of sending, nanoseconds     6
//
// 48 bits of sequence last 32 days at 100 million frames a second. 48 bits of
// time go round every 78 hours: a receiver takes the difference to its own clock,
// which is right for anything shorter than 39 hours.
//
// The checksum makes the 16-bit words of the tag add up to 0xffff, which is zero
// in ones' complement. So a tag does not change the checksum of the UDP or TCP
// around it, and that need not be computed again for each frame.

// TagLen is the size of a tag in bytes.
const TagLen = 18

const (
	magic   = 0x10a1
	mask48  = 1<<48 - 1
	signBit = 1 << 47
)

// Tag is what is written into a payload.
type Tag struct {
	Stream   uint16
	Sequence uint64 // 48 bits, from 0
	Sent     int64  // nanoseconds, from any origin; the lower 48 bits are kept
}

// Put writes the tag into the first TagLen bytes of b.
func (t Tag) Put(b []byte) {
	b = b[:TagLen]
	binary.BigEndian.PutUint32(b, magic<<16)
	binary.BigEndian.PutUint16(b[4:], t.Stream)
	put48(b[6:], t.Sequence)
	put48(b[12:], uint64(t.Sent))
	binary.BigEndian.PutUint16(b[2:], ^wire.Sum(b, 0))
}

// ParseTag reads the tag at the front of a payload; ok is false if there is none.
func ParseTag(b []byte) (t Tag, ok bool) {
	if len(b) < TagLen || binary.BigEndian.Uint16(b) != magic || wire.Sum(b[:TagLen], 0) != 0xffff {
		return t, false
	}
	return Tag{binary.BigEndian.Uint16(b[4:]), get48(b[6:]), int64(get48(b[12:]))}, true
}

// Since is how long before now the tag was sent, if that was less than 39 hours;
// it is below zero where the two clocks do not agree.
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
