package ip

import (
	"errors"

	"loam/wire"
)

// Fragmentation (RFC 791 section 3.2). Fragment performs all checks. Next then returns the fragments one by
// one, each as a header and a part of the payload, which the caller puts into frames:
//
//	f, err := ip.Fragment(&h, payload, mtu)
//	for h, part, ok := f.Next(); ok; h, part, ok = f.Next() {
//
// A fragment may be fragmented again.

// ErrDontFragment means that a packet exceeds the MTU and must not be fragmented. The caller reports the MTU
// to the sender (RFC 1191).
var ErrDontFragment = errors.New("ip: packet exceeds the MTU and must not be fragmented")

// ErrMTU means that not even a fragment of eight bytes fits into the MTU.
var ErrMTU = errors.New("ip: MTU below header and eight bytes")

// Fragmenter splits one packet into fragments.
type Fragmenter struct {
	header  wire.IPv4 // header of the packet
	payload []byte    // payload that has not been returned yet
	offset  int       // offset of payload in the packet
	mtu     int
	later   [wire.IPv4MaxLen - wire.IPv4MinLen]byte // options that all fragments except the first contain
	nLater  int
	done    bool
}

// Fragment prepares to split the packet with header h into fragments of at most mtu bytes. h must have an ID
// suitable for a fragmented packet. A packet that fits is returned unchanged by Next. The errors are
// ErrDontFragment and ErrMTU.
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

// room returns the number of payload bytes in a fragment with header h, unless it is the last fragment.
func room(h *wire.IPv4, mtu int) int { return (mtu - h.Len()) &^ 7 }

// Next returns the next fragment, until ok is false. The options of the header are memory of f.
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

// copiedOptions stores in b the options of h that every fragment contains, padded to whole words, and returns their length.
func copiedOptions(b []byte, h *wire.IPv4) int {
	n := 0
	for kind, data := range h.EachOption {
		if kind.Copied() {
			b[n], b[n+1] = uint8(kind), uint8(2+len(data))
			n += 2 + copy(b[n+2:], data)
		}
	}
	return (n + 3) &^ 3 // the rest of b is zero, which is the option OptEnd
}
