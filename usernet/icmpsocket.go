package usernet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"

	"loam/wire"
)

// An icmpSocket sends echo requests from the host. Linux has a kind for
// everybody (icmp(7), "ping sockets"), as far as net.ipv4.ping_group_range
// allows; root may have a raw one instead, which hears all ICMP there is.
//
// A ping socket puts an identifier of its own into what it sends, and is given
// only what answers that; a raw one has to do both itself.
type icmpSocket struct {
	*icmpVersion
	conn net.PacketConn // *net.UDPConn of a ping socket, *net.IPConn of a raw one
	id   uint16         // of a raw socket
	raw  bool
}

// icmpVersion is what differs between the versions of IP.
type icmpVersion struct {
	domain, protocol int    // of a ping socket
	network, any     string // of a raw one
	echo, reply      uint8  // types of messages
}

var (
	ipv4 = &icmpVersion{syscall.AF_INET, syscall.IPPROTO_ICMP, "ip4:icmp", "0.0.0.0", uint8(wire.ICMPv4Echo), uint8(wire.ICMPv4EchoReply)}
	ipv6 = &icmpVersion{syscall.AF_INET6, syscall.IPPROTO_ICMPV6, "ip6:ipv6-icmp", "::", uint8(wire.ICMPv6Echo), uint8(wire.ICMPv6EchoReply)}
)

// newICMPSocket opens the best socket that the host allows.
func newICMPSocket(v *icmpVersion) (*icmpSocket, error) {
	conn, err := pingSocket(v)
	if err == nil {
		return &icmpSocket{icmpVersion: v, conn: conn}, nil
	}
	if conn, rawErr := net.ListenPacket(v.network, v.any); rawErr == nil {
		return &icmpSocket{icmpVersion: v, conn: conn, raw: true, id: uint16(rand.Uint32())}, nil
	}
	return nil, fmt.Errorf("ping sockets are not allowed (%w): have net.ipv4.ping_group_range include this user's group", err)
}

// pingSocket makes a ping socket. Package net has no name for these, but takes
// them for what they resemble: UDP sockets.
func pingSocket(v *icmpVersion) (net.PacketConn, error) {
	fd, err := syscall.Socket(v.domain, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, v.protocol)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "ping")
	defer file.Close() // FilePacketConn duplicates it
	return net.FilePacketConn(file)
}

// send sends an echo request. Messages of both versions are alike, but for the type; the
// checksum of ICMPv6 is the kernel's business (RFC 3542 section 3.1).
func (s *icmpSocket) send(dst netip.Addr, seq uint16, data []byte) error {
	msg := make([]byte, wire.ICMPv4Len+len(data))
	wire.ICMPv4{Type: wire.ICMPv4Type(s.echo), Rest: wire.EchoRest(s.id, seq)}.Put(msg)
	copy(msg[wire.ICMPv4Len:], data)
	wire.PutICMPv4Checksum(msg)
	var to net.Addr = &net.UDPAddr{IP: dst.AsSlice()}
	if s.raw {
		to = &net.IPAddr{IP: dst.AsSlice()}
	}
	_, err := s.conn.WriteTo(msg, to)
	return err
}

// receive waits for an ICMP message.
func (s *icmpSocket) receive(buf []byte) (from netip.Addr, msg []byte, err error) {
	n, addr, err := s.conn.ReadFrom(buf)
	if err != nil {
		return netip.Addr{}, nil, err
	}
	var ip net.IP
	switch a := addr.(type) {
	case *net.UDPAddr:
		ip = a.IP
	case *net.IPAddr:
		ip = a.IP
	}
	from, _ = netip.AddrFromSlice(ip)
	return from.Unmap(), buf[:n], nil
}

// answered reads the sequence number of a reply that answers us; false: msg is none.
func (s *icmpSocket) answered(msg []byte) (seq uint16, ok bool) {
	h, _, err := wire.ParseICMPv4(msg)
	if err != nil || uint8(h.Type) != s.reply || s.raw && h.EchoID() != s.id {
		return 0, false
	}
	return h.EchoSeq(), true
}

func (s *icmpSocket) close() { s.conn.Close() }
