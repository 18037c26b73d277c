package main

import (
	"encoding/binary"
	"syscall"

	"example.com/guest/internal/check"
)

// ipRecvErrRFC4884 is an option that package syscall lacks (linux/in.h).
const ipRecvErrRFC4884 = 26

// extensions: IP_RECVERR_RFC4884 reports where the extensions of an ICMP error begin (RFC 4884). Routers add such
// extensions to the replies to traceroute, for example MPLS labels.
func extensions() {
	fd := open(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	defer syscall.Close(fd)
	check.Nil(syscall.Bind(fd, bound(syscall.AF_INET, 0)), "bind")
	recvErr(fd, syscall.AF_INET, 1)
	for _, bad := range []int{-1, 2} {
		check.Equal(syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipRecvErrRFC4884, bad), error(syscall.EINVAL), "IP_RECVERR_RFC4884 of no bool")
	}
	check.Nil(syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipRecvErrRFC4884, 1), "IP_RECVERR_RFC4884")
	raw := open(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP)
	defer syscall.Close(raw)
	sound := []byte{0x20, 0, 0, 0, 0, 8, 1, 1, 1, 2, 3, 4}
	unsound := []byte{0x20, 0, 0, 0, 0, 9, 1, 1, 1, 2, 3, 4}
	for _, c := range []struct {
		words  byte // the length field of the message, in words
		behind []byte
		want   [4]byte // struct sock_ee_data_rfc4884
	}{{32, sound, [4]byte{100}}, {32, unsound, [4]byte{100, 0, 1}}, {0, sound, [4]byte{}}} {
		check.Nil(syscall.Sendto(raw, timeExceeded(port(fd), c.words, c.behind), 0, self(syscall.AF_INET)), "send an error")
		waitError(fd, "extensions")
		b := make([]byte, 200)
		n, control, _, _ := take(fd, b, "extensions")
		check.That(n == 112 && len(control) == 1, "extensions: %d bytes, %d control messages", n, len(control))
		check.Equal(string(control[0].Data[12:16]), string(c.want[:]), "extensions: where they are")
	}
}

// timeExceeded returns an ICMP message about a datagram from a port of this host. The message quotes 128 bytes of the
// datagram.
func timeExceeded(port uint16, words byte, behind []byte) []byte {
	quote := make([]byte, 128)
	copy(quote, []byte{0x45, 0, 0, 228, 0, 1, 0, 0, 1, syscall.IPPROTO_UDP, 0, 0, 127, 0, 0, 1, 127, 0, 0, 9})
	binary.BigEndian.PutUint16(quote[20:], port)
	copy(quote[22:], []byte{0, 53, 0, 208})
	b := append([]byte{11, 0, 0, 0, 0, words, 0, 0}, quote...)
	b = append(b, behind...)
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum&0xffff+sum>>16))
	return b
}
