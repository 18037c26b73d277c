package ip

import (
	"errors"

	"loam/wire"
)

// Fragmentation (RFC 791 section 3.2). Fragment checks what there is to check;
// then Next gives one fragment after the other, as a header and a part of the
// payload, for the caller to put into frames:
//
//	f, err := ip.Fragment(&h, payload, mtu)
//	for h, part, ok := f.Next(); ok; h, part, ok = f.Next() {
//
// A fragment may be cut up again.

// ErrDontFragment says that a packet is too long and must not be cut. Its sender
// is to be told the MTU (RFC 1191).
var ErrDontFragment = errors.New("ip: packet exceeds the MTU and must not be fragmented")

// ErrMTU says that not even a fragment of eight bytes fits.
var ErrMTU = errors.New("ip: MTU below header and eight bytes")

// Fragmenter cuts up one packet.
type Fragmenter struct {
	header  wire.IPv4 // of the packet
	payload []byte    // what is left
	offset  int       // of that, in the packet
	mtu     int
	later   [wire.IPv4MaxLen - wire.IPv4MinLen]byte // options of all fragments but the first
	nLater  int
	done    bool
}

// Fragment prepares to cut the packet with header h, and an ID that suits a
// fragmented one, into fragments of at most mtu bytes. A packet that fits is left
// in one piece. Errors: ErrDontFragment, ErrMTU.
func Fragment(h *wire.IPv4, payload []byte, mtu int) (Fragmenter, error) {
	f := Fragmenter{header: *h, payload: payload, mtu: mtu}
	if h.Len()+len(payload) <= mtu {
		return f, nil
	}
	if h.DontFragment {
		return f, ErrDontFragment
	}
	if room(h, mtu) < 8 {
		return f, ErrMTU
	}
	f.nLater = copiedOptions(f.later[:], h)
	return f, nil
}

// room is how much payload a fragment with header h takes if it is not the last.
func room(h *wire.IPv4, mtu int) int { return (mtu - h.Len()) &^ 7 }

// Next returns the next fragment, until ok is false. The options of the header
// are part of f.
func (f *Fragmenter) Next() (h wire.IPv4, part []byte, ok bool) {
	if f.done {
		return h, nil, false
	}
	h = f.header
	if f.offset > 0 {
		h.Options = f.later[:f.nLater]
	}
	h.FragOffset += f.offset
	part = f.payload
	if h.Len()+len(part) > f.mtu {
		part = part[:room(&h, f.mtu)]
		h.MoreFragment = true
	} else {
		f.done = true
	}
	f.payload = f.payload[len(part):]
	f.offset += len(part)
	h.PayloadLen = len(part)
	return h, part, true
}

// copiedOptions writes those options of h to b that every fragment carries, padded
// to whole words, and returns their length.
func copiedOptions(b []byte, h *wire.IPv4) int {
	n := 0
	for kind, data := range h.EachOption {
		if kind.Copied() {
			b[n], b[n+1] = uint8(kind), uint8(2+len(data))
			n += 2 + copy(b[n+2:], data)
		}
	}
	return (n + 3) &^ 3 // b is zero: OptEnd
}
