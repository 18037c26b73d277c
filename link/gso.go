package link

import (
	"encoding/binary"

	"loam/wire"
)

// Generic segmentation offload (GSO) in software, for devices without this offload. A GSO frame is
// a packet with more payload than the MTU allows. Segment cuts it up as hardware does, so the
// sender traverses the stack only once for 64 kB.
//
// The segments of a TCP frame differ in the sequence number, the lengths, the checksums, the IPv4
// identification (which counts up), FIN and PSH (only in the last segment), and CWR. In a frame
// marked ECN, only the first segment carries CWR, because it is to be sent once (RFC 3168 section
// 6.1.2).

// Segment cuts segments off the front of f, a GSO frame, and stores them in dst as frames with
// finished checksums. It fills at most len(dst) elements and returns their number. The last segment
// always stays in f.
//
// Afterwards f is a shorter GSO frame that holds the rest, or, if only one segment was left, that
// segment as a finished frame; f.GSO distinguishes the two. If f.GSO is GSONone, f can be sent after dst[:n].
// Otherwise pass f to Segment again.
//
// ok is false, and f is unchanged, if the headers of f do not match its metadata.
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

// Segments returns the number of segments of f: 1 for a frame that is not a GSO frame.
func (f *Frame) Segments() int {
	payload := f.Len() - int(f.HeaderLen)
	if f.GSO == GSONone || f.GSOSize == 0 || payload <= 0 {
		return 1
	}
	return (payload + int(f.GSOSize) - 1) / int(f.GSOSize)
}

// WireLen returns the number of bytes of f on the wire, with headers counted once for each segment.
func (f *Frame) WireLen() int { return f.Len() + (f.Segments()-1)*int(f.HeaderLen) }

// gsoHeaders finds the headers of a GSO frame and checks that they match the GSO type.
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

// cutSegment removes the first segment from f, which must have more than one, and returns it. The
// headers of f move forward in the buffer and become the next segment's, except for lengths
// and checksums.
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

// advance changes the headers in b for the segment that starts n payload bytes later.
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
