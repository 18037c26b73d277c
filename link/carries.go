package link

import (
	"encoding/binary"

	"loam/wire"
)

// Which frames a device can send. Every Send calls Carries for each frame: it is the only check
// between the stack and the wire.

// HeaderLen returns the length of the link-layer header in bytes, without VLAN tags.
func (m Medium) HeaderLen() int {
	if m == Ethernet {
		return wire.EthernetLen
	}
	return 0
}

// MaxLen returns the length in bytes of the longest frame without a VLAN tag and without
// segmentation.
func (i Info) MaxLen() int { return i.MTU + i.Medium.HeaderLen() }

// Carries reports whether the device can send f. It can if f is not empty and no shorter than its
// link-layer header, each of its segments fits the MTU, and the device has every offload that f
// needs.
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

// tagLen returns the length of the VLAN tags of frame b in bytes. Tags do not count against the
// MTU.
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

// needs returns the offloads that a device must have to send the frame that o belongs to. ok is
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
