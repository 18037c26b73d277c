package frame

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// The payload: the bytes between the last header and the end of the packet.
//
//	payload text="hello"     the bytes of the text, then zeros
//	payload hex=00ff00ff     the bytes given in hexadecimal, then zeros
//	payload fill=0xa5        every byte has this value
//	payload fill=count       0, 1, 2, ... 255, 0, ...
//	payload fill=random      the same random bytes in every frame

const payloadKind = "payload"

const payloadAllowed = "text=..., hex=..., fill=BYTE, fill=count, fill=random"

// payload is a parsed payload layer. The zero value means all zeros.
type payload struct {
	content []byte // bytes at the start of the payload
	fill    func(i int) byte
}

// parsePayload parses a payload layer. seed determines the random bytes of fill=random.
func parsePayload(l *Layer, seed uint64) (p payload, err error) {
	for _, s := range l.Fields {
		name := payloadKind + "." + s.Name
		switch s.Name {
		case "text":
			p.content = []byte(s.Pattern)
		case "hex":
			if p.content, err = hex.DecodeString(strings.ReplaceAll(s.Pattern, " ", "")); err != nil {
				return p, &Error{Field: name, Wrong: fmt.Sprintf("%q is not hexadecimal", s.Pattern), Allowed: "pairs of the digits 0-9 and a-f"}
			}
		case "fill":
			if p.fill, err = parseFill(s.Pattern, seed); err != nil {
				return p, err
			}
		default:
			return p, &Error{Field: name, Wrong: "there is no such field in a payload", Allowed: payloadAllowed}
		}
	}
	return p, nil
}

// parseFill returns a function that returns the byte at an offset in the payload. For fill=random, that function must
// be called once for each offset, in order.
func parseFill(s string, seed uint64) (func(int) byte, error) {
	switch s {
	case "count":
		return func(i int) byte { return byte(i) }, nil
	case "random":
		r := rand.New(rand.NewPCG(seed, 0xf111))
		return func(int) byte { return byte(r.Uint32()) }, nil
	}
	n, err := strconv.ParseUint(s, 0, 8)
	if err != nil {
		return nil, &Error{Field: payloadKind + ".fill", Wrong: fmt.Sprintf("%q fills nothing", s), Allowed: "a number from 0 to 255, count, random"}
	}
	return func(int) byte { return byte(n) }, nil
}

// put writes the payload into b and clears the first reserved bytes.
func (p *payload) put(b []byte, reserved int) {
	if p.fill != nil {
		for i := range b {
			b[i] = p.fill(i)
		}
	}
	copy(b, p.content)
	clear(b[:min(reserved, len(b))])
}
