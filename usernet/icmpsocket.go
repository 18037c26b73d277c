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
	conn net.PacketConn // *net.UDPConn of a ping socket, *net.IPConn of a raw one
	id   uint16         // of a raw socket
	raw  bool
}

// newICMPSocket opens the best socket that the host allows.
func newICMPSocket() (*icmpSocket, error) {
	conn, err := pingSocket()
	if err == nil {
		return &icmpSocket{conn: conn}, nil
	}
	if conn, rawErr := net.ListenPacket("ip4:icmp", "0.0.0.0"); rawErr == nil {
		return &icmpSocket{conn: conn, raw: true, id: uint16(rand.Uint32())}, nil
	}
	return nil, fmt.Errorf("ping sockets are not allowed (%w): have net.ipv4.ping_group_range include this user's group", err)
}

// pingSocket makes a ping socket. Package net has no name for these, but takes
// them for what they resemble: UDP sockets.
func pingSocket() (net.PacketConn, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, syscall.IPPROTO_ICMP)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "ping")
	defer file.Close() // FilePacketConn duplicates it
	return net.FilePacketConn(file)
}

// send sends an echo request.
func (s *icmpSocket) send(dst netip.Addr, seq uint16, data []byte) error {
	msg := make([]byte, wire.ICMPv4Len+len(data))
	wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(s.id, seq)}.Put(msg)
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

// owns reports whether a reply with this identifier answers us.
func (s *icmpSocket) owns(id uint16) bool { return !s.raw || id == s.id }

func (s *icmpSocket) close() { s.conn.Close() }
