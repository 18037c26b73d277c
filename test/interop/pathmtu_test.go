//go:build linux

package interop

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"loam/stack"
)

// narrowMTU is the MTU of the link behind the kernel of newNarrowLab.
const narrowMTU = 1300

// newNarrowLab returns a lab whose kernel is Loam's router to a network, and that network. The network
// is behind a link of narrowMTU.
func newNarrowLab(t *testing.T) (*lab, netip.Prefix) {
	t.Helper()
	l := newLab(t, setup{})
	l.sysctl("ip_forward", "1")
	l.sysctl("icmp_ratelimit", "0")
	network := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 78, l.linux.addr.As4()[2], 0}), 24)
	near, beyond := l.tap+"n", l.tap+"b"
	l.ip("link", "add", near, "mtu", fmt.Sprint(narrowMTU), "type", "veth", "peer", "name", beyond)
	l.Cleanup(func() { l.ip("link", "del", near) })
	l.ip("link", "set", beyond, "up")
	l.ip("link", "set", near, "up")
	l.ip("address", "add", network.Addr().Next().String()+"/24", "dev", near)
	l.must(l.stack.AddRoute(stack.Route{Dst: network, Gateway: l.linux.addr}))
	l.meet()
	return l, network
}

// TestPathMTU checks that Loam follows the reports that the kernel sends as a router to a link with a smaller MTU.
func TestPathMTU(t *testing.T) {
	l, network := newNarrowLab(t)
	to := network.Addr().Next()
	for how := stack.DiscoverWant; how <= stack.DiscoverOmit; how++ {
		to = to.Next()
		c, err := l.stack.ListenUDP(netip.AddrPort{}, stack.UDPOptions{Discovery: how})
		l.must(err)
		defer c.Close()
		l.must(c.Connect(netip.AddrPortFrom(to, 9)))
		write := func(length int) error {
			_, err := c.TryWriteTo(make([]byte, length-28), netip.AddrPort{})
			return err
		}
		l.must(write(1500))
		if how == stack.DiscoverDont || how >= stack.DiscoverInterface { // these modes send without DF, and the kernel fragments the packet
			continue
		}
		l.eventually("the MTU of the path is known", func() bool {
			n, err := l.stack.PathMTU(to)
			return n == narrowMTU && err == nil
		})
		if err := c.Err(); !errors.Is(err, stack.ErrMessageTooLong) {
			t.Errorf("%d: the program hears %v", how, err)
		}
		l.must(write(narrowMTU))
		if err := write(narrowMTU + 1); errors.Is(err, stack.ErrMessageTooLong) != (how == stack.DiscoverDo) {
			t.Errorf("%d: what is too long for the path: %v", how, err)
		}
	}
}

// TestSegmentsOfLinux checks that a large datagram that a program on Linux has segmented (UDP_SEGMENT)
// is received as separate datagrams.
func TestSegmentsOfLinux(t *testing.T) {
	const udpSegment, segment, length = 103, 1200, 3*1200 + 30
	l := newLab(t, setup{})
	l.meet()
	server, err := l.loam.listenPacket("udp", l.loam.at(0))
	l.must(err)
	defer server.Close()
	l.must(server.SetDeadline(l.until()))
	client, err := net.Dial("udp", server.LocalAddr().String())
	l.must(err)
	defer client.Close()
	raw, err := client.(*net.UDPConn).SyscallConn()
	l.must(err)
	l.must(raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_UDP, udpSegment, segment) }))
	l.must(err)
	_, err = client.Write(make([]byte, length))
	l.must(err)
	b := make([]byte, length)
	for rest := length; rest > 0; rest -= segment {
		n, _, err := server.ReadFrom(b)
		l.must(err)
		if want := min(rest, segment); n != want {
			t.Fatalf("a datagram of %d bytes, want %d", n, want)
		}
	}
}
