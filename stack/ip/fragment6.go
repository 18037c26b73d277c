package ip

import "loam/wire"

// Fragmentation of IPv6 packets, which only the sender may do (RFC 8200 section 4.5). It is used like
// Fragment:
//
//	f, err := ip.Fragment6(&h, payload, mtu, id)
//	for h, frag, part, ok := f.Next(); ok; h, frag, part, ok = f.Next() {
//
// The packets must have no extension headers.

// Fragmenter6 splits one IPv6 packet into fragments.
type Fragmenter6 struct {
	header  wire.IPv6
	payload []byte // payload that has not been returned yet
	frag    wire.IPv6Fragment
	room    int // number of payload bytes in each fragment except the last
	done    bool
}

// Fragment6 prepares to split the packet with header h, which is longer than mtu, into fragments of at most
// mtu bytes. The error is ErrMTU.
func Fragment6(h *wire.IPv6, payload []byte, mtu int, id uint32) (Fragmenter6, error) {
	f := Fragmenter6{header: *h, payload: payload, frag: wire.IPv6Fragment{Next: h.NextHeader, ID: id}}
	f.header.NextHeader = wire.ProtoIPv6Fragment
	f.room = (mtu - wire.IPv6Len - wire.IPv6FragmentLen) &^ 7
	if f.room < 8 {
		return f, ErrMTU
	}
	return f, nil
}

// Next returns the headers and the payload of the next fragment, until ok is false.
func (f *Fragmenter6) Next() (h wire.IPv6, frag wire.IPv6Fragment, part []byte, ok bool) {
	if f.done {
		return h, frag, nil, false
	}
	n := min(f.room, len(f.payload))
	f.done = n == len(f.payload)
	h, frag, part = f.header, f.frag, f.payload[:n]
	frag.More = !f.done
	h.PayloadLen = wire.IPv6FragmentLen + n
	f.payload = f.payload[n:]
	f.frag.Offset += n
	return h, frag, part, true
}
