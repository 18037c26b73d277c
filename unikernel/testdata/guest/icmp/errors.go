package main

import (
	"encoding/binary"
	"syscall"
	"time"

	"example.com/guest/internal/check"
)

// Options that package syscall lacks (linux/in6.h).
const ipv6RecvErr = 25

// errorQueue: errors of sent datagrams are read with MSG_ERRQUEUE (ip(7), ipv6(7)).
func errorQueue() {
	for _, c := range []struct {
		what       string
		family     int // address family of the socket
		to         int // address family of the destination
		kind, code byte
	}{
		{"udp", syscall.AF_INET, syscall.AF_INET, 3, 3},
		{"udp6", syscall.AF_INET6, syscall.AF_INET6, 1, 4},
		{"udp4 of udp6", syscall.AF_INET6, syscall.AF_INET, 3, 3},
	} {
		fd := open(c.family, syscall.SOCK_DGRAM, 0)
		recvErr(fd, c.family, 1)
		port := closedPort(c.to)
		to := mapped(c.family, c.to, port)
		check.Nil(syscall.Sendto(fd, []byte("first"), 0, to), c.what+": send")
		awaitSocketError(fd, c.what)
		check.Nil(syscall.Sendto(fd, []byte("second"), 0, to), c.what+": send again")
		awaitSocketError(fd, c.what)
		b := make([]byte, 3)
		n, control, flags, from := take(fd, b, c.what)
		check.Equal(string(b[:n]), "fir", c.what+": payload")
		check.Equal(flags, syscall.MSG_ERRQUEUE|syscall.MSG_TRUNC, c.what+": flags")
		check.Equal(portOf(from), port, c.what+": port")
		checkError(control, c.family, c.to, c.kind, c.code, c.what)
		check.Equal(socketError(fd), syscall.ECONNREFUSED, c.what+": the error of the next one")
		b = make([]byte, 100)
		n, _, flags, _ = take(fd, b, c.what)
		check.Equal(string(b[:n]), "second", c.what+": payload")
		check.Equal(flags, syscall.MSG_ERRQUEUE, c.what+": flags")
		check.Equal(socketError(fd), 0, c.what+": no error is left")
		_, _, _, _, err := syscall.Recvmsg(fd, b, nil, syscall.MSG_ERRQUEUE)
		check.Equal(err, error(syscall.EAGAIN), c.what+": nothing is left")
		check.Nil(syscall.Sendto(fd, []byte("third"), 0, to), c.what+": send")
		awaitSocketError(fd, c.what)
		recvErr(fd, c.family, 0)
		_, _, _, _, err = syscall.Recvmsg(fd, b, nil, syscall.MSG_ERRQUEUE)
		check.Equal(err, error(syscall.EAGAIN), c.what+": switching it off empties it")
		syscall.Close(fd)
	}
	rawErrors()
	dontFragment()
	extensions()
}

// dontFragment: IPV6_DONTFRAG and IPV6_MTU (ipv6(7)), and the local error of a datagram that is too long.
func dontFragment() {
	const ipv6MTU, ipv6DontFrag = 24, 62
	fd := open(syscall.AF_INET6, syscall.SOCK_DGRAM, 0)
	defer syscall.Close(fd)
	check.Nil(syscall.Bind(fd, bound(syscall.AF_INET6, 0)), "bind")
	to := mapped(syscall.AF_INET6, syscall.AF_INET6, port(fd))
	check.Equal(syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, ipv6MTU, 1279), error(syscall.EINVAL), "IPV6_MTU of 1279")
	check.Nil(syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, ipv6MTU, 1280), "IPV6_MTU")
	b := make([]byte, 3000)
	check.Nil(syscall.Sendto(fd, b, 0, to), "a long datagram")
	n, _, err := syscall.Recvfrom(fd, b, 0)
	check.That(n == 3000 && err == nil, "it arrives: %d, %v", n, err)
	recvErr(fd, syscall.AF_INET6, 1)
	check.Nil(syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, ipv6DontFrag, 1), "IPV6_DONTFRAG")
	check.Nil(syscall.Sendto(fd, b[:1232], 0, to), "what fits")
	check.Equal(syscall.Sendto(fd, b[:1233], 0, to), error(syscall.EMSGSIZE), "what does not")
	n, control, _, from := take(fd, b, "local")
	check.That(n == 0 && portOf(from) == port(fd), "it is about %d bytes to %v", n, from)
	want := binary.NativeEndian.AppendUint32(nil, uint32(syscall.EMSGSIZE))
	want = binary.NativeEndian.AppendUint32(append(want, 1, 0, 0, 0), 1280)
	check.That(len(control) == 1 && string(control[0].Data) == string(append(want, make([]byte, 4+28)...)), "the error is %v", control)
}

// rawErrors: the error queue of a raw socket returns the sent packet, the ICMP error about it, and the error's TTL.
func rawErrors() {
	fd := open(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_UDP)
	defer syscall.Close(fd)
	recvErr(fd, syscall.AF_INET, 1)
	check.Nil(syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_RECVTTL, 1), "IP_RECVTTL")
	datagram := binary.BigEndian.AppendUint16([]byte{0, 9}, closedPort(syscall.AF_INET))
	datagram = append(datagram, 0, 9, 0, 0, 'x')
	check.Nil(syscall.Sendto(fd, datagram, 0, self(syscall.AF_INET)), "raw: send")
	waitError(fd, "raw")
	b := make([]byte, 100)
	n, control, _, _ := take(fd, b, "raw")
	check.Equal(string(b[:n]), string(datagram), "raw: payload")
	check.Equal(len(control), 2, "raw: control messages")
	check.That(control[0].Header.Type == syscall.IP_TTL && control[0].Data[0] == 64, "raw: the TTL is %v", control[0])
	checkError(control[1:], syscall.AF_INET, syscall.AF_INET, 3, 3, "raw")
}

func recvErr(fd, family, on int) {
	check.Nil(syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_RECVERR, on), "IP_RECVERR")
	if family == syscall.AF_INET6 {
		check.Nil(syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, ipv6RecvErr, on), "IPV6_RECVERR")
	}
}

// closedPort returns a port that no socket is bound to.
func closedPort(family int) uint16 {
	fd := open(family, syscall.SOCK_DGRAM, 0)
	defer syscall.Close(fd)
	check.Nil(syscall.Bind(fd, bound(family, 0)), "bind")
	return port(fd)
}

// mapped returns the loopback address of family in the form that a socket of another family uses.
func mapped(socket, family int, port uint16) syscall.Sockaddr {
	if socket == syscall.AF_INET6 && family == syscall.AF_INET {
		return &syscall.SockaddrInet6{Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}, Port: int(port)}
	}
	switch a := self(family).(type) {
	case *syscall.SockaddrInet4:
		a.Port = int(port)
		return a
	case *syscall.SockaddrInet6:
		a.Port = int(port)
		return a
	}
	return nil
}

// waitError waits until epoll reports an error.
func waitError(fd int, what string) {
	ep, err := syscall.EpollCreate1(0)
	check.Nil(err, "epoll_create1")
	defer syscall.Close(ep)
	check.Nil(syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLRDHUP}), "epoll_ctl")
	var list [1]syscall.EpollEvent
	n, err := syscall.EpollWait(ep, list[:], 1000)
	check.That(n == 1 && err == nil && list[0].Events&syscall.EPOLLERR != 0, "%s: no EPOLLERR: %d, %v, %v", what, n, list[0], err)
}

// awaitSocketError waits for the error of a message that has just been sent, and clears it (SO_ERROR). By then the
// message is in the error queue.
func awaitSocketError(fd int, what string) {
	for range 1000 {
		if socketError(fd) == syscall.ECONNREFUSED {
			waitError(fd, what)
			return
		}
		time.Sleep(time.Millisecond)
	}
	check.That(false, "%s: the socket has no error", what)
}

func socketError(fd int) syscall.Errno {
	n, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
	check.Nil(err, "SO_ERROR")
	return syscall.Errno(n)
}

// take receives from the error queue.
func take(fd int, b []byte, what string) (int, []syscall.SocketControlMessage, int, syscall.Sockaddr) {
	space := make([]byte, 512)
	n, size, flags, from, err := syscall.Recvmsg(fd, b, space, syscall.MSG_ERRQUEUE)
	check.Nil(err, what+": MSG_ERRQUEUE")
	control, err := syscall.ParseSocketControlMessage(space[:size])
	check.Nil(err, what+": control messages")
	return n, control, flags, from
}

// checkError checks a struct sock_extended_err: it must describe an ICMP error of this host about a closed port.
func checkError(control []syscall.SocketControlMessage, family, to int, kind, code byte, what string) {
	level, typ, origin := int32(syscall.IPPROTO_IP), int32(syscall.IP_RECVERR), byte(2)
	if family == syscall.AF_INET6 {
		level, typ = syscall.IPPROTO_IPV6, ipv6RecvErr
	}
	if to == syscall.AF_INET6 {
		origin = 3
	}
	want := binary.NativeEndian.AppendUint32(nil, uint32(syscall.ECONNREFUSED))
	want = append(want, origin, kind, code, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	switch offender := mapped(family, to, 0).(type) {
	case *syscall.SockaddrInet4:
		want = append(want, syscall.AF_INET, 0, 0, 0)
		want = append(append(want, offender.Addr[:]...), make([]byte, 8)...)
	case *syscall.SockaddrInet6:
		want = append(want, syscall.AF_INET6, 0, 0, 0, 0, 0, 0, 0)
		want = append(append(want, offender.Addr[:]...), make([]byte, 4)...)
	}
	if len(control) != 1 {
		check.That(false, "%s: %d control messages", what, len(control))
		return
	}
	h := control[0].Header
	check.That(h.Level == level && h.Type == typ, "%s: control message %d, %d", what, h.Level, h.Type)
	check.Equal(string(control[0].Data), string(want), what+": struct sock_extended_err")
}
