package main

import (
	"bytes"
	"syscall"

	"example.com/guest/internal/check"
)

// frames: a packet socket receives a copy of a sent datagram, with the name of the interface.
func frames() {
	const all = 0x0300 // ETH_P_ALL in network byte order
	s, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, all)
	check.Nil(err, "packet socket")
	check.Nil(syscall.Bind(s, &syscall.SockaddrLinklayer{Protocol: all, Ifindex: 1}), "bind")
	udp, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	check.Nil(err, "socket")
	check.Nil(syscall.Sendto(udp, []byte("seen by others"), 0, &syscall.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}), "sendto")
	b := make([]byte, 100)
	n, from, err := syscall.Recvfrom(s, b, 0)
	check.Nil(err, "recvfrom")
	name, ok := from.(*syscall.SockaddrLinklayer)
	check.That(ok && name.Ifindex == 1 && name.Protocol == 8 && name.Hatype == 772 && name.Pkttype == syscall.PACKET_OUTGOING, "from %+v", from)
	check.That(n == 14+20+8+14 && bytes.HasSuffix(b[:n], []byte("seen by others")), "%x", b[:n])
	closeAll(s, udp)
}
