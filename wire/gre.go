package wire

import "encoding/binary"

// Generic Routing Encapsulation, GRE (RFC 2784), with key and sequence number (RFC 2890).

// GREMinLen is the size of a header without optional fields in bytes. Each optional field adds four bytes.
const GREMinLen = 4

const (
	greChecksum = 1 << 15 // flag C: the checksum field is present
	greKey      = 1 << 13 // flag K: the key field is present
	greSequence = 1 << 12 // flag S: the sequence number field is present
	greRefused  = 1<<14 | 1<<11 | 1<<10
	greVersion  = 7
)

// GRE is a GRE header.
type GRE struct {
	Type        EtherType // type of the payload
	HasChecksum bool
	HasKey      bool
	HasSequence bool
	Key         uint32
	Sequence    uint32
}

// ParseGRE parses a header. It returns an error for another version, and for bits that are used only by RFC 1701
// (routing, and the rest of bits 1 to 5), as RFC 2784 section 2.3 requires. It ignores bits 6 to 12; Put sets them to
// zero.
func ParseGRE(b []byte) (h GRE, payload []byte, err error) {
	if len(b) < GREMinLen {
		return h, nil, ErrShort
	}
	flags := binary.BigEndian.Uint16(b)
	if flags&greVersion != 0 {
		return h, nil, ErrVersion
	}
	if flags&greRefused != 0 {
		return h, nil, ErrField
	}
	h = GRE{
		Type:        EtherType(binary.BigEndian.Uint16(b[2:])),
		HasChecksum: flags&greChecksum != 0,
		HasKey:      flags&greKey != 0,
		HasSequence: flags&greSequence != 0,
	}
	if len(b) < h.Len() {
		return h, nil, ErrShort
	}
	at := GREMinLen
	if h.HasChecksum {
		at += 4
	}
	if h.HasKey {
		h.Key = binary.BigEndian.Uint32(b[at:])
		at += 4
	}
	if h.HasSequence {
		h.Sequence = binary.BigEndian.Uint32(b[at:])
		at += 4
	}
	return h, b[at:], nil
}

// GREChecksumOK verifies the checksum of b, which is header and payload and which ParseGRE has accepted. A packet
// without a checksum is valid.
func GREChecksumOK(b []byte) bool { return b[0]&0x80 == 0 || Sum(b, 0) == 0xffff }

// Len returns the size of the header with its options.
func (h *GRE) Len() int {
	n := GREMinLen
	for _, has := range [...]bool{h.HasChecksum, h.HasKey, h.HasSequence} {
		if has {
			n += 4
		}
	}
	return n
}

// Put writes the header into the first Len bytes of b, with a zero checksum if HasChecksum is set.
func (h *GRE) Put(b []byte) {
	_ = b[h.Len()-1]
	var flags uint16
	at := GREMinLen
	if h.HasChecksum {
		flags |= greChecksum
		binary.BigEndian.PutUint32(b[at:], 0)
		at += 4
	}
	if h.HasKey {
		flags |= greKey
		binary.BigEndian.PutUint32(b[at:], h.Key)
		at += 4
	}
	if h.HasSequence {
		flags |= greSequence
		binary.BigEndian.PutUint32(b[at:], h.Sequence)
	}
	binary.BigEndian.PutUint16(b, flags)
	binary.BigEndian.PutUint16(b[2:], uint16(h.Type))
}

// PutGREChecksum sets the checksum of b, which is header and payload. The header must have a checksum field.
func PutGREChecksum(b []byte) {
	binary.BigEndian.PutUint16(b[4:], ^Sum(b, 0))
}
