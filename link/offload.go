package link

// GSOType is the protocol by which a frame longer than the MTU is cut into segments.
type GSOType uint8

// The types, with the values of virtio_net_hdr (virtio 1.2, section 5.1.6).
const (
	GSONone GSOType = 0
	GSOTCP4 GSOType = 1
	GSOTCP6 GSOType = 4
	GSOUDP  GSOType = 5 // VIRTIO_NET_HDR_GSO_UDP_L4
	gsoECN  GSOType = 0x80
)

// Offload is the state of a frame's checksum and segmentation. It has the content of a virtio-net
// header, with offsets from the first byte of the frame. The zero value describes a finished frame
// whose checksums have not been verified.
type Offload struct {
	// NeedsChecksum: the 16-bit field at CsumStart+CsumOffset holds the folded sum of the pseudo
	// header (wire.PseudoSum, not complemented). The checksum from CsumStart to the end of the
	// frame is still to be computed and stored there.
	NeedsChecksum bool
	// ChecksumValid: the device that delivered the frame guarantees its transport checksum. Set
	// only on received frames.
	ChecksumValid bool
	GSO           GSOType
	ECN           bool   // GSO: only the first segment carries CWR
	HeaderLen     uint16 // GSO: length of all headers in bytes, link layer included
	GSOSize       uint16 // GSO: payload bytes of each segment
	CsumStart     uint16
	CsumOffset    uint16 // offset from CsumStart
}

// VirtioHeaderLen is the size of struct virtio_net_hdr without num_buffers.
const VirtioHeaderLen = 10

const (
	virtioNeedsCsum = 1
	virtioDataValid = 2
)

// Put writes o as a little-endian virtio_net_hdr into the first VirtioHeaderLen bytes of b. It
// panics if b is shorter.
func (o *Offload) Put(b []byte) {
	_ = b[VirtioHeaderLen-1]
	b[0], b[1] = 0, uint8(o.GSO)
	if o.NeedsChecksum {
		b[0] |= virtioNeedsCsum
	}
	if o.ECN {
		b[1] |= uint8(gsoECN)
	}
	put16(b[2:], o.HeaderLen)
	put16(b[4:], o.GSOSize)
	put16(b[6:], o.CsumStart)
	put16(b[8:], o.CsumOffset)
}

// ParseOffload reads a little-endian virtio_net_hdr of a frame of frameLen bytes. ok is false if
// the header is too short, has an unknown GSO type, or has offsets or lengths outside the frame.
func ParseOffload(b []byte, frameLen int) (o Offload, ok bool) {
	if len(b) < VirtioHeaderLen {
		return o, false
	}
	o = Offload{
		NeedsChecksum: b[0]&virtioNeedsCsum != 0,
		ChecksumValid: b[0]&(virtioDataValid|virtioNeedsCsum) != 0,
		GSO:           GSOType(b[1]) &^ gsoECN,
		ECN:           GSOType(b[1])&gsoECN != 0,
		HeaderLen:     get16(b[2:]),
		GSOSize:       get16(b[4:]),
		CsumStart:     get16(b[6:]),
		CsumOffset:    get16(b[8:]),
	}
	switch o.GSO {
	case GSONone, GSOTCP4, GSOTCP6, GSOUDP:
	default:
		return o, false
	}
	if o.NeedsChecksum && int(o.CsumStart)+int(o.CsumOffset)+2 > frameLen {
		return o, false
	}
	if o.GSO != GSONone && (o.GSOSize == 0 || int(o.HeaderLen) > frameLen) {
		return o, false
	}
	return o, true
}

func put16(b []byte, v uint16) { b[0], b[1] = byte(v), byte(v>>8) }
func get16(b []byte) uint16    { return uint16(b[0]) | uint16(b[1])<<8 }
