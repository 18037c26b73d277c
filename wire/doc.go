// Package wire parses network protocol headers into typed values and writes them, one file per protocol.
//
// All protocols follow one pattern. ParseX(b) checks every statement that the header makes about itself (lengths,
// versions, offsets), and returns a value of type X and the payload. If there is no error, other code can trust the
// value and need not read the bytes again. X.Len returns the size of the header in bytes. X.Put writes exactly that
// many bytes to the front of a buffer, which the caller has made large enough. So a header can be written in place,
// before a payload that is already in the buffer.
//
// DNS and DHCPv6 are exceptions: their functions append to a buffer, because the length of a message is known
// only after it has been built.
//
// The package keeps no state, reads no clock and starts no goroutine. Parsing and writing allocate only where the
// documentation says so (for example, for the lists in DHCP options). Slices in a parsed value, such as options, alias
// the parsed bytes. So the value is valid only as long as the caller does not change these bytes.
//
// Parsing does not verify checksums, since a network device may already have done so. Each protocol has a separate
// function that verifies its checksum (see checksum.go).
package wire

// Error is the reason why a packet was rejected. An Error is comparable and does not allocate; callers count errors by
// their value.
type Error uint8

const (
	ErrShort    Error = iota + 1 // fewer bytes than the fixed header
	ErrLength                    // a length field refers to bytes outside the packet, or is smaller than the header
	ErrVersion                   // the version is not the expected one
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
