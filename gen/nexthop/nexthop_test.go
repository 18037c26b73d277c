//go:build linux

package nexthop

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"loam/internal/netns"
)

func TestMain(m *testing.M) { netns.Main(m) }

// farMAC returns the Ethernet address of an interface in the far namespace, as text.
func farMAC(t *testing.T, f *netns.Far, name string) string {
	t.Helper()
	words := strings.Fields(f.IP(t, "-br", "link", "show", "dev", name))
	if len(words) < 3 {
		t.Fatal(words)
	}
	return words[2]
}

// A neighbour unknown to the kernel is resolved, and the kernel's neighbour table stays unchanged.
func TestAsksByARP(t *testing.T) {
	f := netns.NewFar(t)
	near, far, n := f.Wire(t)
	p, err := Find(near, netip.MustParseAddr(fmt.Sprintf("10.%d.0.2", n)), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	if p.NextHop.String() != farMAC(t, f, far) || p.Source.String() != fmt.Sprintf("10.%d.0.1", n) || p.SourceMAC.IsZero() || p.MTU != 1500 {
		t.Errorf("%+v", p)
	}
	if table := netns.IP(t, "neigh", "show", "dev", near); strings.Contains(table, fmt.Sprintf("10.%d.0.2", n)) {
		t.Errorf("the kernel has learnt:\n%s", table)
	}
}

// A destination behind a router gets the router's address.
func TestFollowsTheRoute(t *testing.T) {
	f := netns.NewFar(t)
	near, far, n := f.Wire(t)
	netns.IP(t, "route", "add", "198.18.0.0/15", "via", fmt.Sprintf("10.%d.0.2", n))
	p, err := Find(near, netip.MustParseAddr("198.18.0.1"), netip.Addr{})
	if err != nil || p.NextHop.String() != farMAC(t, f, far) || p.Gateway.String() != fmt.Sprintf("10.%d.0.2", n) {
		t.Errorf("%+v, %v", p, err)
	}
}

// A neighbour that is in the kernel's table is taken from there. No request is sent.
func TestTakesWhatTheKernelKnows(t *testing.T) {
	f := netns.NewFar(t)
	near, _, n := f.Wire(t)
	silent := fmt.Sprintf("10.%d.0.77", n)
	netns.IP(t, "neigh", "replace", silent, "lladdr", "02:00:00:00:00:77", "dev", near, "nud", "permanent")
	p, err := Find(near, netip.MustParseAddr(silent), netip.Addr{})
	if err != nil || p.NextHop.String() != "02:00:00:00:00:77" {
		t.Errorf("%+v, %v", p, err)
	}
}

// An IPv6 neighbour answers a solicitation.
func TestAsksByNeighborDiscovery(t *testing.T) {
	f := netns.NewFar(t)
	near, far, _ := f.Wire(t)
	on := func(name string) {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("0"), 0); err != nil {
			t.Error(err)
		}
	}
	on(near)
	f.Do(t, func() { on(far) })
	netns.IP(t, "addr", "add", "2001:db8::1/64", "dev", near, "nodad")
	f.IP(t, "addr", "add", "2001:db8::2/64", "dev", far, "nodad")
	p, err := Find(near, netip.MustParseAddr("2001:db8::2"), netip.Addr{})
	if err != nil || p.NextHop.String() != farMAC(t, f, far) || p.Source.String() != "2001:db8::1" {
		t.Errorf("%+v, %v", p, err)
	}
}

// Multicast and broadcast addresses are not resolved: they have fixed Ethernet addresses.
func TestGroupsAndBroadcasts(t *testing.T) {
	f := netns.NewFar(t)
	near, _, n := f.Wire(t)
	for dst, want := range map[string]string{
		"224.0.0.251":                 "01:00:5e:00:00:fb",
		"239.255.1.2":                 "01:00:5e:7f:01:02",
		"ff02::1:3":                   "33:33:00:01:00:03",
		"255.255.255.255":             "ff:ff:ff:ff:ff:ff",
		fmt.Sprintf("10.%d.0.255", n): "ff:ff:ff:ff:ff:ff",
	} {
		p, err := Find(near, netip.MustParseAddr(dst), netip.Addr{})
		if err != nil || p.NextHop.String() != want || p.SourceMAC.IsZero() {
			t.Errorf("%s: %v, want %s; %v", dst, p.NextHop, want, err)
		}
	}
}

// On the loopback interface no request is sent.
func TestLoopback(t *testing.T) {
	netns.NewFar(t)
	netns.IP(t, "link", "set", "lo", "up")
	p, err := Find("lo", netip.MustParseAddr("127.0.0.1"), netip.Addr{})
	if err != nil || !p.NextHop.IsZero() || p.Source.String() != "127.0.0.1" {
		t.Errorf("%+v, %v", p, err)
	}
}

// Errors fit on one line and say what to do.
func TestErrorsSayWhatToDo(t *testing.T) {
	f := netns.NewFar(t)
	near, _, n := f.Wire(t)
	netns.IP(t, "tuntap", "add", "dev", "loamtun9", "mode", "tun")
	netns.IP(t, "link", "set", "loamtun9", "up")
	for _, test := range []struct{ name, dst, want string }{
		{"loamtun9", "10.0.0.1", "loamtun9 is not an Ethernet interface"},
		{"nosuch0", "10.0.0.1", `there is no interface "nosuch0"`},
		{near, fmt.Sprintf("10.%d.0.99", n), "does not answer on " + near},
		{near, fmt.Sprintf("10.%d.0.1", n), "is an address of this host"},
	} {
		if _, err := Find(test.name, netip.MustParseAddr(test.dst), netip.Addr{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v", test, err)
		}
	}
}
