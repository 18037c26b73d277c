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

// TCPFlags are the control bits, AE (RFC 9768) in bit 8.
type TCPFlags uint16

// Control bits.
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

// String lists the flags that are set, each by its first letter ("SA" is SYN and
// ACK), and AE by N, after the nonce sum that had this bit before.
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

// Has reports whether all of want is set.
func (f TCPFlags) Has(want TCPFlags) bool { return f&want == want }

// TCP is a header with its options.
type TCP struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            TCPFlags
	Window           uint16 // as sent, not scaled
	Urgent           uint16
	TCPOptions
}

// ParseTCP checks the data offset and the structure of the options. The three
// reserved bits are ignored (RFC 9293 section 3.1), and sent as zero.
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

// RawTCPOptions returns the options of a segment that ParseTCP has accepted, as
// they arrived, for EachTCPOption.
func RawTCPOptions(b []byte) []byte { return b[TCPMinLen : int(b[12]>>4)*4] }

// TCPChecksumOK verifies the whole segment b between src and dst.
func TCPChecksumOK(b []byte, src, dst netip.Addr) bool {
	return Sum(b, PseudoSum(ProtoTCP, src, dst, len(b))) == 0xffff
}

// Len is the size of the header with its options, a multiple of four.
func (h *TCP) Len() int { return TCPMinLen + h.TCPOptions.Len() }

// Put writes the header with an empty checksum into the first Len bytes of b.
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

// PutTCPChecksum fills in the checksum of the whole segment b, whose checksum
// field is empty.
func PutTCPChecksum(b []byte, src, dst netip.Addr) {
	binary.BigEndian.PutUint16(b[16:], ^Sum(b, PseudoSum(ProtoTCP, src, dst, len(b))))
}
