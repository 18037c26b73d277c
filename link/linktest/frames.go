package linktest

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"loam/link"
	"loam/wire"
)

// Distinguishable frames. A plain frame is determined by its size and its number. The number is in
// the source address, which even the shortest frame has. The rest is a pattern that depends on
// both. So a frame is checked by building it again.

const (
	typeExperimental  = 0x88b5 // IEEE 802 local experimental EtherType
	protoExperimental = 253    // IP protocol number for experiments (RFC 3692)
)

// MinLen returns the length of the shortest frame that the suite sends: a header alone.
func MinLen(m link.Medium) int {
	if m == link.Ethernet {
		return wire.EthernetLen
	}
	return wire.IPv4MinLen
}

// Fill writes plain frame number n into b. len(b) must be at least MinLen.
func Fill(m link.Medium, b []byte, n uint32) {
	for i := range b {
		b[i] = byte(int(n) + len(b) + i*7)
	}
	number := [4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	if m == link.IP {
		h := wire.IPv4{TTL: 64, Protocol: protoExperimental, Src: netip.AddrFrom4(number), Dst: address4(2), PayloadLen: len(b) - wire.IPv4MinLen}
		h.Put(b)
		return
	}
	h := wire.Ethernet{Dst: wire.Broadcast, Src: wire.MAC{2, 0xfe, number[0], number[1], number[2], number[3]}, Type: typeExperimental}
	h.Put(b)
}

// Plain returns plain frame number n of the given length.
func Plain(m link.Medium, length int, n uint32) *link.Frame {
	f := link.NewFrame(length)
	Fill(m, f.Bytes(), n)
	return f
}

// checkPlain compares f with plain frame number n, and frees it.
func checkPlain(t *testing.T, m link.Medium, f *link.Frame, length int, n uint32) {
	t.Helper()
	want := make([]byte, length)
	Fill(m, want, n)
	if !bytes.Equal(f.Bytes(), want) {
		t.Fatalf("frame %d of %d bytes arrived with %d bytes:\n% x\nwant\n% x", n, length, f.Len(), head(f.Bytes()), head(want))
	}
	if o := f.Offload; o != (link.Offload{ChecksumValid: o.ChecksumValid}) {
		t.Fatalf("frame %d arrived with metadata %+v", n, o)
	}
	f.Free()
}

func head(b []byte) []byte { return b[:min(len(b), 64)] }

func address4(last byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, last}) }

func address6(last byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 15: last})
}

// Transport describes the frame that Unfinished makes.
type Transport struct {
	Protocol wire.Protocol // ProtoTCP or ProtoUDP
	IPv6     bool
	Payload  int // number of payload bytes
	GSOSize  int // payload bytes of each segment; 0: no segmentation
	ECN      bool
}

// Unfinished returns a TCP or UDP frame whose checksum is left to the device. If c.GSOSize is set,
// segmentation is left to it too.
func Unfinished(m link.Medium, c Transport) *link.Frame {
	transportLen, sumAt := wire.UDPLen, 6
	if c.Protocol == wire.ProtoTCP {
		transportLen, sumAt = wire.TCPMinLen, 16
	}
	ipLen, src, dst := wire.IPv4MinLen, address4(1), address4(2)
	if c.IPv6 {
		ipLen, src, dst = ipv6Len, address6(1), address6(2)
	}
	f := link.NewFrame(m.HeaderLen() + ipLen + transportLen + c.Payload)
	b := f.Bytes()
	putLink(m, b, c.IPv6)
	b = b[m.HeaderLen():]
	putIP(b, c, src, dst)
	b = b[ipLen:]
	for i := range b {
		b[i] = byte(i * 5)
	}
	if c.Protocol == wire.ProtoTCP {
		h := wire.TCP{SrcPort: 1234, DstPort: 80, Seq: 1000, Ack: 2000, Flags: wire.ACK | wire.PSH, Window: 512}
		if c.ECN {
			h.Flags |= wire.CWR
		}
		h.Put(b)
	} else {
		h := wire.UDP{SrcPort: 1234, DstPort: 53, PayloadLen: c.Payload}
		h.Put(b)
	}
	binary.BigEndian.PutUint16(b[sumAt:], wire.PseudoSum(c.Protocol, src, dst, len(b)))
	start := f.Len() - len(b)
	f.Offload = link.Offload{NeedsChecksum: true, CsumStart: uint16(start), CsumOffset: uint16(sumAt)}
	if c.GSOSize > 0 {
		f.GSO, f.GSOSize, f.HeaderLen, f.ECN = c.gsoType(), uint16(c.GSOSize), uint16(start+transportLen), c.ECN
	}
	return f
}

func (c Transport) gsoType() link.GSOType {
	switch {
	case c.Protocol == wire.ProtoUDP:
		return link.GSOUDP
	case c.IPv6:
		return link.GSOTCP6
	}
	return link.GSOTCP4
}

const ipv6Len = 40

func putLink(m link.Medium, b []byte, v6 bool) {
	if m != link.Ethernet {
		return
	}
	h := wire.Ethernet{Dst: wire.Broadcast, Src: wire.MAC{2, 0, 0, 0, 0, 1}, Type: wire.TypeIPv4}
	if v6 {
		h.Type = wire.TypeIPv6
	}
	h.Put(b)
}

// putIP writes the IP header of the packet b.
func putIP(b []byte, c Transport, src, dst netip.Addr) {
	if !c.IPv6 {
		h := wire.IPv4{ID: 77, DontFragment: true, TTL: 64, Protocol: c.Protocol, Src: src, Dst: dst, PayloadLen: len(b) - wire.IPv4MinLen}
		h.Put(b)
		return
	}
	clear(b[:ipv6Len])
	b[0], b[6], b[7] = 0x60, byte(c.Protocol), 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-ipv6Len))
	copy(b[8:], src.AsSlice())
	copy(b[24:], dst.AsSlice())
}
