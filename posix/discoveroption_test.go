package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"
)

func TestMTUDiscover(t *testing.T) {
	for name, typ := range map[string]int{"udp": syscall.SOCK_DGRAM, "tcp": syscall.SOCK_STREAM, "raw": syscall.SOCK_RAW} {
		t.Run(name, func(t *testing.T) {
			p := process(t)
			protocol := 0
			if typ == syscall.SOCK_RAW {
				protocol = 253
			}
			s := fd(t)(p.Socket(syscall.AF_INET6, typ, protocol))
			for _, key := range []optionName{mtuDiscover, mtuDiscover6} {
				get := func(want int) {
					t.Helper()
					b, errno := p.GetSockOpt(s, key.level, key.name)
					if errno != 0 || int(binary.NativeEndian.Uint32(b)) != want {
						t.Errorf("%v: %v, %v, want %d", key, b, errno, want)
					}
				}
				get(syscall.IP_PMTUDISC_WANT)
				for how := range lastDiscovery + 1 {
					ok(t, p.SetSockOpt(s, key.level, key.name, intValue(how)))
					get(how)
				}
				for _, how := range []int{-1, lastDiscovery + 1} {
					if errno := p.SetSockOpt(s, key.level, key.name, intValue(how)); errno != syscall.EINVAL {
						t.Errorf("%v: %d is %v", key, how, errno)
					}
				}
			}
			for _, key := range []optionName{pathMTU, pathMTU6} {
				if _, errno := p.GetSockOpt(s, key.level, key.name); errno != syscall.ENOTCONN {
					t.Errorf("%v without a peer: %v", key, errno)
				}
			}
		})
	}
}

// The path of a connected socket is known.
func TestPathMTU(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0))
	ok(t, p.Connect(s, inet(netip.MustParseAddrPort("127.0.0.1:9"))))
	b, errno := p.GetSockOpt(s, syscall.IPPROTO_IP, ipMTU)
	if errno != 0 || binary.NativeEndian.Uint32(b) != 65535 {
		t.Errorf("%v, %v", b, errno)
	}
}
