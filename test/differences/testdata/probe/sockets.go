package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// option creates a socket and reads one of its options.
func option(family, kind, level, name int) string {
	fd, err := syscall.Socket(family, kind, 0)
	if err != nil {
		return word(err)
	}
	defer syscall.Close(fd)
	v, err := syscall.GetsockoptInt(fd, level, name)
	if err != nil {
		return word(err)
	}
	return fmt.Sprint(v)
}

// set creates a socket and sets one of its options.
func set(family, kind, level, name, value int) string {
	fd, err := syscall.Socket(family, kind, 0)
	if err != nil {
		return word(err)
	}
	defer syscall.Close(fd)
	return word(syscall.SetsockoptInt(fd, level, name, value))
}

const (
	inet   = syscall.AF_INET
	stream = syscall.SOCK_STREAM
	dgram  = syscall.SOCK_DGRAM
)

var sockets = []probe{
	{"TCP over loopback", func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return word(err)
		}
		defer l.Close()
		go func() {
			c, err := l.Accept()
			if err == nil {
				io.Copy(c, c)
				c.Close()
			}
		}()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return word(err)
		}
		c.Write([]byte("hello"))
		c.(*net.TCPConn).CloseWrite()
		b, err := io.ReadAll(c)
		return joined(word(err), string(b))
	}},
	{"UDP over loopback", func() string {
		a, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return word(err)
		}
		a.WriteTo([]byte("hello"), a.LocalAddr())
		b := make([]byte, 10)
		a.SetDeadline(time.Now().Add(5 * time.Second))
		n, _, err := a.ReadFrom(b)
		return joined(word(err), string(b[:n]))
	}},
	{"TCP over IPv6 loopback", func() string {
		l, err := net.Listen("tcp", "[::1]:0")
		if err != nil {
			return word(err)
		}
		l.Close()
		return "ok"
	}},
	{"a connection to a port that nobody listens on", func() string { _, err := net.Dial("tcp", "127.0.0.1:1"); return word(err) }},
	{"a datagram to a port that nobody has", func() string {
		c, err := net.Dial("udp", "127.0.0.1:1")
		if err != nil {
			return word(err)
		}
		c.Write([]byte("x"))
		c.SetDeadline(time.Now().Add(5 * time.Second))
		_, err = c.Read(make([]byte, 1))
		return word(err)
	}},
	{"listen at a port that is taken", func() string {
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		defer l.Close()
		_, err := net.Listen("tcp", l.Addr().String())
		return word(err)
	}},
	{"bind to an address that is not ours", func() string { _, err := net.Listen("tcp", "192.0.2.1:0"); return word(err) }},
	{"bind to port 80 without privilege", func() string {
		l, err := net.Listen("tcp", "127.0.0.1:80")
		if err == nil {
			l.Close()
		}
		return word(err)
	}},
	{"a deadline", func() string {
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		defer l.Close()
		l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Millisecond))
		_, err := l.Accept()
		return yes(errors.Is(err, os.ErrDeadlineExceeded))
	}},
	{"SO_RCVBUF is doubled", func() string {
		fd, _ := syscall.Socket(inet, stream, 0)
		defer syscall.Close(fd)
		err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 20000)
		v, err2 := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		return joined(word(err), word(err2), fmt.Sprint(v))
	}},
	{"SO_TYPE, SO_PROTOCOL and SO_DOMAIN", func() string {
		return joined(option(inet, stream, 1, 3), option(inet, stream, 1, 38), option(inet, stream, 1, 39))
	}},
	{"SO_REUSEPORT", func() string { return set(inet, stream, 1, 15, 1) }},
	{"SO_PRIORITY", func() string { return joined(set(inet, stream, 1, 12, 3), option(inet, stream, 1, 12)) }},
	{"SO_BUSY_POLL", func() string { return option(inet, stream, 1, 46) }},
	{"SO_ZEROCOPY", func() string { return set(inet, stream, 1, 60, 1) }},
	{"SO_TXTIME", func() string {
		fd, _ := syscall.Socket(inet, dgram, 0)
		defer syscall.Close(fd)
		v := [2]uint32{1, 0}
		return outcome(syscall.SYS_SETSOCKOPT, uintptr(fd), 1, 61, at(&v), 8)
	}},
	{"SO_MAX_PACING_RATE", func() string { return set(inet, stream, 1, 47, 1000000) }},
	{"SO_COOKIE", func() string {
		fd, _ := syscall.Socket(inet, stream, 0)
		defer syscall.Close(fd)
		var v uint64
		n := uint32(8)
		return joined(outcome(syscall.SYS_GETSOCKOPT, uintptr(fd), 1, 57, at(&v), at(&n)), yes(v != 0))
	}},
	{"SO_RCVLOWAT", func() string { return joined(set(inet, stream, 1, 18, 10), option(inet, stream, 1, 18)) }},
	{"SO_PEERCRED of a socketpair", func() string {
		p, _ := syscall.Socketpair(syscall.AF_UNIX, stream, 0)
		c, err := syscall.GetsockoptUcred(p[0], 1, syscall.SO_PEERCRED)
		return joined(word(err), yes(err == nil && int(c.Pid) == os.Getpid() && int(c.Uid) == os.Getuid()))
	}},
	{"TCP_INFO", func() string {
		fd, _ := syscall.Socket(inet, stream, 0)
		defer syscall.Close(fd)
		var b [232]byte
		n := uint32(232)
		return joined(outcome(syscall.SYS_GETSOCKOPT, uintptr(fd), 6, 11, at(&b), at(&n)), fmt.Sprint(b[0]))
	}},
	{"TCP_FASTOPEN", func() string { return set(inet, stream, 6, 23, 5) }},
	{"TCP_WINDOW_CLAMP", func() string { return set(inet, stream, 6, 10, 65536) }},
	{"TCP_MAXSEG", func() string { return option(inet, stream, 6, 2) }},
	{"TCP_NOTSENT_LOWAT", func() string { return set(inet, stream, 6, 25, 4096) }},
	{"IP_MTU_DISCOVER", func() string { return option(inet, dgram, 0, 10) }},
	{"IP_TTL and IP_TOS", func() string { return joined(option(inet, dgram, 0, 2), option(inet, dgram, 0, 1)) }},
	{"IP_TRANSPARENT", func() string { return set(inet, dgram, 0, 19, 1) }},
	{"IP_FREEBIND", func() string { return set(inet, dgram, 0, 15, 1) }},
	{"UDP_SEGMENT", func() string { return set(inet, dgram, 17, 103, 500) }},
	{"SO_ATTACH_FILTER of a stream", func() string {
		fd, _ := syscall.Socket(inet, stream, 0)
		defer syscall.Close(fd)
		f := []syscall.SockFilter{{Code: 6, K: 0xffffffff}}
		return word(syscall.AttachLsf(fd, f))
	}},
	{"AF_PACKET without privilege", func() string { return count2(syscall.Socket(17, syscall.SOCK_RAW, 0)) }},
	{"a raw socket without privilege", func() string { return count2(syscall.Socket(inet, syscall.SOCK_RAW, 1)) }},
	{"AF_NETLINK route", func() string { return count2(syscall.Socket(16, syscall.SOCK_RAW, 0)) }},
	{"AF_NETLINK audit", func() string { return count2(syscall.Socket(16, syscall.SOCK_RAW, 9)) }},
	{"AF_NETLINK uevent", func() string { return count2(syscall.Socket(16, syscall.SOCK_RAW, 15)) }},
	{"AF_NETLINK sock_diag", func() string { return count2(syscall.Socket(16, syscall.SOCK_RAW, 4)) }},
	{"Unix stream socketpair passes a descriptor", func() string {
		p, _ := syscall.Socketpair(syscall.AF_UNIX, stream, 0)
		f := file("passed", []byte("hello"))
		err := syscall.Sendmsg(p[0], []byte("x"), syscall.UnixRights(int(f.Fd())), nil, 0)
		oob := make([]byte, 100)
		_, n, _, _, err2 := syscall.Recvmsg(p[1], make([]byte, 1), oob, 0)
		m, _ := syscall.ParseSocketControlMessage(oob[:max(n, 0)])
		if len(m) == 0 {
			return joined(word(err), word(err2))
		}
		fds, err3 := syscall.ParseUnixRights(&m[0])
		return joined(word(err), word(err2), word(err3), fmt.Sprint(len(fds)))
	}},
	{"Unix seqpacket socketpair", func() string {
		p, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
		if err != nil {
			return word(err)
		}
		syscall.Write(p[0], []byte("ab"))
		syscall.Write(p[0], []byte("cd"))
		n, err := syscall.Read(p[1], make([]byte, 10))
		return joined(word(err), fmt.Sprint(n))
	}},
	{"Unix socket with an abstract name", func() string {
		l, err := net.Listen("unix", "@probe-"+fmt.Sprint(os.Getpid()))
		if err == nil {
			l.Close()
		}
		return word(err)
	}},
	{"MSG_PEEK and MSG_TRUNC of a datagram", func() string {
		p, _ := syscall.Socketpair(syscall.AF_UNIX, dgram, 0)
		syscall.Write(p[0], []byte("hello"))
		n, _, err := syscall.Recvfrom(p[1], make([]byte, 2), syscall.MSG_PEEK|syscall.MSG_TRUNC)
		return joined(word(err), fmt.Sprint(n))
	}},
	{"sendmmsg with 3 messages", func() string {
		p, _ := syscall.Socketpair(syscall.AF_UNIX, dgram, 0)
		b, a := buffer(3)
		copy(b, "abc")
		v := [2]uintptr{a, 3}
		type mmsg struct {
			h syscall.Msghdr
			n uint64
		}
		m := make([]mmsg, 3)
		for i := range m {
			m[i].h.Iov, m[i].h.Iovlen = (*syscall.Iovec)(ptrTo(at(&v))), 1
		}
		keep = append(keep, m)
		return count(307, uintptr(p[0]), at(&m[0]), 3, 0)
	}},
	{"shutdown of a socket that is not connected", func() string {
		fd, _ := syscall.Socket(inet, stream, 0)
		return word(syscall.Shutdown(fd, 2))
	}},
	{"getpeername of a socket that is not connected", func() string {
		fd, _ := syscall.Socket(inet, stream, 0)
		_, err := syscall.Getpeername(fd)
		return word(err)
	}},
	{"accept of a socket that does not listen", func() string {
		fd, _ := syscall.Socket(inet, stream, 0)
		_, _, err := syscall.Accept(fd)
		return word(err)
	}},
	{"ioctl SIOCGIFCONF", func() string {
		fd, _ := syscall.Socket(inet, dgram, 0)
		c := [2]uint64{}
		return outcome(syscall.SYS_IOCTL, uintptr(fd), 0x8912, at(&c))
	}},
	{"the loopback interface is up", func() string {
		i, err := net.InterfaceByName("lo")
		if err != nil {
			return word(err)
		}
		return joined(yes(i.Flags&net.FlagUp != 0), fmt.Sprint(i.MTU))
	}},
}

// count2 closes the descriptor that a call has returned, and returns the name of its error.
func count2(fd int, err error) string {
	if err == nil {
		syscall.Close(fd)
	}
	return word(err)
}
