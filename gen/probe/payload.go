package probe

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// Payloads of UDP that servers answer; one that makes no sense to them they mostly
// let fall.

// payloads are known by name.
var payloads = map[string][]byte{
	// A DNS query for the name servers of the root (RFC 1035 section 4): id 0x4c6f,
	// recursion desired, one question.
	"dns": {0x4c, 0x6f, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1},
	// A client's request of NTP version 4 (RFC 5905 section 7.3): leap indicator
	// unknown, mode 3, everything else zero.
	"ntp": append([]byte{0xe3}, make([]byte, 47)...),
}

// byPort are those that are sent if the user names a port and no payload.
var byPort = map[uint16]string{53: "dns", 123: "ntp"}

// DefaultPayload is what is sent to these ports: what their service answers if
// there is one port and it is known, else nothing.
func DefaultPayload(ports []uint16) []byte {
	if len(ports) != 1 {
		return nil
	}
	return payloads[byPort[ports[0]]]
}

// ParsePayload reads "dns", "ntp", "text:STRING", "hex:DIGITS" or "file:PATH".
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
