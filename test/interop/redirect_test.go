//go:build linux

package interop

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"loam/internal/netns"
	"loam/stack"
	"loam/wire"
)

// Redirects from the kernel. The kernel is Loam's router, and knows a better router on the same link,
// which is a kernel in another namespace:
//
//	Loam ── tap ── bridge, the router ── veth ── the better router, and the network behind it

// newDetourLab returns a lab with the two routers of the drawing above. beyond and beyond6 are addresses
// behind the better router.
func newDetourLab(t *testing.T, beyond, beyond6 string) *lab {
	t.Helper()
	l, kernel := openLab(t)
	l.makeTap(setup{}, kernel)
	bridge, port, far := l.tap+"br", l.tap+"port", netns.NewFar(t)
	mac, better := wire.MAC{2, 0, 0, 0, 0xb, 1}, wire.MAC{2, 0, 0, 0, 0xb, 2}
	l.ip("link", "add", bridge, "address", mac.String(), "type", "bridge", "mcast_snooping", "0")
	l.Cleanup(func() { l.ip("link", "del", bridge) })
	l.ip("link", "add", port, "type", "veth", "peer", "name", "far", "address", better.String())
	l.Cleanup(func() { l.ip("link", "del", port) })
	l.ip("link", "set", "far", "netns", far.Pid())
	l.ip("address", "flush", "dev", l.tap)
	for _, name := range []string{l.tap, port} {
		l.ip("link", "set", name, "up", "master", bridge)
	}
	undetected := func(name string) {
		l.openIPv6(name)
		l.must(os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/accept_dad", []byte("0"), 0))
	}
	undetected(bridge)
	l.ip("link", "set", bridge, "up")
	l.ip("address", "add", kernel.String()+"/24", "dev", bridge)
	l.ip("-6", "address", "add", "fd77::1/64", "dev", bridge, "nodad")
	far.Do(t, func() {
		undetected("far")
		l.openIPv6("lo")
		l.ip("link", "set", "lo", "up")
		l.ip("link", "set", "far", "up")
		l.ip("address", "add", kernel.Next().Next().String()+"/24", "dev", "far")
		l.ip("-6", "address", "add", "fd77::3/64", "dev", "far", "nodad")
		l.ip("address", "add", beyond+"/32", "dev", "lo")
		l.ip("-6", "address", "add", beyond6+"/128", "dev", "lo", "nodad")
	})
	l.sysctl("ip_forward", "1")
	l.sysctl("conf/"+bridge+"/send_redirects", "1")
	l.must(os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	l.ip("route", "add", beyond, "via", kernel.Next().Next().String())
	l.ip("-6", "route", "add", beyond6, "via", wire.LinkLocal6(better).String(), "dev", bridge)

	l.attach(setup{})
	l.must(l.stack.AddAddress(l.tap, netip.PrefixFrom(kernel.Next(), 24)))
	l.must(l.stack.AddAddress(l.tap, netip.MustParsePrefix("fd77::2/64")))
	l.must(l.stack.AddRoute(stack.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: kernel}))
	l.must(l.stack.AddRoute(stack.Route{Dst: netip.MustParsePrefix("::/0"), Gateway: wire.LinkLocal6(mac), Interface: l.tap}))
	return l
}

// TestRedirect checks that Loam follows redirects: afterwards it reaches the network behind the better router without
// the kernel.
func TestRedirect(t *testing.T) {
	const beyond, beyond6 = "198.51.100.1", "2001:db8:f::1"
	l := newDetourLab(t, beyond, beyond6)
	followed := func() uint64 {
		c := l.stack.Counters()
		return c.Get(stack.RedirectFollowed)
	}
	for _, to := range []string{beyond, beyond6} {
		before := followed()
		ping := func() error {
			ctx, cancel := context.WithTimeout(l.ctx, time.Second)
			defer cancel()
			_, err := l.stack.Ping(ctx, netip.MustParseAddr(to), 100)
			return err
		}
		// The kernel may not use its IPv6 addresses yet.
		l.eventually("an answer by way of the kernel", func() bool { return ping() == nil })
		// A redirect caused by one ping may arrive after the reply, and is then ignored. After two
		// pings, the second redirect may arrive when Loam has already followed the first.
		l.eventually("the kernel names a better router", func() bool {
			ping()
			return followed() > before
		})
		l.ip("route", "del", to)
		if err := ping(); err != nil {
			t.Errorf("ping %s without a route of the kernel's: %v", to, err)
		}
	}
	if c := l.stack.Counters(); c.Get(stack.RedirectOffLink) != 0 {
		t.Errorf("Loam counts:\n%s", counted(l.stack))
	}
}
