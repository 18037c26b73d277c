package link

import (
	"encoding/binary"

	"loam/wire"
)

// FinishChecksum computes the checksum that f leaves undone, if it does. It
// reports false, and leaves f as it is, if the field lies outside of the frame
// or f is a GSO frame: see Segment.
func (f *Frame) FinishChecksum() bool {
	if !f.NeedsChecksum {
		return true
	}
	b := f.Bytes()
	start, at := int(f.CsumStart), int(f.CsumStart)+int(f.CsumOffset)
	if f.GSO != GSONone || at+2 > len(b) {
		return false
	}
	// The field holds the sum of the pseudo header, and so takes part in the sum.
	sum := ^wire.Sum(b[start:], 0)
	if sum == 0 {
		sum = 0xffff // the same number, and for UDP the one that does not mean "none"
	}
	binary.BigEndian.PutUint16(b[at:], sum)
	f.NeedsChecksum, f.CsumStart, f.CsumOffset = false, 0, 0
	return true
}

// Admit is the gate for metadata that came from outside with a frame (from a
// kernel, a host, another process): it reports whether it fits the frame, and
// puts right what senders may leave vague. HeaderLen is only a hint in
// virtio_net_hdr (virtio 1.2 section 5.1.6.4.2), and a GSO frame of one segment
// is none.
func (f *Frame) Admit(m Medium) bool {
	switch {
	case f.GSO != GSONone:
		h, ok := gsoHeaders(m, f)
		if !ok || !f.NeedsChecksum || int(f.CsumStart) != h.transport || int(f.CsumStart)+int(f.CsumOffset) != h.sumAt() {
			return false
		}
		f.HeaderLen = uint16(h.payload)
		if f.Segments() == 1 {
			f.GSO, f.GSOSize, f.HeaderLen, f.ECN = GSONone, 0, 0, false
		}
	case f.NeedsChecksum:
		// The stack trims headers and so moves CsumStart: it lies behind them.
		return int(f.CsumStart) >= m.HeaderLen()+wire.IPv4MinLen && int(f.CsumStart)+int(f.CsumOffset)+2 <= f.Len()
	}
	return true
}
