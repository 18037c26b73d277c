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

// An icmpSocket sends echo requests from the host. It is a ping socket (icmp(7)) if net.ipv4.ping_group_range permits
// one. Otherwise it is a raw socket, which requires root and receives all ICMP messages of the host.
//
// For a ping socket, the kernel sets the identifier in requests and delivers only matching replies. For a raw socket,
// icmpSocket does both itself.
type icmpSocket struct {
	*icmpVersion
	conn net.PacketConn // *net.UDPConn for a ping socket, *net.IPConn for a raw socket
	id   uint16         // identifier in requests; used with a raw socket only
	raw  bool
}

// icmpVersion holds the parameters that differ between ICMP for IPv4 and ICMP for IPv6.
type icmpVersion struct {
	domain, protocol int    // arguments of socket(2), for a ping socket
	network, any     string // arguments of net.ListenPacket, for a raw socket
	echo, reply      uint8  // ICMP types of an echo request and an echo reply
}

var (
	ipv4 = &icmpVersion{syscall.AF_INET, syscall.IPPROTO_ICMP, "ip4:icmp", "0.0.0.0", uint8(wire.ICMPv4Echo), uint8(wire.ICMPv4EchoReply)}
	ipv6 = &icmpVersion{syscall.AF_INET6, syscall.IPPROTO_ICMPV6, "ip6:ipv6-icmp", "::", uint8(wire.ICMPv6Echo), uint8(wire.ICMPv6EchoReply)}
)

// newICMPSocket opens a ping socket or, if that is not permitted, a raw socket.
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

// pingSocket creates a ping socket. Package net has no type for ping sockets; it treats
// them as UDP sockets.
func pingSocket(v *icmpVersion) (net.PacketConn, error) {
	fd, err := syscall.Socket(v.domain, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, v.protocol)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "ping")
	defer file.Close() // FilePacketConn duplicates the descriptor
	return net.FilePacketConn(file)
}

// send sends an echo request. Requests of both versions differ only in their type. For
// ICMPv6 the kernel replaces the checksum (RFC 3542 section 3.1).
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

// receive waits for an ICMP message and returns its source. msg is a part of buf.
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

// answered returns the sequence number of an echo reply to this socket. It returns false
// if msg is not such a reply.
func (s *icmpSocket) answered(msg []byte) (seq uint16, ok bool) {
	h, _, err := wire.ParseICMPv4(msg)
	if err != nil || uint8(h.Type) != s.reply || s.raw && h.EchoID() != s.id {
		return 0, false
	}
	return h.EchoSeq(), true
}

func (s *icmpSocket) close() { s.conn.Close() }
