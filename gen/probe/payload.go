package probe

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// UDP payloads to which servers reply. Most servers ignore a payload that is not a valid message of their protocol.

// payloads holds the payloads that a user can select by name.
var payloads = map[string][]byte{
	// A DNS query for the name servers of the root (RFC 1035 section 4): id 0x4c6f, recursion desired, one
	// question.
	"dns": {0x4c, 0x6f, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1},
	// An NTP version 4 client request (RFC 5905 section 7.3): leap indicator unknown, mode 3, all other fields
	// zero.
	"ntp": append([]byte{0xe3}, make([]byte, 47)...),
}

// byPort gives the name of the default payload for a port.
var byPort = map[uint16]string{53: "dns", 123: "ntp"}

// DefaultPayload returns the payload that is used if the user gives none. If there is one port, and its service is
// known, it is a message that the service answers; otherwise it is nil.
func DefaultPayload(ports []uint16) []byte {
	if len(ports) != 1 {
		return nil
	}
	return payloads[byPort[ports[0]]]
}

// ParsePayload parses "dns", "ntp", "text:STRING", "hex:DIGITS" or "file:PATH".
func ParsePayload(s string) (b []byte, err error) {
	if b, ok := payloads[s]; ok {
		return b, nil
	}
	how, what, _ := strings.Cut(s, ":")
	switch how {
	case "text":
		b = []byte(what)
	case "hex":
		b, err = hex.DecodeString(what)
	case "file":
		b, err = os.ReadFile(what)
	default:
		return nil, fmt.Errorf("%q is no payload; there are dns, ntp, text:STRING, hex:DIGITS and file:PATH", s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	if len(b) > MaxPayload {
		return nil, fmt.Errorf("a payload of %d bytes is longer than %d", len(b), MaxPayload)
	}
	return b, nil
}
