// Command icmp uses ping sockets (icmp(7)) and raw sockets (raw(7)) on the loopback, in the ways that programs do, and
// rare socket options. Its output is the same on Linux.
package main

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"example.com/guest/internal/check"
)

func main() {
	ping(syscall.AF_INET)
	ping(syscall.AF_INET6)
	pingErrors()
	errorQueue()
	pingWaits()
	pingControl()
	raw4()
	raw6()
	rawHeader()
	rawProtocol()
	rawOptions()
	refused()
	device()
	arrival()
	check.Done()
}

// Types of messages, and options that package syscall lacks (linux/icmp.h, linux/in6.h).
const (
	echo4, reply4, echo6, reply6 = 8, 0, 128, 129

	solRaw           = 255
	icmpFilter       = 1
	ipv6Checksum     = 7
	ipv6RecvHopLimit = 51
	ipv6HopLimit     = 52
)

// message returns an ICMP message with the checksum of IPv4.
func message(kind byte, id, seq uint16, data string) []byte {
	b := []byte{kind, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, id)
	b = append(binary.BigEndian.AppendUint16(b, seq), data...)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return b
}

// checksum returns the Internet checksum (RFC 1071).
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i, c := range b {
		sum += uint32(c) << (8 * uint(1-i%2))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// kinds returns the ICMP protocol of a family, and its types of echo requests and replies.
func kinds(family int) (proto int, request, reply byte) {
	if family == syscall.AF_INET6 {
		return syscall.IPPROTO_ICMPV6, echo6, reply6
	}
	return syscall.IPPROTO_ICMP, echo4, reply4
}

// self returns the loopback address of a family.
func self(family int) syscall.Sockaddr {
	if family == syscall.AF_INET6 {
		return &syscall.SockaddrInet6{Addr: [16]byte{15: 1}}
	}
	return &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
}

// port returns the local port of a socket.
func port(fd int) uint16 {
	name, err := syscall.Getsockname(fd)
	check.Nil(err, "getsockname")
	return portOf(name)
}

func portOf(name syscall.Sockaddr) uint16 {
	switch a := name.(type) {
	case *syscall.SockaddrInet4:
		return uint16(a.Port)
	case *syscall.SockaddrInet6:
		return uint16(a.Port)
	}
	return 0
}

// open creates a socket with a receive timeout of a second.
func open(family, typ, proto int) int {
	fd, err := syscall.Socket(family, typ, proto)
	check.Nil(err, "socket")
	patience(fd, time.Second)
	return fd
}

func patience(fd int, d time.Duration) {
	tv := syscall.NsecToTimeval(int64(d))
	check.Nil(syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &tv), "SO_RCVTIMEO")
}

// ping: the kernel replaces the identifier by the socket's port, and the reply is a message without an IP header.
func ping(family int) {
	proto, request, reply := kinds(family)
	fd := open(family, syscall.SOCK_DGRAM, proto)
	defer syscall.Close(fd)
	check.Equal(port(fd), 0, "port before the first request")
	check.Nil(syscall.Sendto(fd, message(request, 0xdead, 7, "hello"), 0, self(family)), "sendto")
	id := port(fd)
	check.That(id != 0, "the socket has no port after a request")
	b := make([]byte, 100)
	n, from, err := syscall.Recvfrom(fd, b, 0)
	check.Nil(err, "recvfrom")
	check.That(n == 13 && b[0] == reply && b[1] == 0 && string(b[8:n]) == "hello", "the reply is %x", b[:n])
	check.Equal(binary.BigEndian.Uint16(b[4:]), id, "identifier")
	check.Equal(binary.BigEndian.Uint16(b[6:]), 7, "sequence number")
	check.Equal(portOf(from), 0, "port of the sender")
	check.That(family == syscall.AF_INET6 || checksum(b[:n]) == 0, "the checksum of %x is wrong", b[:n])

	typ, _ := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE)
	check.Equal(typ, syscall.SOCK_DGRAM, "SO_TYPE")
	check.Nil(syscall.Connect(fd, self(family)), "connect")
	_, err = syscall.Write(fd, message(request, 0, 8, ""))
	check.Nil(err, "write")
	n, err = syscall.Read(fd, b[:4])
	check.That(n == 4 && err == nil, "read into 4 bytes: %d, %v", n, err)

	other := open(family, syscall.SOCK_DGRAM, proto)
	defer syscall.Close(other)
	check.Nil(syscall.Bind(other, bound(family, 4321)), "bind")
	check.Equal(port(other), 4321, "port after bind")
	check.Equal(syscall.Bind(other, bound(family, 4321)), error(syscall.EINVAL), "bind again")
	third := open(family, syscall.SOCK_DGRAM, proto)
	defer syscall.Close(third)
	reuse, err := syscall.GetsockoptInt(third, syscall.SOL_SOCKET, syscall.SO_REUSEADDR)
	check.That(reuse == 1 && err == nil, "SO_REUSEADDR: %d, %v", reuse, err)
	check.Nil(syscall.SetsockoptInt(third, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0), "SO_REUSEADDR")
	check.Equal(syscall.Bind(third, bound(family, 4321)), error(syscall.EADDRINUSE), "bind to what is in use")
	check.Nil(syscall.SetsockoptInt(third, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), "SO_REUSEADDR")
	check.Nil(syscall.Bind(third, bound(family, 4321)), "bind to what is shared")
	check.Nil(syscall.Sendto(other, message(request, 0, 3, ""), 0, self(family)), "sendto")
	n, _, err = syscall.Recvfrom(third, b, 0)
	check.That(n == 8 && err == nil && b[7] == 3, "the newest gets the reply: %x, %v", b[:n], err)
	check.Nil(syscall.Sendto(fd, message(request, 0, 9, ""), 0, self(family)), "sendto")
	patience(other, 20*time.Millisecond)
	_, _, err = syscall.Recvfrom(other, b, 0)
	check.Equal(err, error(syscall.EAGAIN), "a reply to another")
}

// bound returns the loopback address with a port.
func bound(family int, port int) syscall.Sockaddr {
	switch a := self(family).(type) {
	case *syscall.SockaddrInet4:
		a.Port = port
		return a
	case *syscall.SockaddrInet6:
		a.Port = port
		return a
	}
	return nil
}

func pingErrors() {
	fd := open(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP)
	defer syscall.Close(fd)
	to := self(syscall.AF_INET)
	for what, c := range map[string]struct {
		b    []byte
		to   syscall.Sockaddr
		want syscall.Errno
	}{
		"half a header":     {make([]byte, 7), to, syscall.EINVAL},
		"a reply":           {message(reply4, 0, 0, ""), to, syscall.EINVAL},
		"a request of IPv6": {message(echo6, 0, 0, ""), to, syscall.EINVAL},
		"a code":            {[]byte{echo4, 1, 0, 0, 0, 0, 0, 0}, to, syscall.EINVAL},
		"too much":          {make([]byte, 70_000), to, syscall.EMSGSIZE},
		"more than IPv4":    {message(echo4, 0, 0, string(make([]byte, 65_510))), to, syscall.EMSGSIZE},
		"to nobody":         {message(echo4, 0, 0, ""), nil, syscall.EDESTADDRREQ},
		"to IPv6":           {message(echo4, 0, 0, ""), self(syscall.AF_INET6), syscall.EAFNOSUPPORT},
		"to no network":     {message(echo4, 0, 0, ""), &syscall.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}}, syscall.ENETUNREACH},
	} {
		err := syscall.Sendto(fd, c.b, 0, c.to)
		if c.to == nil {
			_, err = syscall.Write(fd, c.b)
		}
		check.Equal(err, error(c.want), what)
	}
	check.Equal(syscall.Listen(fd, 1), error(syscall.EOPNOTSUPP), "listen")
	check.Equal(syscall.Bind(fd, to), error(syscall.EINVAL), "bind after a request")
	fresh := open(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP)
	defer syscall.Close(fresh)
	check.Equal(syscall.Bind(fresh, &syscall.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}}), error(syscall.EADDRNOTAVAIL), "bind to an address of another")
	_, err := syscall.GetsockoptInt(fresh, syscall.SOL_SOCKET, syscall.SO_RCVBUF)
	check.Nil(err, "SO_RCVBUF")
}

// pingWaits: the runtime's poller, deadlines and epoll work on ping sockets.
func pingWaits() {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, syscall.IPPROTO_ICMP)
	check.Nil(err, "socket")
	check.Nil(syscall.Bind(fd, bound(syscall.AF_INET, 0)), "bind")
	f := os.NewFile(uintptr(fd), "ping")
	c, err := net.FilePacketConn(f)
	check.Nil(err, "FilePacketConn")
	f.Close()
	defer c.Close()
	local := c.LocalAddr().(*net.UDPAddr)
	check.That(local.IP.IsLoopback() && local.Port != 0, "it is at %v", local)
	b := make([]byte, 100)
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, _, err = c.ReadFrom(b)
	check.That(errors.Is(err, os.ErrDeadlineExceeded), "deadline: %v", err)
	c.SetReadDeadline(time.Now().Add(time.Second))
	go func() {
		time.Sleep(5 * time.Millisecond)
		_, err := c.WriteTo(message(echo4, 0, 1, "x"), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		check.Nil(err, "WriteTo")
	}()
	n, from, err := c.ReadFrom(b)
	check.That(err == nil && n == 9 && b[0] == reply4 && from.String() == "127.0.0.1:0", "ReadFrom: %d from %v, %v", n, from, err)

	blocking := open(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP)
	defer syscall.Close(blocking)
	ep, err := syscall.EpollCreate1(0)
	check.Nil(err, "epoll_create1")
	defer syscall.Close(ep)
	check.Nil(syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, blocking, &syscall.EpollEvent{Events: syscall.EPOLLIN}), "epoll_ctl")
	events := make([]syscall.EpollEvent, 1)
	n, err = syscall.EpollWait(ep, events, 10)
	check.That(n == 0 && err == nil, "epoll before a reply: %d, %v", n, err)
	check.Nil(syscall.Sendto(blocking, message(echo4, 0, 1, ""), 0, self(syscall.AF_INET)), "sendto")
	n, err = syscall.EpollWait(ep, events, 1000)
	check.That(n == 1 && err == nil && events[0].Events == syscall.EPOLLIN, "epoll: %d, %v, %+v", n, err, events)
}

// pingControl: options and control messages set the hop limit of a request, and report the hop limit of the reply.
func pingControl() {
	for _, c := range []struct{ family, level, hops, want, typ int }{
		{syscall.AF_INET, syscall.IPPROTO_IP, syscall.IP_TTL, syscall.IP_RECVTTL, syscall.IP_TTL},
		{syscall.AF_INET6, syscall.IPPROTO_IPV6, syscall.IPV6_UNICAST_HOPS, ipv6RecvHopLimit, ipv6HopLimit},
	} {
		proto, request, _ := kinds(c.family)
		fd := open(c.family, syscall.SOCK_DGRAM, proto)
		check.Nil(syscall.SetsockoptInt(fd, c.level, c.hops, 9), "hops")
		check.Nil(syscall.SetsockoptInt(fd, c.level, c.want, 1), "control messages")
		check.Nil(syscall.Sendto(fd, message(request, 0, 1, "x"), 0, self(c.family)), "sendto")
		b, oob := make([]byte, 20), make([]byte, 100)
		n, oobn, _, _, err := syscall.Recvmsg(fd, b, oob, 0)
		check.Nil(err, "recvmsg")
		list, err := syscall.ParseSocketControlMessage(oob[:oobn])
		check.That(n == 9 && err == nil && len(list) == 1, "%d bytes with %+v, %v", n, list, err)
		for _, m := range list {
			check.Equal(int(m.Header.Level), c.level, "level")
			check.Equal(int(m.Header.Type), c.typ, "type")
			check.Equal(binary.NativeEndian.Uint32(m.Data), 64, "hops of the reply")
		}
		syscall.Close(fd)
	}
}

// raw4: a raw ICMP socket receives a copy of all messages, with the IP header, which package net removes.
func raw4() {
	c, err := net.ListenPacket("ip4:icmp", "127.0.0.1")
	check.Nil(err, "listen")
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	check.Equal(c.LocalAddr().String(), "127.0.0.1", "address")
	request := message(echo4, 0x1234, 7, "hello")
	_, err = c.WriteTo(request, &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Nil(err, "write")
	b := make([]byte, 100)
	n, from, err := c.ReadFrom(b)
	check.That(err == nil && string(b[:n]) == string(request) && from.String() == "127.0.0.1", "the request: %x from %v, %v", b[:n], from, err)
	n, _, err = c.ReadFrom(b)
	check.That(err == nil && string(b[:n]) == string(message(reply4, 0x1234, 7, "hello")), "the reply: %x, %v", b[:n], err)

	fd := open(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP)
	defer syscall.Close(fd)
	check.Equal(port(fd), syscall.IPPROTO_ICMP, "port of a raw socket")
	blocked := binary.NativeEndian.AppendUint32(nil, 1<<echo4)
	check.Nil(syscall.SetsockoptString(fd, solRaw, icmpFilter, string(blocked)), "ICMP_FILTER")
	check.Nil(syscall.Sendto(fd, request, 0, self(syscall.AF_INET)), "sendto")
	n, name, err := syscall.Recvfrom(fd, b, 0)
	check.That(err == nil && n == 33 && b[0] == 0x45 && b[8] == 64 && b[9] == 1 && b[20] == reply4, "with a filter: %x, %v", b[:n], err)
	check.Equal(binary.BigEndian.Uint16(b[2:]), uint16(33), "total length")
	check.Equal(portOf(name), 0, "port of the sender")
}

// raw6: messages have no IP header, and the kernel computes their checksum.
func raw6() {
	c, err := net.ListenPacket("ip6:ipv6-icmp", "::1")
	check.Nil(err, "listen")
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	request := message(echo6, 0x1234, 7, "hello")
	_, err = c.WriteTo(request, &net.IPAddr{IP: net.IPv6loopback})
	check.Nil(err, "write")
	b := make([]byte, 100)
	n, from, err := c.ReadFrom(b)
	check.That(err == nil && b[0] == echo6 && string(b[4:n]) == string(request[4:]) && from.String() == "::1", "the request: %x from %v, %v", b[:n], from, err)
	check.That(string(b[2:4]) != string(request[2:4]), "the checksum is the program's")
	n, _, err = c.ReadFrom(b)
	check.That(err == nil && b[0] == reply6 && string(b[4:n]) == string(request[4:]), "the reply: %x, %v", b[:n], err)

	fd := open(syscall.AF_INET6, syscall.SOCK_RAW, syscall.IPPROTO_ICMPV6)
	defer syscall.Close(fd)
	at, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_IPV6, ipv6Checksum)
	check.That(at == 2 && err == nil, "IPV6_CHECKSUM: %d, %v", at, err)
	check.Equal(syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, ipv6Checksum, 4), error(syscall.EINVAL), "IPV6_CHECKSUM of ICMPv6")
	f := syscall.ICMPv6Filter{}
	for i := range f.Data {
		f.Data[i] = ^uint32(0)
	}
	f.Data[reply6/32] &^= 1 << (reply6 % 32)
	check.Nil(syscall.SetsockoptICMPv6Filter(fd, syscall.IPPROTO_ICMPV6, 1, &f), "ICMP6_FILTER")
	got, err := syscall.GetsockoptICMPv6Filter(fd, syscall.IPPROTO_ICMPV6, 1)
	check.That(err == nil && *got == f, "the filter is %v, %v", got, err)
	check.Nil(syscall.Sendto(fd, request, 0, self(syscall.AF_INET6)), "sendto")
	n, _, err = syscall.Recvfrom(fd, b, 0)
	check.That(err == nil && n == 13 && b[0] == reply6, "with a filter: %x, %v", b[:n], err)
}

// rawHeader: with IP_HDRINCL the program writes the IP header.
func rawHeader() {
	fd := open(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_RAW)
	defer syscall.Close(fd)
	on, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_HDRINCL)
	check.That(on == 1 && err == nil, "IP_HDRINCL of IPPROTO_RAW: %d, %v", on, err)
	in := open(syscall.AF_INET, syscall.SOCK_RAW, 200)
	defer syscall.Close(in)
	packet := append([]byte{0x45, 0, 0, 0, 0, 0, 0, 0, 3, 200, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1}, "hello"...)
	check.Nil(syscall.Sendto(fd, packet, 0, self(syscall.AF_INET)), "sendto")
	b := make([]byte, 100)
	n, _, err := syscall.Recvfrom(in, b, 0)
	check.That(err == nil && n == 25 && string(b[20:n]) == "hello" && b[8] == 3, "received %x, %v", b[:n], err)
	check.That(string(b[12:16]) == "\x7f\x00\x00\x01" && binary.BigEndian.Uint16(b[2:]) == 25 && checksum(b[:20]) == 0, "its header is %x", b[:20])
	check.Equal(syscall.Sendto(fd, packet[:10], 0, self(syscall.AF_INET)), error(syscall.EINVAL), "half a header")
	packet[0] = 0x4f
	check.Equal(syscall.Sendto(fd, packet, 0, self(syscall.AF_INET)), error(syscall.EINVAL), "a header longer than all")
}

// rawProtocol: raw sockets receive unknown protocols, and copies of datagrams that UDP also receives.
func rawProtocol() {
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	check.Nil(err, "listen")
	defer udp.Close()
	fd := open(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_UDP)
	defer syscall.Close(fd)
	_, err = udp.WriteTo([]byte("hello"), udp.LocalAddr())
	check.Nil(err, "write")
	b := make([]byte, 100)
	n, _, err := syscall.Recvfrom(fd, b, 0)
	check.That(err == nil && n == 33 && string(b[28:n]) == "hello", "the copy: %x, %v", b[:n], err)
	udp.SetReadDeadline(time.Now().Add(time.Second))
	n, _, err = udp.ReadFrom(b)
	check.That(err == nil && n == 5, "the datagram: %d, %v", n, err)

	connected, err := net.Dial("ip4:201", "127.0.0.1")
	check.Nil(err, "dial")
	defer connected.Close()
	connected.SetDeadline(time.Now().Add(time.Second))
	_, err = connected.Write([]byte("self"))
	check.Nil(err, "write")
	n, err = connected.Read(b)
	check.That(err == nil && n > 20 && string(b[20:n]) == "self", "read %x, %v", b[:n], err)
}

func rawOptions() {
	fd := open(syscall.AF_INET, syscall.SOCK_RAW, 200)
	defer syscall.Close(fd)
	six := open(syscall.AF_INET6, syscall.SOCK_RAW, 200)
	defer syscall.Close(six)
	for what, c := range map[string]struct {
		fd, level, name int
		want            error
	}{
		"ICMP_FILTER of another protocol": {fd, solRaw, icmpFilter, syscall.EOPNOTSUPP},
		"another option of SOL_RAW":       {fd, solRaw, 99, syscall.ENOPROTOOPT},
		"IP_HDRINCL":                      {fd, syscall.IPPROTO_IP, syscall.IP_HDRINCL, nil},
		"UDP_SEGMENT":                     {fd, syscall.IPPROTO_UDP, 103, syscall.ENOPROTOOPT},
		"an odd IPV6_CHECKSUM":            {six, syscall.IPPROTO_IPV6, ipv6Checksum, syscall.EINVAL},
		"IPV6_V6ONLY":                     {six, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, syscall.EINVAL},
	} {
		check.Equal(syscall.SetsockoptInt(c.fd, c.level, c.name, 1), c.want, what)
	}
	at, err := syscall.GetsockoptInt(six, syscall.IPPROTO_IPV6, ipv6Checksum)
	check.That(at == -1 && err == nil, "IPV6_CHECKSUM: %d, %v", at, err)
	check.Equal(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}}), error(syscall.EADDRNOTAVAIL), "bind to an address of another")
	check.Nil(syscall.Bind(fd, bound(syscall.AF_INET, 5)), "bind")
	check.Nil(syscall.Bind(fd, bound(syscall.AF_INET, 5)), "bind again")
	check.Equal(port(fd), 200, "port")
	_, err = syscall.Write(fd, []byte("x"))
	check.Equal(err, error(syscall.EDESTADDRREQ), "write to nobody")
}

// device: SO_BINDTODEVICE binds a socket to an interface.
func device() {
	fd := open(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP)
	defer syscall.Close(fd)
	check.Equal(syscall.BindToDevice(fd, "eth9"), error(syscall.ENODEV), "an interface that there is not")
	check.Nil(syscall.BindToDevice(fd, "lo"), "SO_BINDTODEVICE")
	check.Nil(syscall.Sendto(fd, message(echo4, 0, 1, ""), 0, self(syscall.AF_INET)), "sendto")
	n, _, err := syscall.Recvfrom(fd, make([]byte, 20), 0)
	check.That(n == 8 && err == nil, "by the loopback: %d, %v", n, err)
	check.Nil(syscall.BindToDevice(fd, ""), "SO_BINDTODEVICE of none")
	deviceUDP()
	deviceTCP()
}

// deviceUDP: of several sockets at one port, the one that is bound to the interface receives the datagrams.
func deviceUDP() {
	bind := func(at syscall.Sockaddr, device string) int {
		fd := open(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
		check.Nil(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), "SO_REUSEADDR")
		check.Nil(syscall.BindToDevice(fd, device), "SO_BINDTODEVICE")
		check.Nil(syscall.Bind(fd, at), "bind")
		return fd
	}
	older := bind(self(syscall.AF_INET), "")
	at, err := syscall.Getsockname(older)
	check.Nil(err, "getsockname")
	bound, newer := bind(at, "lo"), bind(at, "")
	check.Nil(syscall.Sendto(newer, []byte("x"), 0, at), "sendto")
	n, _, err := syscall.Recvfrom(bound, make([]byte, 20), 0)
	check.That(n == 1 && err == nil, "the bound one of three: %d, %v", n, err)
	for _, fd := range []int{older, bound, newer} {
		syscall.Close(fd)
	}
}

// deviceTCP: listeners and connections can be bound to an interface, and report when bytes arrived.
func deviceTCP() {
	l := open(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	defer syscall.Close(l)
	check.Equal(syscall.BindToDevice(l, "eth9"), error(syscall.ENODEV), "an interface that there is not")
	check.Nil(syscall.BindToDevice(l, "lo"), "SO_BINDTODEVICE")
	check.Nil(syscall.SetsockoptInt(l, syscall.SOL_SOCKET, soTimestampNS, 1), "SO_TIMESTAMPNS")
	check.Nil(syscall.Bind(l, self(syscall.AF_INET)), "bind")
	check.Nil(syscall.Listen(l, 5), "listen")
	at, err := syscall.Getsockname(l)
	check.Nil(err, "getsockname")
	client := open(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	defer syscall.Close(client)
	check.Nil(syscall.BindToDevice(client, "lo"), "SO_BINDTODEVICE")
	check.Nil(syscall.Connect(client, at), "connect")
	server, _, err := syscall.Accept(l)
	check.Nil(err, "accept")
	defer syscall.Close(server)
	var before time.Time
	var list []syscall.SocketControlMessage
	for tries := 100; len(list) == 0 && tries > 0; tries-- { // Linux enables timestamps with a short delay
		time.Sleep(time.Millisecond)
		before = time.Now()
		_, err = syscall.Write(client, []byte("x"))
		check.Nil(err, "write")
		oob := make([]byte, 100)
		_, n, _, _, err := syscall.Recvmsg(server, make([]byte, 1), oob, 0)
		check.Nil(err, "recvmsg")
		list, err = syscall.ParseSocketControlMessage(oob[:n])
		check.Nil(err, "control messages")
	}
	check.That(len(list) == 1 && list[0].Header.Type == soTimestampNS && len(list[0].Data) == 16, "%+v", list)
	came := time.Unix(int64(binary.NativeEndian.Uint64(list[0].Data)), int64(binary.NativeEndian.Uint64(list[0].Data[8:])))
	check.That(came.Sub(before).Abs() < time.Second, "it came at %v, and was sent at %v", came, before)
}

// Options of UDP that package syscall lacks (asm-generic/socket.h, linux/in.h).
const (
	soTimestampNS = 35
	ipOrigDstAddr = 20
)

// arrival: control messages report when a datagram arrived, and its destination.
func arrival() {
	fd := open(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	defer syscall.Close(fd)
	check.Nil(syscall.Bind(fd, self(syscall.AF_INET)), "bind")
	name, err := syscall.Getsockname(fd)
	check.Nil(err, "getsockname")
	receive := func() []syscall.SocketControlMessage {
		check.Nil(syscall.Sendto(fd, []byte("x"), 0, name), "sendto")
		oob := make([]byte, 200)
		_, n, _, _, err := syscall.Recvmsg(fd, make([]byte, 1), oob, 0)
		check.Nil(err, "recvmsg")
		list, err := syscall.ParseSocketControlMessage(oob[:n])
		check.Nil(err, "control messages")
		return list
	}
	for option, unit := range map[int]int64{syscall.SO_TIMESTAMP: 1000, soTimestampNS: 1} {
		check.Nil(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, option, 1), "SO_TIMESTAMP")
		before := time.Now()
		list := receive()
		check.That(len(list) == 1 && int(list[0].Header.Type) == option && len(list[0].Data) == 16, "option %d: %+v", option, list)
		data := list[0].Data
		at := time.Unix(int64(binary.NativeEndian.Uint64(data)), unit*int64(binary.NativeEndian.Uint64(data[8:])))
		check.That(at.Sub(before).Abs() < time.Second, "option %d: it came at %v, and was sent at %v", option, at, before)
	}
	check.Nil(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMP, 0), "no SO_TIMESTAMP")
	check.Nil(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soTimestampNS, 0), "no SO_TIMESTAMPNS")
	check.Nil(syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipOrigDstAddr, 1), "IP_RECVORIGDSTADDR")
	list := receive()
	check.That(len(list) == 1 && list[0].Header.Type == ipOrigDstAddr && len(list[0].Data) == 16, "IP_ORIGDSTADDR: %+v", list)
	data := list[0].Data
	check.That(binary.BigEndian.Uint16(data[2:]) == portOf(name) && string(data[4:8]) == "\x7f\x00\x00\x01", "sent to %x", data)

	tcp := open(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	defer syscall.Close(tcp)
	for set, want := range map[int]int{0: 0, 1: 1, 2: 3, 5: 7, 200: 247} {
		check.Nil(syscall.SetsockoptInt(tcp, syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, set), "TCP_DEFER_ACCEPT")
		got, err := syscall.GetsockoptInt(tcp, syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT)
		check.That(got == want && err == nil, "TCP_DEFER_ACCEPT of %d reads %d, %v, want %d", set, got, err, want)
	}
}

// refused: socket types and protocols that do not exist.
func refused() {
	for _, c := range []struct {
		family, typ, proto int
		want               syscall.Errno
	}{
		{syscall.AF_INET, syscall.SOCK_RAW, 0, syscall.EPROTONOSUPPORT},
		{syscall.AF_INET6, syscall.SOCK_RAW, 0, syscall.EPROTONOSUPPORT},
		{syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMPV6, syscall.EPROTONOSUPPORT},
		{syscall.AF_INET6, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP, syscall.EPROTONOSUPPORT},
		{syscall.AF_INET, syscall.SOCK_STREAM, syscall.IPPROTO_ICMP, syscall.EPROTONOSUPPORT},
	} {
		_, err := syscall.Socket(c.family, c.typ, c.proto)
		check.Equal(err, error(c.want), "socket")
	}
}
