package probe

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"loam/wire"
)

// host simulates a host that has every address. It uses only package wire, so it shares nothing with form and
// answer. It verifies every checksum.
type host struct {
	t *testing.T
	// closed reports which TCP and UDP ports are closed.
	closed func(port uint16) bool
}

func (h *host) open(port uint16) bool { return h.closed == nil || !h.closed(port) }

// reply returns the host's answer to frame b, or nil.
func (h *host) reply(b []byte) [][]byte {
	eth, packet, err := wire.ParseEthernet(b)
	if err != nil {
		h.t.Errorf("a probe is no frame: %v", err)
		return nil
	}
	var proto wire.Protocol
	var src, dst netip.Addr
	var payload []byte
	if eth.Type == wire.TypeIPv4 {
		ip, p, err := wire.ParseIPv4(packet)
		if err != nil || !wire.IPv4ChecksumOK(packet) {
			h.t.Errorf("a probe is no packet: %v", err)
			return nil
		}
		proto, src, dst, payload = ip.Protocol, ip.Src, ip.Dst, p
	} else {
		ip, p, err := wire.ParseIPv6(packet)
		if err != nil {
			h.t.Errorf("a probe is no packet: %v", err)
			return nil
		}
		proto, src, dst, payload = ip.NextHeader, ip.Src, ip.Dst, p
	}
	switch proto {
	case wire.ProtoICMP:
		return h.echo4(src, dst, payload)
	case wire.ProtoICMPv6:
		return h.echo6(src, dst, payload)
	case wire.ProtoTCP:
		return h.tcp(src, dst, payload)
	case wire.ProtoUDP:
		return h.udp(src, dst, packet, payload)
	}
	return nil
}

func (h *host) echo4(src, dst netip.Addr, b []byte) [][]byte {
	m, data, err := wire.ParseICMPv4(b)
	if err != nil || m.Type != wire.ICMPv4Echo || !wire.ICMPv4ChecksumOK(b) {
		h.t.Errorf("not an echo: %+v, %v", m, err)
	}
	return [][]byte{packet(dst, src, wire.ProtoICMP, icmp4(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: m.Rest}, data))}
}

func (h *host) echo6(src, dst netip.Addr, b []byte) [][]byte {
	m, data, err := wire.ParseICMPv6(b)
	if err != nil || m.Type != wire.ICMPv6Echo || !wire.ICMPv6ChecksumOK(b, src, dst) {
		h.t.Errorf("not an echo: %+v, %v", m, err)
	}
	out := make([]byte, wire.ICMPv6Len+len(data))
	wire.ICMPv6{Type: wire.ICMPv6EchoReply, Rest: m.Rest}.Put(out)
	copy(out[wire.ICMPv6Len:], data)
	wire.PutICMPv6Checksum(out, dst, src)
	return [][]byte{packet(dst, src, wire.ProtoICMPv6, out)}
}

func (h *host) tcp(src, dst netip.Addr, b []byte) [][]byte {
	m, _, err := wire.ParseTCP(b)
	if err != nil || m.Flags != wire.SYN || m.MSS == 0 || !wire.TCPChecksumOK(b, src, dst) {
		h.t.Errorf("not a SYN: %+v, %v", m, err)
	}
	answer := wire.TCP{SrcPort: m.DstPort, DstPort: m.SrcPort, Ack: m.Seq + 1, Flags: wire.RST | wire.ACK}
	if h.open(m.DstPort) {
		answer.Flags, answer.Seq, answer.Window = wire.SYN|wire.ACK, 77, 1000
		answer.TCPOptions = wire.TCPOptions{MSS: 1460, HasTimestamps: true, TSVal: 5, TSEcr: m.TSVal}
	}
	out := make([]byte, answer.Len())
	answer.Put(out)
	wire.PutTCPChecksum(out, dst, src)
	return [][]byte{packet(dst, src, wire.ProtoTCP, out)}
}

func (h *host) udp(src, dst netip.Addr, whole, b []byte) [][]byte {
	m, payload, err := wire.ParseUDP(b)
	if err != nil || m.NoChecksum || !wire.UDPChecksumOK(b, src, dst) {
		h.t.Errorf("not a datagram: %+v, %v", m, err)
	}
	if !h.open(m.DstPort) {
		return [][]byte{unreachable(dst, src, wire.CodePortUnreachable, whole)}
	}
	answer := wire.UDP{SrcPort: m.DstPort, DstPort: m.SrcPort, PayloadLen: len(payload)}
	out := make([]byte, wire.UDPLen+len(payload))
	answer.Put(out)
	copy(out[wire.UDPLen:], payload)
	wire.PutUDPChecksum(out, dst, src)
	return [][]byte{packet(dst, src, wire.ProtoUDP, out)}
}

// icmp4 returns an ICMP message with its checksum.
func icmp4(h wire.ICMPv4, data []byte) []byte {
	b := make([]byte, wire.ICMPv4Len+len(data))
	h.Put(b)
	copy(b[wire.ICMPv4Len:], data)
	wire.PutICMPv4Checksum(b)
	return b
}

// unreachable returns an error from a router or host about the IPv4 packet whole. It quotes as little as allowed
// (RFC 792).
func unreachable(from, to netip.Addr, code uint8, whole []byte) []byte {
	return packet(from, to, wire.ProtoICMP, icmp4(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: code}, whole[:wire.IPv4MinLen+8]))
}

// packet returns a frame to the prober.
func packet(src, dst netip.Addr, proto wire.Protocol, body []byte) []byte {
	eth := wire.Ethernet{Dst: path4.SourceMAC, Src: path4.NextHopMAC, Type: wire.TypeIPv4}
	if src.Is6() {
		b := make([]byte, wire.EthernetLen+wire.IPv6Len+len(body))
		eth.Type = wire.TypeIPv6
		eth.Put(b)
		ip := wire.IPv6{NextHeader: proto, HopLimit: 60, Src: src, Dst: dst, PayloadLen: len(body)}
		ip.Put(b[wire.EthernetLen:])
		copy(b[wire.EthernetLen+wire.IPv6Len:], body)
		return b
	}
	b := make([]byte, wire.EthernetLen+wire.IPv4MinLen+len(body))
	eth.Put(b)
	ip := wire.IPv4{TTL: 60, Protocol: proto, Src: src, Dst: dst, PayloadLen: len(body)}
	ip.Put(b[wire.EthernetLen:])
	copy(b[wire.EthernetLen+wire.IPv4MinLen:], body)
	return b
}

// asked returns the destination address of an IPv4 probe as a number.
func asked(frame []byte) uint32 {
	return binary.BigEndian.Uint32(frame[wire.EthernetLen+ipv4Dst:])
}
