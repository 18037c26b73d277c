package main

import (
	"net"
	"syscall"

	"example.com/guest/internal/check"
)

// pathMTU sets the socket options by which QUIC libraries discover the MTU of a path.
func pathMTU() {
	const ipMTU, ipv6MTUDiscover, unknown = 14, 23, 9
	c, err := net.Dial("udp4", "127.0.0.1:9")
	check.Nil(err, "dial")
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	check.Nil(err, "descriptor")
	raw.Control(func(fd uintptr) {
		how, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER)
		check.That(how == syscall.IP_PMTUDISC_WANT && err == nil, "by default: %d, %v", how, err)
		check.Nil(syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER, syscall.IP_PMTUDISC_PROBE), "probe")
		how, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER)
		check.That(how == syscall.IP_PMTUDISC_PROBE && err == nil, "then: %d, %v", how, err)
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER, unknown)
		check.Equal(err, error(syscall.EINVAL), "an unknown way")
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, ipv6MTUDiscover, syscall.IP_PMTUDISC_DO)
		check.Equal(err, error(syscall.ENOPROTOOPT), "an option of the other version")
		n, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_IP, ipMTU)
		check.That(n >= 65535 && err == nil, "MTU %d, %v", n, err)
	})
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	check.Nil(err, "listen")
	defer u.Close()
	raw, err = u.(*net.UDPConn).SyscallConn()
	check.Nil(err, "descriptor")
	raw.Control(func(fd uintptr) {
		_, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_IP, ipMTU)
		check.Equal(err, error(syscall.ENOTCONN), "MTU without a peer")
	})
}
