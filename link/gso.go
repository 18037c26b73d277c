package link

import (
	"encoding/binary"

	"loam/wire"
)

// Generic segmentation offload in software: what a device without offloads
// leaves to us. A GSO frame is a packet with more payload than the MTU allows;
// Segment cuts it up as hardware does, so that its sender runs through the stack
// once for 64 kB.
//
// What differs between the segments of a TCP frame: the sequence number, the
// lengths and checksums, the IPv4 identification (which counts up), FIN and PSH
// (which only the last carries), and CWR (which only the first carries, if the
// frame is marked ECN; RFC 3168 section 6.1.2 has it sent once).

// Segment moves payload from the front of f, a GSO frame, into frames of their
// own, with finished checksums: as many as dst has places for, and never the
// last. n is how many there are. f is then a shorter GSO frame of the rest or,
// when no more than one segment was left, that segment, finished: f.GSO says
// which. So f can be sent behind dst[:n] once its GSO is GSONone, and otherwise
// be given to Segment again.
//
// ok is false, and f as it was, if its headers are not what its metadata says.
func Segment(m Medium, f *Frame, dst []*Frame) (n int, ok bool) {
	h, ok := gsoHeaders(m, f)
	if !ok {
		return 0, false
	}
	for n < len(dst) && f.end-f.start-h.payload > int(f.GSOSize) {
		dst[n] = cutSegment(f, &h)
		n++
	}
	b := f.Bytes()
	h.putLengths(b)
	if len(b)-h.payload > int(f.GSOSize) {
		h.putPartialSum(b)
		return n, true
	}
	h.putSum(b)
	f.Offload = Offload{}
	return n, true
}

// Segments is how many frames Segment makes of f, itself included: 1 for a frame
// that is not a GSO frame.
func (f *Frame) Segments() int {
	payload := f.Len() - int(f.HeaderLen)
	if f.GSO == GSONone || f.GSOSize == 0 || payload <= 0 {
		return 1
	}
	return (payload + int(f.GSOSize) - 1) / int(f.GSOSize)
}

// WireLen is how many bytes f takes on the wire, its headers counted once for
// each segment.
func (f *Frame) WireLen() int { return f.Len() + (f.Segments()-1)*int(f.HeaderLen) }

// gsoHeaders finds the headers of a GSO frame, and checks that they are of the
// kind that its metadata says.
func gsoHeaders(m Medium, f *Frame) (h headers, ok bool) {
	h, ok = parseHeaders(m, f.Bytes())
	if !ok || f.GSOSize == 0 || h.end != f.Len() {
		return h, false
	}
	switch f.GSO {
	case GSOTCP4:
		return h, h.protocol == wire.ProtoTCP && !h.v6
	case GSOTCP6:
		return h, h.protocol == wire.ProtoTCP && h.v6
	case GSOUDP:
		return h, h.protocol == wire.ProtoUDP
	}
	return h, false
}

// cutSegment takes the first segment off f, which has more than one. The headers
// of f move behind it and are those of the next segment, but for lengths and
// checksums.
func cutSegment(f *Frame, h *headers) *Frame {
	b := f.Bytes()
	size := int(f.GSOSize)
	s := NewFrame(h.payload + size)
	first := s.Bytes()
	copy(first, b)
	if h.protocol == wire.ProtoTCP {
		first[h.transport+tcpFlags] &^= uint8(wire.FIN | wire.PSH)
	}
	h.putLengths(first)
	h.putSum(first)

	copy(b[size:], b[:h.payload])
	f.start += size
	h.advance(f.Bytes(), size, f.ECN)
	f.ECN = false
	return s
}

// advance turns the headers in b into those of the segment that follows after n
// bytes.
func (h *headers) advance(b []byte, n int, ecn bool) {
	if !h.v6 {
		add16(b[h.ip+ipv4ID:], 1)
	}
	if h.protocol != wire.ProtoTCP {
		return
	}
	p := b[h.transport:]
	binary.BigEndian.PutUint32(p[tcpSeq:], binary.BigEndian.Uint32(p[tcpSeq:])+uint32(n))
	if ecn {
		p[tcpFlags] &^= uint8(wire.CWR)
	}
}

func add16(b []byte, n uint16) {
	binary.BigEndian.PutUint16(b, binary.BigEndian.Uint16(b)+n)
}
