package posix

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
)

func TestMTUDiscover(t *testing.T) {
	for name, typ := range map[string]int{"udp": linux.SOCK_DGRAM, "tcp": linux.SOCK_STREAM, "raw": linux.SOCK_RAW} {
		t.Run(name, func(t *testing.T) {
			p := process(t)
			protocol := 0
			if typ == linux.SOCK_RAW {
				protocol = 253
			}
			s := fd(t)(p.Socket(linux.AF_INET6, typ, protocol))
			for _, key := range []socket.OptionName{socket.MTUDiscover, socket.MTUDiscover6} {
				get := func(want int) {
					t.Helper()
					b, errno := p.GetSockOpt(s, key.Level, key.Name)
					if errno != 0 || int(binary.NativeEndian.Uint32(b)) != want {
						t.Errorf("%v: %v, %v, want %d", key, b, errno, want)
					}
				}
				get(linux.IP_PMTUDISC_WANT)
				for how := range discoveries + 1 {
					ok(t, p.SetSockOpt(s, key.Level, key.Name, socket.IntValue(how)))
					get(how)
				}
				for _, how := range []int{-1, discoveries + 1} {
					if errno := p.SetSockOpt(s, key.Level, key.Name, socket.IntValue(how)); errno != linux.EINVAL {
						t.Errorf("%v: %d is %v", key, how, errno)
					}
				}
			}
			for _, key := range []socket.OptionName{mtuName, mtuName6} {
				if _, errno := p.GetSockOpt(s, key.Level, key.Name); errno != linux.ENOTCONN {
					t.Errorf("%v without a peer: %v", key, errno)
				}
			}
		})
	}
}

// A connected socket returns its path MTU.
func TestPathMTU(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	ok(t, p.Connect(s, socket.Inet(netip.MustParseAddrPort("127.0.0.1:9"))))
	b, errno := p.GetSockOpt(s, linux.IPPROTO_IP, linux.IP_MTU)
	if errno != 0 || binary.NativeEndian.Uint32(b) != 65535 {
		t.Errorf("%v, %v", b, errno)
	}
}

// RFC 3542 section 11.3, as in Linux 6.18: a socket returns the path MTU to its peer, and receives a
// message for a datagram that was too long and must not be fragmented.
func TestPathMTU6(t *testing.T) {
	p := process(t)
	to := inet6("[::1]:9")
	told := append(inet6("[::1]:0").Append(nil), socket.IntValue(65536)...)
	mtu := func(s int) ([]byte, Errno) { return p.GetSockOpt(s, mtuInfo6.Level, mtuInfo6.Name) }
	for name, typ := range map[string]int{"udp": linux.SOCK_DGRAM, "raw": linux.SOCK_RAW} {
		t.Run(name, func(t *testing.T) {
			protocol := 0
			if typ == linux.SOCK_RAW {
				protocol = linux.IPPROTO_ICMPV6
			}
			s := fd(t)(p.Socket(linux.AF_INET6, typ, protocol))
			set := func(name, n int) { ok(t, p.SetSockOpt(s, linux.IPPROTO_IPV6, name, socket.IntValue(n))) }
			tooLong := func(want Errno) {
				t.Helper()
				if _, errno := p.Send(s, make([]byte, 65510), Outgoing{To: to}); errno != want {
					t.Errorf("a long datagram: %v, want %v", errno, want)
				}
			}
			want := func(sentence string, flags int, wanted bool) {
				t.Helper()
				r, errno := p.Recv(s, make([]byte, 10), flags|linux.MSG_DONTWAIT)
				switch {
				case !wanted && errno != linux.EAGAIN, wanted && errno != 0:
					t.Errorf("%s: %v", sentence, errno)
				case wanted && (r.N != 0 || r.Flags != 0 || r.From != inet6("[::1]:0") || len(r.Control) != 1 || !slices.Equal(r.Control[0].Data, told)):
					t.Errorf("%s: %+v", sentence, r)
				}
			}
			_, errno := mtu(s)
			wantErrno(t, errno, linux.ENOTCONN, "IPV6_PATHMTU without a peer")
			wantErrno(t, p.SetSockOpt(s, mtuInfo6.Level, mtuInfo6.Name, socket.IntValue(1)), linux.ENOPROTOOPT, "IPV6_PATHMTU is not set")

			set(linux.IPV6_DONTFRAG, 1)
			tooLong(linux.EMSGSIZE)
			set(linux.IPV6_RECVPATHMTU, 1)
			want("it was not asked for", 0, false)
			tooLong(linux.EMSGSIZE)
			tooLong(linux.EMSGSIZE)
			want("it is told", 0, true)
			want("once", 0, false)
			tooLong(linux.EMSGSIZE)
			want("also to those who only look", linux.MSG_PEEK, true)
			want("who take it", 0, false)
			tooLong(linux.EMSGSIZE)
			set(linux.IPV6_RECVPATHMTU, 0)
			want("not when it is not wanted any more", 0, false)
			set(linux.IPV6_RECVPATHMTU, 1)
			want("but when it is again", 0, true)

			ok(t, p.Connect(s, to))
			b, errno := mtu(s)
			if want := append(make([]byte, 28), socket.IntValue(65536)...); errno != 0 || !slices.Equal(b, want) {
				t.Errorf("IPV6_PATHMTU: % x, %v", b, errno)
			}
		})
	}
	ping := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, linux.IPPROTO_ICMPV6))
	for _, name := range []int{linux.IPV6_DONTFRAG, linux.IPV6_RECVPATHMTU} {
		ok(t, p.SetSockOpt(ping, linux.IPPROTO_IPV6, name, socket.IntValue(1)))
	}
	_, errno := p.Send(ping, append([]byte{128}, make([]byte, 65510)...), Outgoing{To: to})
	wantErrno(t, errno, linux.EMSGSIZE, "a long echo request")
	_, errno = p.Recv(ping, make([]byte, 10), linux.MSG_DONTWAIT)
	wantErrno(t, errno, linux.EAGAIN, "sockets for ping are told nothing")
	stream := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_STREAM, 0))
	_, errno = mtu(stream)
	wantErrno(t, errno, linux.ENOTCONN, "IPV6_PATHMTU of TCP without a peer")
	ok(t, p.SetSockOpt(stream, linux.IPPROTO_IPV6, linux.IPV6_RECVPATHMTU, socket.IntValue(1)))
}

const discoveries = 5 // IP_PMTUDISC_OMIT, the last value

var (
	mtuName  = socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_MTU}
	mtuName6 = socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MTU}
	mtuInfo6 = socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_PATHMTU}
)
