package frame

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// CRC-32C is the checksum of SCTP (RFC 9260 section 6.8). Unlike the Internet checksum, it cannot be updated for single
// fields: it depends on all bytes, including those that the caller writes into the payload. So it is computed last,
// over the finished frame.

// crc describes one CRC field. Offsets are in bytes from the start of the frame.
type crc struct {
	at    int
	start int    // start of the covered range, which extends to the end of the packet
	sums  uint32 // bit set of the checksums that cover this field
}

// crcLen is the size of a CRC in bytes.
const crcLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal computes the CRCs of the frame that Next has just written into slot. If the program was compiled with
// Options.Reserve, the caller must call Seal after writing the reserved bytes; otherwise Next calls it. Seal does
// nothing if the template has no CRC.
func (f *Filler) Seal(slot []byte) {
	for i := range f.crcs {
		c := &f.crcs[i]
		if c.start < f.options.Skip {
			continue // the kernel writes this header
		}
		packet := slot[c.start-f.options.Skip : f.end-f.options.Skip]
		field := packet[c.at-c.start:][:crcLen]
		clear(field)
		binary.LittleEndian.PutUint32(field, crc32.Checksum(packet, castagnoli))
		f.cover(slot, c.sums, binary.BigEndian.Uint32(field))
	}
}

// cover adds the value of a CRC to the checksums in set, which cover it. Its field was zero before (RFC 1624, equation
// 3).
func (f *Filler) cover(slot []byte, set, crc uint32) {
	for ; set != 0; set &= set - 1 {
		s := &f.sums[bits.TrailingZeros32(set)]
		if s.at < f.options.Skip {
			continue
		}
		field := slot[s.at-f.options.Skip:]
		c := ^uint16(fold(uint64(^binary.BigEndian.Uint16(field)) + uint64(crc)))
		if c == 0 && s.noZero {
			c = 0xffff
		}
		binary.BigEndian.PutUint16(field, c)
	}
}
