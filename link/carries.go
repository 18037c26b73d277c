package link

import (
	"encoding/binary"

	"loam/wire"
)

// What a device may be given to send. Every Send asks Carries for each frame:
// the one gate between the stack and the wire.

// HeaderLen is how many bytes a frame of this medium has in front of its IP
// packet, tags not counted.
func (m Medium) HeaderLen() int {
	if m == Ethernet {
		return wire.EthernetLen
	}
	return 0
}

// MaxLen is the length of the longest frame without a tag and without
// segmentation, in bytes.
func (i Info) MaxLen() int { return i.MTU + i.Medium.HeaderLen() }

// Carries reports whether the device can send f: it is no shorter than its
// link-layer header and not empty, no segment of it is longer than the MTU
// allows, and it leaves nothing undone that the device does not do.
func (i *Info) Carries(f *Frame) bool {
	needs, ok := f.needs()
	if !ok || !i.Offloads.Has(needs) || f.Len() < max(1, i.Medium.HeaderLen()) {
		return false
	}
	segment := f.Len()
	if f.GSO != GSONone {
		segment = int(f.HeaderLen) + int(f.GSOSize)
	}
	return segment <= i.MaxLen() || segment <= i.MaxLen()+i.tagLen(f.Bytes())
}

// tagLen is the room that the VLAN tags of frame b take: they do not count
// against the MTU.
func (i *Info) tagLen(b []byte) int {
	if i.Medium != Ethernet {
		return 0
	}
	n := 0
	for at := wire.EthernetLen - 2; n < 2*wire.VLANTagLen && len(b) >= at+2; at += wire.VLANTagLen {
		if t := wire.EtherType(binary.BigEndian.Uint16(b[at:])); t != wire.TypeVLAN && t != wire.TypeQinQ {
			break
		}
		n += wire.VLANTagLen
	}
	return n
}

// needs is what a device must do to send the frame that o belongs to; ok is
// false for a GSO type that does not exist.
func (o *Offload) needs() (n Offloads, ok bool) {
	if o.NeedsChecksum {
		n = OffloadChecksum
	}
	switch o.GSO {
	case GSONone:
		return n, true
	case GSOTCP4:
		return n | OffloadTSO4, true
	case GSOTCP6:
		return n | OffloadTSO6, true
	case GSOUDP:
		return n | OffloadUSO, true
	}
	return n, false
}
