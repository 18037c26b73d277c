package icmp

import (
	"encoding/binary"

	"loam/wire"
)

// Extensions locates the data that a router appends to an error behind the quoted packet (RFC 4884), such as
// the MPLS labels of the packet (RFC 4950). Programs interpret them.
type Extensions struct {
	At      int  // offset of the extensions, relative to the data after the headers of the quoted packet; 0: none
	Unsound bool // the checksum or a length of the extensions is wrong
}

// Sizes in bytes, and the version (RFC 4884 sections 4.1 and 7).
const (
	leastQuote       = 128
	extensionHeader  = 4
	extensionObject  = 4
	extensionVersion = 2
)

// FindExtensions finds the extensions in the payload of an error. quoted is the size of the quoted packet
// (wire.ICMPv4.QuoteLen). Its first skip bytes are headers. Extensions of other versions than 2 are not
// checked, as on Linux.
func FindExtensions(payload []byte, quoted, skip int) Extensions {
	if quoted < max(leastQuote, skip) || quoted+extensionHeader > len(payload) {
		return Extensions{}
	}
	return Extensions{At: quoted - skip, Unsound: !sound(payload[quoted:])}
}

// sound reports whether an extension structure is valid. b has at least extensionHeader bytes.
func sound(b []byte) bool {
	if b[0]>>4 != extensionVersion {
		return true
	}
	if b[2]|b[3] != 0 && wire.Sum(b, 0) != 0xffff { // a checksum of 0 means that the sender has not computed it
		return false
	}
	for b = b[extensionHeader:]; len(b) > 0; {
		if len(b) < extensionObject {
			return false
		}
		n := int(binary.BigEndian.Uint16(b))
		if n < extensionObject || n > len(b) {
			return false
		}
		b = b[n:]
	}
	return true
}
