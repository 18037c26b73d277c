package link

import (
	"encoding/binary"

	"loam/wire"
)

// FinishChecksum computes the checksum of f if f needs one. It returns false, and leaves f
// unchanged, if the checksum field lies outside the frame or f is a GSO frame. For GSO frames see
// Segment.
func (f *Frame) FinishChecksum() bool {
	if !f.NeedsChecksum {
		return true
	}
	b := f.Bytes()
	start, at := int(f.CsumStart), int(f.CsumStart)+int(f.CsumOffset)
	if f.GSO != GSONone || at+2 > len(b) {
		return false
	}
	// The field holds the sum of the pseudo header and is part of the summed range.
	sum := ^wire.Sum(b[start:], 0)
	if sum == 0 {
		sum = 0xffff // equal to zero in ones' complement; for UDP, zero would mean no checksum
	}
	binary.BigEndian.PutUint16(b[at:], sum)
	f.NeedsChecksum, f.CsumStart, f.CsumOffset = false, 0, 0
	return true
}

// Admit checks the offload metadata of a frame that came from outside: from a kernel, a host or
// another process. It reports whether the metadata fits the frame, and corrects what senders may
// leave imprecise. HeaderLen is only a hint in virtio_net_hdr (virtio 1.2 section 5.1.6.4.2) and is
// set from the headers. A GSO frame with a single segment becomes an ordinary frame.
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
		// The stack trims headers and adjusts CsumStart, so CsumStart must be after them.
		return int(f.CsumStart) >= m.HeaderLen()+wire.IPv4MinLen && int(f.CsumStart)+int(f.CsumOffset)+2 <= f.Len()
	}
	return true
}
