package icmp

import (
	"encoding/binary"

	"loam/wire"
)

// Extensions are what a router adds to an error behind the packet that it quotes (RFC 4884), such as
// the labels that the packet had (RFC 4950). What they say is for programs.
type Extensions struct {
	At      int  // where they begin, counted from what is behind the headers of the quote; 0: there are none
	Unsound bool // their checksum, or the length of one, is wrong
}

// Sizes in bytes, and the version (RFC 4884 sections 4.1 and 7).
const (
	leastQuote       = 128
	extensionHeader  = 4
	extensionObject  = 4
	extensionVersion = 2
)

// FindExtensions looks for extensions in the payload of an error, which says that it quotes so many
// bytes (wire.ICMPv4.QuoteLen), of which skip are headers. Of another version than 2, which nobody
// knows, nothing is judged, as on Linux.
func FindExtensions(payload []byte, quoted, skip int) Extensions {
	if quoted < max(leastQuote, skip) || quoted+extensionHeader > len(payload) {
		return Extensions{}
	}
	return Extensions{At: quoted - skip, Unsound: !sound(payload[quoted:])}
}

// sound reports whether an extension structure, of extensionHeader bytes at least, is whole.
func sound(b []byte) bool {
	if b[0]>>4 != extensionVersion {
		return true
	}
	if b[2]|b[3] != 0 && wire.Sum(b, 0) != 0xffff { // 0: the sender has not computed it
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
