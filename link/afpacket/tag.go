//go:build linux

package afpacket

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/wire"
)

// tag is a VLAN tag that the kernel removed from a frame.
type tag struct {
	tci, tpid uint16
	valid     bool
}

// newTag returns the tag described by struct tpacket_auxdata or by a frame header of a ring.
func newTag(status uint32, tci, tpid uint16) tag {
	if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		tpid = uint16(wire.TypeVLAN)
	}
	return tag{tci, tpid, status&unix.TP_STATUS_VLAN_VALID != 0}
}

// auxTag returns the tag in the ancillary data of a message: one cmsghdr with a struct
// tpacket_auxdata (packet(7)).
func auxTag(control []byte) tag {
	const header = 16 // length of struct cmsghdr
	if len(control) < header+auxLen {
		return tag{}
	}
	if binary.NativeEndian.Uint32(control[8:]) != unix.SOL_PACKET || binary.NativeEndian.Uint32(control[12:]) != unix.PACKET_AUXDATA {
		return tag{}
	}
	a := control[header:]
	return newTag(binary.NativeEndian.Uint32(a), binary.NativeEndian.Uint16(a[16:]), binary.NativeEndian.Uint16(a[18:]))
}

// auxLen is the size of struct tpacket_auxdata.
const auxLen = 20

// auxSpace is the size of the ancillary data of one message, padding included.
const auxSpace = 40

// putBack inserts the tag between the addresses and the EtherType of frame f.
func (t tag) putBack(f *link.Frame) {
	if t.valid && f.Len() >= wire.EthernetLen {
		f.Prepend(wire.VLANTagLen)
		t.write(f.Bytes())
	}
}

// write inserts the tag. On entry, b has room for a tag in front, followed by the frame. It moves
// the addresses to the front of b and writes the tag after them.
func (t tag) write(b []byte) {
	const addresses = 2 * len(wire.MAC{})
	copy(b, b[wire.VLANTagLen:][:addresses])
	binary.BigEndian.PutUint16(b[addresses:], t.tpid)
	binary.BigEndian.PutUint16(b[addresses+2:], t.tci)
}
