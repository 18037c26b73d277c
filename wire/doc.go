// Package wire parses network protocol headers into typed values and writes them, one file per protocol.
//
// All protocols follow one pattern. ParseX(b) checks once everything that the header claims about itself
// (lengths, versions, offsets) and returns a value X and the payload. A value returned without an error can
// be trusted, and no other code needs to look at the bytes again. X.Len returns the size of the header. X.Put
// writes exactly that many bytes to the front of a buffer that the caller made large enough. Headers are thus
// written in place, in front of a payload that is already there.
//
// DNS and DHCPv6 are exceptions: their functions append to a buffer, because the length of a message is known
// only after it has been built.
//
// The package keeps no state, reads no clock and starts no goroutine. Parsing and writing do not allocate
// unless the documentation says so (the lists in DHCP options, for example). Slices in a parsed value
// (options, payloads) alias the parsed bytes. The value is valid as long as the caller does not change those
// bytes.
//
// Parsing does not verify checksums, since a device may have done so already. Each protocol has a separate
// function for that (see checksum.go).
package wire

// Error is the reason why a packet was rejected. It is comparable and does not allocate. Callers count errors
// by value.
type Error uint8

const (
	ErrShort    Error = iota + 1 // fewer bytes than the fixed header
	ErrLength                    // a length field points outside the bytes or inside the header
	ErrVersion                   // not the expected version
	ErrChecksum                  // the checksum does not match
	ErrOption                    // an option is malformed
	ErrField                     // a field holds a value that the standard forbids
)

var errorText = [...]string{
	ErrShort:    "truncated header",
	ErrLength:   "bad length field",
	ErrVersion:  "wrong version",
	ErrChecksum: "bad checksum",
	ErrOption:   "malformed option",
	ErrField:    "forbidden field value",
}

// Error implements error.
func (e Error) Error() string {
	if int(e) < len(errorText) && errorText[e] != "" {
		return "wire: " + errorText[e]
	}
	return "wire: unknown error"
}
