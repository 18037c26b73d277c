//go:build linux

package interop

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// Labs in which the two ends use IPv6 addresses, fd77:n::2 and fd77:n::1.

// newLab6 is like newLab, but the addresses of the hosts are IPv6 addresses.
func newLab6(t testing.TB, s setup) *lab {
	t.Helper()
	l := newLab(t, s)
	for _, name := range []string{"lo", l.tap} {
		l.must(os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("0"), 0))
	}
	l.must(os.WriteFile("/proc/sys/net/ipv6/ip6frag_high_thresh", []byte("1000000000"), 0))
	prefix := [16]byte{0xfd, 0x77, 3: l.linux.addr.As4()[2], 15: 1}
	l.linux.addr = netip.AddrFrom16(prefix)
	prefix[15] = 2
	l.loam.addr = netip.AddrFrom16(prefix)
	l.takeAddress6(l.linux.addr)
	l.must(l.stack.AddAddress(l.tap, netip.PrefixFrom(l.loam.addr, 64)))
	return l
}

// takeAddress6 assigns an address to Linux. It waits until Linux has joined the solicited-node group of
// the address, which happens a moment later.
func (l *lab) takeAddress6(addr netip.Addr) {
	l.Helper()
	l.ip("-6", "address", "add", addr.String()+"/64", "dev", l.tap, "nodad")
	l.eventually("Linux hears questions about "+addr.String(), func() bool {
		return strings.Contains(l.run("ip", "-6", "maddress", "show", "dev", l.tap), wire.SolicitedNode(addr).String())
	})
}

// TestTrial6 checks that Loam gives up an address that Linux has too, after Loam has already used it.
func TestTrial6(t *testing.T) {
	l := newLab6(t, setup{})
	taken := netip.MustParseAddr("fd77:ffff::9")
	l.takeAddress6(taken)
	l.must(l.stack.AddAddress(l.tap, netip.PrefixFrom(taken, 64)))
	l.eventually("Linux's objection is heard", func() bool {
		c := l.stack.Counters()
		return c.Get(stack.NDConflict) > 0
	})
	l.eventually("the address is gone", func() bool {
		c, err := l.stack.ListenUDP(netip.AddrPortFrom(taken, 53), stack.UDPOptions{})
		if err == nil {
			c.Close()
		}
		return errors.Is(err, stack.ErrNotAvailable)
	})
}

// each6 runs a test for each variant, in a lab with IPv6 addresses. It is the counterpart
// of the function named each. It uses only links with an MTU of at least 1280 bytes,
// which IPv6 requires.
func each6(t *testing.T, test func(l *lab, v variant)) {
	for _, v := range variants {
		if v.setup.linkMTU() >= 1280 {
			t.Run(v.name, func(t *testing.T) { test(newLab6(t, v.setup), v) })
		}
	}
}

func pingSizes6(mtu int) []int {
	const headers = wire.IPv6Len + wire.ICMPv6Len
	return []int{stack.MaxPing, 2 * mtu, mtu - headers + 1, mtu - headers, 56, 0}
}

// TestPing6 checks that requests of all sizes are answered in both directions, including the first
// between hosts that do not know each other, and requests to all nodes of the link.
func TestPing6(t *testing.T) {
	each6(t, func(l *lab, v variant) {
		for _, size := range pingSizes6(v.setup.linkMTU()) {
			out := l.run("ping", "-6", "-n", "-c", "1", "-W", "60", "-p", "5a", "-s", strconv.Itoa(size), l.loam.addr.String())
			if !strings.Contains(out, " 1 received, 0% packet loss") || strings.Contains(out, "wrong") {
				l.Errorf("%d bytes:\n%s", size, out)
			}
			if r, err := l.stack.Ping(l.ctx, l.linux.addr, size); err != nil || r.Len != size || r.From != l.linux.addr || r.TTL != 64 {
				l.Errorf("%d bytes: %+v, %v", size, r, err)
			}
		}
		out := l.run("ping", "-6", "-n", "-L", "-c", "1", "-W", "60", "-I", l.tap, "ff02::1")
		if !strings.Contains(out, wire.LinkLocal6(l.ifc.MAC()).String()) && !strings.Contains(out, l.loam.addr.String()) {
			l.Errorf("who is there:\n%s", out)
		}
	})
}

// TestUDP6 checks that datagrams of all sizes arrive complete, in both directions.
func TestUDP6(t *testing.T) {
	each6(t, func(l *lab, v variant) {
		mtu := v.setup.linkMTU()
		for _, d := range l.directions() {
			client, server := l.udpPair6(d)
			for _, size := range []int{stack.MaxUDP, 30000, mtu - 47, mtu - 48, 512, 1, 0} {
				if err := there(client, server, size); err != nil {
					l.Errorf("%s, %d bytes: %v", d, size, err)
				}
			}
		}
	})
}

// udpPair6 is like udpPair, with sockets for IPv6.
func (l *lab) udpPair6(d direction) (client net.Conn, server net.PacketConn) {
	l.Helper()
	server, err := d.server.listenPacket("udp6", d.server.at(0))
	l.must(err)
	l.Cleanup(func() { server.Close() })
	l.must(server.SetDeadline(l.until()))
	client, err = d.client.dial(l.ctx, "udp6", server.LocalAddr().String())
	l.must(err)
	l.Cleanup(func() { client.Close() })
	l.must(client.SetDeadline(l.until()))
	return client, server
}

// TestTransfer6 checks that a stream arrives unchanged over IPv6 in both directions, whichever end connects.
func TestTransfer6(t *testing.T) {
	each6(t, func(l *lab, v variant) {
		for _, d := range l.directions() {
			client, server := l.connect(d)
			l.exchange(d.String(), client, server, scale(64, 4)<<20)
		}
	})
}

// TestLinkLocal checks communication by link-local addresses.
func TestLinkLocal(t *testing.T) {
	l := newLab6(t, setup{})
	l.loam.addr = wire.LinkLocal6(l.ifc.MAC()).WithZone(l.tap)
	l.linux.addr = l.awaitLinkLocal().WithZone(l.tap)
	for _, d := range l.directions() {
		ln, err := d.server.listen("tcp", d.server.at(0))
		l.must(err)
		defer ln.Close()
		go echo(ln)
		c, err := d.client.dial(l.ctx, "tcp", d.server.at(uint16(ln.Addr().(*net.TCPAddr).Port)))
		l.must(err)
		defer c.Close()
		l.must(c.SetDeadline(l.until()))
		l.must(sendStream(c, 1<<16))
		l.must(c.(conn).CloseWrite())
		if err := receiveStream(c, 1<<16); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// TestRefused6 checks that a sender to a closed port gets an error.
func TestRefused6(t *testing.T) {
	l := newLab6(t, setup{})
	for _, d := range l.directions() {
		if c, err := d.client.dial(l.ctx, "tcp", d.server.at(9)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v, %v", d, c, err)
		}
		c, err := d.client.dial(l.ctx, "udp6", d.server.at(9))
		l.must(err)
		defer c.Close()
		l.must(c.SetDeadline(l.until()))
		if _, err := c.Write([]byte("anybody")); err != nil {
			t.Errorf("%s: write: %v", d, err)
		}
		if n, err := c.Read(make([]byte, 100)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: read: %d, %v", d, n, err)
		}
	}
}

// TestNarrowPath6 checks that Loam sends smaller packets when Linux, as a router to a link with an MTU
// of 1280 bytes, reports that they are too big. UDP datagrams are fragmented, and a connected socket
// gets the error once.
func TestNarrowPath6(t *testing.T) {
	l := newLab6(t, setup{})
	const beyond = "fd99::1"
	l.ip("link", "add", "narrow", "type", "veth", "peer", "name", "narrowfar")
	l.Cleanup(func() { l.ip("link", "del", "narrow") })
	l.must(os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	l.ip("link", "set", "narrowfar", "up")
	l.ip("link", "set", "narrow", "up", "mtu", "1280")
	l.must(os.WriteFile("/proc/sys/net/ipv6/conf/narrow/disable_ipv6", []byte("0"), 0))
	l.ip("-6", "address", "add", "fd99::ff/64", "dev", "narrow", "nodad")
	l.ip("-6", "neigh", "add", beyond, "lladdr", "02:00:00:00:00:99", "dev", "narrow", "nud", "permanent")
	l.must(l.stack.AddRoute(stack.Route{Dst: netip.MustParsePrefix("::/0"), Gateway: l.linux.addr}))
	c, err := l.stack.Dial("udp", "["+beyond+"]:9")
	l.must(err)
	defer c.Close()
	l.eventually("datagrams become fragments", func() bool {
		if _, err := c.Write(make([]byte, 1400)); err != nil && !errors.Is(err, stack.ErrMessageTooLong) {
			l.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		counters := l.stack.Counters()
		return counters.Get(stack.IPFragmented) > 0
	})
}

// TestDuplicateAddress6 checks that Loam does not use an address that Linux has.
func TestDuplicateAddress6(t *testing.T) {
	l := newLab6(t, setup{})
	taken := netip.PrefixFrom(l.linux.addr, 64)
	l.must(l.stack.AddAddress(l.tap, taken))
	l.eventually("Linux objects", func() bool {
		for _, a := range l.stack.Addresses() {
			if a.Prefix == taken {
				return false
			}
		}
		return true
	})
	c := l.stack.Counters()
	if c.Get(stack.NDConflict) != 1 {
		t.Errorf("counted: %d", c.Get(stack.NDConflict))
	}
}
