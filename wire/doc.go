// Package wire turns bytes into typed headers and back, one file a protocol.
//
// Every protocol follows one pattern. ParseX(b) checks everything that the
// header claims about itself (lengths, versions, offsets) once and returns a
// value X and the payload; a value returned without an error can be trusted,
// and nothing below looks at the bytes again. X.Len is the number of bytes that
// the header takes, and X.Put writes exactly these into the front of a buffer
// that the caller made large enough, so that headers are written in place, in
// front of a payload that is already there.
//
// DNS differs in one point: what builds a message appends it, since its length
// is only known when it is built.
//
// Nothing here keeps state, reads a clock or starts a goroutine, and parsing and
// writing do not allocate; what does, says so (the lists in DHCP options).
// Slices in a parsed value (options, payloads) alias the bytes that were
// parsed: the value is good for as long as the caller leaves these alone.
//
// Checksums are not part of parsing, since a device may have verified them
// already: each protocol has a function of its own for that (see checksum.go).
package wire

// Error says why bytes were refused. It is comparable, costs no allocation, and
// is meant to be counted by reason.
type Error uint8

const (
	ErrShort    Error = iota + 1 // fewer bytes than the fixed header
	ErrLength                    // a length field points outside of the bytes or inside the header
	ErrVersion                   // not the version that was asked for
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
