package wire

import (
	"encoding/binary"
	"net/netip"
)

// TCP (RFC 9293 section 3.1). Options are in tcpoption.go.

// Sizes of a TCP header in bytes.
const (
	TCPMinLen = 20
	TCPMaxLen = 60
)

// TCPFlags are the control bits of a segment. AE (RFC 9768) is bit 8.
type TCPFlags uint16

// Control bits of a TCP segment.
const (
	FIN TCPFlags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
	AE
)

const flagLetters = "FSRPAUECN"

const allFlags = AE<<1 - 1

// String returns the first letter of each flag that is set: "SA" means SYN and ACK. AE is shown as N, because its bit
// was earlier used for the nonce sum (NS).
func (f TCPFlags) String() string {
	var b [len(flagLetters)]byte
	n := 0
	for i := range flagLetters {
		if f>>i&1 != 0 {
			b[n] = flagLetters[i]
			n++
		}
	}
	return string(b[:n])
}

// Has reports whether all flags of want are set.
func (f TCPFlags) Has(want TCPFlags) bool { return f&want == want }

// TCP is a TCP header with its options.
type TCP struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            TCPFlags
	Window           uint16 // value of the window field, without window scaling
	Urgent           uint16
	TCPOptions
}

// ParseTCP parses a header and returns the payload. It checks the data offset and the structure of the options. It
// ignores the three reserved bits; Put sets them to zero (RFC 9293 section 3.1).
func ParseTCP(b []byte) (h TCP, payload []byte, err error) {
	if len(b) < TCPMinLen {
		return h, nil, ErrShort
	}
	hlen := int(b[12]>>4) * 4
	if hlen < TCPMinLen || hlen > len(b) {
		return h, nil, ErrLength
	}
	h.SrcPort = binary.BigEndian.Uint16(b[0:])
	h.DstPort = binary.BigEndian.Uint16(b[2:])
	h.Seq = binary.BigEndian.Uint32(b[4:])
	h.Ack = binary.BigEndian.Uint32(b[8:])
	h.Flags = TCPFlags(binary.BigEndian.Uint16(b[12:]) & uint16(allFlags))
	h.Window = binary.BigEndian.Uint16(b[14:])
	h.Urgent = binary.BigEndian.Uint16(b[18:])
	if hlen > TCPMinLen {
		if !h.TCPOptions.parse(b[TCPMinLen:hlen], h.Flags&SYN != 0) {
			return h, nil, ErrOption
		}
	}
	return h, b[hlen:], nil
}

// RawTCPOptions returns the option bytes of a segment that ParseTCP has accepted. They are the argument of
// EachTCPOption.
func RawTCPOptions(b []byte) []byte { return b[TCPMinLen : int(b[12]>>4)*4] }

// TCPChecksumOK verifies the checksum of the whole segment b, sent from src to dst.
func TCPChecksumOK(b []byte, src, dst netip.Addr) bool {
	return Sum(b, PseudoSum(ProtoTCP, src, dst, len(b))) == 0xffff
}

// Len returns the size of the header with its options, a multiple of four.
func (h *TCP) Len() int { return TCPMinLen + h.TCPOptions.Len() }

// Put writes the header with a zero checksum into the first Len bytes of b.
func (h *TCP) Put(b []byte) {
	_ = b[TCPMinLen-1]
	hlen := h.Len()
	binary.BigEndian.PutUint16(b[0:], h.SrcPort)
	binary.BigEndian.PutUint16(b[2:], h.DstPort)
	binary.BigEndian.PutUint32(b[4:], h.Seq)
	binary.BigEndian.PutUint32(b[8:], h.Ack)
	binary.BigEndian.PutUint16(b[12:], uint16(hlen/4)<<12|uint16(h.Flags&allFlags))
	binary.BigEndian.PutUint16(b[14:], h.Window)
	binary.BigEndian.PutUint16(b[16:], 0)
	binary.BigEndian.PutUint16(b[18:], h.Urgent)
	h.TCPOptions.put(b[TCPMinLen:hlen])
}

// PutTCPChecksum sets the checksum of the whole segment b, whose checksum field must be zero.
func PutTCPChecksum(b []byte, src, dst netip.Addr) {
	binary.BigEndian.PutUint16(b[16:], ^Sum(b, PseudoSum(ProtoTCP, src, dst, len(b))))
}
