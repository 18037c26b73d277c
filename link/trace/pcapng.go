package trace

import (
	"encoding/binary"
	"time"

	"loam/link"
)

// The part of the pcapng format (draft-ietf-opsawg-pcapng) that a trace needs. All numbers are
// little-endian. A block consists of its type, its length, a body padded to 32 bits, and its length
// again. An option consists of a code, a length and a value, padded to 32 bits.

// Block types (draft-ietf-opsawg-pcapng section 4).
const (
	blockInterface = 1
	blockPacket    = 6 // enhanced packet block
	blockSection   = 0x0a0d0d0a
)

// Option codes. optEnd applies to all blocks, each other code to one type of block.
const (
	optEnd        = 0
	optUserAppl   = 4 // option of a section: the program that wrote the file
	optName       = 2 // option of an interface
	optResolution = 9 // option of an interface: the unit of time stamps is 10^-n seconds
	optFlags      = 2 // option of a packet
	optQueue      = 6 // option of a packet
)

// Values of fields and options.
const (
	byteOrder    = 0x1a2b3c4d
	linkEthernet = 1   // LINKTYPE_ETHERNET
	linkRaw      = 101 // LINKTYPE_RAW: an IP packet
	snapLen      = 1 << 18
	nanoseconds  = 9
	flagInbound  = 1
	flagOutbound = 2
)

type block struct {
	b     []byte
	start int
}

// begin starts a block at the end of b.
func begin(b []byte, kind uint32) block {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, kind)
	return block{b: append(b, 0, 0, 0, 0), start: start}
}

func (k *block) put16(v uint16) { k.b = binary.LittleEndian.AppendUint16(k.b, v) }
func (k *block) put32(v uint32) { k.b = binary.LittleEndian.AppendUint32(k.b, v) }

func (k *block) putBytes(v []byte) {
	k.b = append(k.b, v...)
	for n := len(v); n%4 != 0; n++ {
		k.b = append(k.b, 0)
	}
}

func (k *block) option(code uint16, value []byte) {
	k.put16(code)
	k.put16(uint16(len(value)))
	k.putBytes(value)
}

func (k *block) option32(code uint16, value uint32) {
	k.put16(code)
	k.put16(4)
	k.put32(value)
}

// end finishes the block and returns the whole buffer.
func (k *block) end() []byte {
	n := uint32(len(k.b) - k.start + 4)
	binary.LittleEndian.PutUint32(k.b[k.start+4:], n)
	k.put32(n)
	return k.b
}

// appendHeader appends the beginning of a file: a section block and one interface block.
func appendHeader(b []byte, info link.Info) []byte {
	k := begin(b, blockSection)
	k.put32(byteOrder)
	k.put16(1) // version 1.0
	k.put16(0)
	k.put32(^uint32(0)) // the length of the section is unknown
	k.put32(^uint32(0))
	k.option(optUserAppl, []byte("Loam"))
	k.option(optEnd, nil)
	b = k.end()

	k = begin(b, blockInterface)
	kind := uint16(linkEthernet)
	if info.Medium == link.IP {
		kind = linkRaw
	}
	k.put16(kind)
	k.put16(0)
	k.put32(snapLen)
	k.option(optName, []byte(info.Name))
	k.option(optResolution, []byte{nanoseconds})
	k.option(optEnd, nil)
	return k.end()
}

// appendPacket appends one frame unchanged: a GSO frame is one long packet, and an unfinished
// checksum appears wrong.
func appendPacket(b []byte, at time.Time, direction uint32, queue int, frame []byte) []byte {
	k := begin(b, blockPacket)
	stamp := uint64(at.UnixNano())
	k.put32(0) // number of the only interface
	k.put32(uint32(stamp >> 32))
	k.put32(uint32(stamp))
	k.put32(uint32(len(frame)))
	k.put32(uint32(len(frame)))
	k.putBytes(frame)
	k.option32(optFlags, direction)
	k.option32(optQueue, uint32(queue))
	k.option(optEnd, nil)
	return k.end()
}
