package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"loam/wire"
)

// grantOf returns an acknowledgment of guestIP for an hour, with changes.
func grantOf(change func(*wire.DHCPv4)) *wire.DHCPv4 {
	m := wire.DHCPv4{Op: wire.DHCPv4BootReply, YIAddr: guestIP}
	change(&m)
	for code, add := range map[wire.DHCPv4Option]func(){
		wire.DHCPv4OptServerID:   func() { m.AddAddrs(wire.DHCPv4OptServerID, serverIP) },
		wire.DHCPv4OptLeaseTime:  func() { m.AddDuration(wire.DHCPv4OptLeaseTime, time.Hour) },
		wire.DHCPv4OptSubnetMask: func() { m.AddSubnetMask(24) },
	} {
		if _, ok := m.Get(code); !ok {
			add()
		}
	}
	return &m
}

func mask(bits int) func(*wire.DHCPv4) { return func(m *wire.DHCPv4) { m.AddSubnetMask(bits) } }

func yours(a string, bits int) func(*wire.DHCPv4) {
	return func(m *wire.DHCPv4) { m.YIAddr = addr(a); m.AddSubnetMask(bits) }
}

func TestLeasesThatAreRefused(t *testing.T) {
	for name, change := range map[string]func(*wire.DHCPv4){
		"no address":                 func(m *wire.DHCPv4) { m.YIAddr = netip.Addr{} },
		"0.0.0.1":                    yours("0.0.0.1", 24),
		"this host":                  yours("127.0.0.1", 24),
		"a group":                    yours("224.0.0.1", 24),
		"reserved":                   yours("240.0.0.1", 24),
		"everybody":                  yours("255.255.255.255", 24),
		"the network":                yours("10.0.2.0", 24),
		"its broadcast address":      yours("10.0.2.255", 24),
		"the broadcast address of 8": yours("10.255.255.255", 8),
		"no server":                  func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptServerID, nil) },
		"a server that is everybody": fromServer("255.255.255.255"),
		"no lease time":              func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptLeaseTime, nil) },
		"a lease time of 0":          forTime(0),
		"a lease time of 9 s":        forTime(9 * time.Second),
	} {
		if l, ok := newLease(grantOf(change), 0); ok {
			t.Errorf("%s: accepted as %+v", name, l)
		}
	}
}

func TestPrefixOfALease(t *testing.T) {
	for _, test := range []struct {
		change func(*wire.DHCPv4)
		want   string
	}{
		{mask(24), "10.0.2.15/24"},
		{mask(1), "10.0.2.15/1"},
		{mask(32), "10.0.2.15/32"},
		{yours("10.0.2.14", 31), "10.0.2.14/31"}, // RFC 3021: both addresses of the prefix belong to hosts
		{mask(0), "10.0.2.15/8"},                 // no mask: the prefix length of the address's class
		{func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptSubnetMask, []byte{255, 0, 255, 0}) }, "10.0.2.15/8"},
		{func(m *wire.DHCPv4) { m.YIAddr = addr("172.16.0.9"); m.Add(wire.DHCPv4OptSubnetMask, nil) }, "172.16.0.9/16"},
		{func(m *wire.DHCPv4) { m.YIAddr = addr("192.168.1.9"); m.Add(wire.DHCPv4OptSubnetMask, nil) }, "192.168.1.9/24"},
	} {
		l, ok := newLease(grantOf(test.change), 0)
		if !ok || l.Addr.String() != test.want {
			t.Errorf("%v, %v; want %s", l.Addr, ok, test.want)
		}
	}
}

// RFC 2131 section 4.4.5: T1 is before T2, and T2 before the expiry.
func TestTimesOfALease(t *testing.T) {
	const start = 100 * time.Second
	times := func(t1, t2 time.Duration) func(*wire.DHCPv4) {
		return func(m *wire.DHCPv4) {
			if t1 >= 0 {
				m.AddDuration(wire.DHCPv4OptT1, t1)
			}
			if t2 >= 0 {
				m.AddDuration(wire.DHCPv4OptT2, t2)
			}
		}
	}
	const minute, none, half, seven = time.Minute, -1, 30 * time.Minute, 52*time.Minute + 30*time.Second
	for _, test := range []struct{ t1, t2, want1, want2 time.Duration }{
		{none, none, half, seven},
		{10 * minute, 20 * minute, 10 * minute, 20 * minute},
		{10 * minute, none, 10 * minute, seven},
		{none, 40 * minute, half, 40 * minute},
		{none, 20 * minute, half, seven},
		{0, 20 * minute, half, seven},
		{4 * time.Second, 20 * minute, half, seven},
		{5 * time.Second, 20 * minute, 5 * time.Second, 20 * minute},
		{20 * minute, 20 * minute, half, seven},
		{30 * minute, 20 * minute, half, seven},
		{30 * minute, 60 * minute, half, seven},
		{30 * minute, wire.DHCPv4Infinite, half, seven},
	} {
		l, ok := newLease(grantOf(times(test.t1, test.t2)), start)
		if !ok || l.T1 != start+test.want1 || l.T2 != start+test.want2 || l.Expires != start+time.Hour {
			t.Errorf("T1 %v, T2 %v became %v, %v, %v", test.t1, test.t2, l.T1-start, l.T2-start, l.Expires-start)
		}
	}
}

func TestListsInALeaseAreBounded(t *testing.T) {
	var many []netip.Addr
	for i := range 200 {
		many = append(many, netip.AddrFrom4([4]byte{byte(i), 1, 2, 3}))
	}
	var routes []wire.DHCPv4Route
	for range 1000 {
		routes = append(routes, wire.DHCPv4Route{Dst: netip.MustParsePrefix("192.0.2.0/24"), Gateway: serverIP})
	}
	m := grantOf(func(m *wire.DHCPv4) {
		m.AddAddrs(wire.DHCPv4OptRouter, many...)
		m.AddAddrs(wire.DHCPv4OptDNS, many...)
		m.AddAddrs(wire.DHCPv4OptNTP, many...)
	})
	l, ok := newLease(m, 0)
	if !ok || len(l.Routers) != maxServers || len(l.DNS) != maxServers || len(l.NTP) != maxServers || l.DNS[0] != many[1] {
		t.Errorf("%d routers, %d name servers from %v, %d time servers", len(l.Routers), len(l.DNS), l.DNS[0], len(l.NTP))
	}
	m.AddClasslessRoutes(routes...)
	if l, _ = newLease(m, 0); len(l.Routes) != maxRoutes || l.Routers != nil {
		t.Errorf("%d routes, routers %v; want %d and none (RFC 3442)", len(l.Routes), l.Routers, maxRoutes)
	}
}

func TestNamesInALease(t *testing.T) {
	for _, name := range []string{"loam.test", "Loam-1.test.", "_tcp.local", "x"} {
		if domain(name) != name {
			t.Errorf("%q was refused", name)
		}
	}
	for _, name := range []string{
		"", ".", "..", "a..b", "-rf", "a b", "a\nnameserver 192.0.2.66", "$(reboot)", "a;b", "a/b", "a\x00", "ü.test",
		`a\.b`, `a\046b`, strings.Repeat("a", 64), strings.Repeat("a.", 200),
	} {
		if got := domain(name); got != "" {
			t.Errorf("%q was accepted as %q", name, got)
		}
	}
	good, _ := wire.ParseDNSName("eng.loam.test")
	bad, _ := wire.ParseDNSName(`e\010g.loam.test`)
	root, _ := wire.ParseDNSName(".")
	l, _ := newLease(grantOf(func(m *wire.DHCPv4) {
		m.AddDomainSearch(bad, good, root)
		m.Add(wire.DHCPv4OptDomainName, []byte("a b"))
	}), 0)
	if !slices.Equal(l.Search, []string{"eng.loam.test"}) || l.Domain != "" {
		t.Errorf("search %q, domain %q", l.Search, l.Domain)
	}
}

func TestMTUOfALease(t *testing.T) {
	for given, want := range map[uint16]int{68: 0, 575: 0, 576: 576, 1500: 1500, 65535: 65535} {
		l, _ := newLease(grantOf(func(m *wire.DHCPv4) { m.AddUint16(wire.DHCPv4OptMTU, given) }), 0)
		if l.MTU != want {
			t.Errorf("MTU %d became %d, want %d", given, l.MTU, want)
		}
	}
}

func TestLastAddr(t *testing.T) {
	for p, want := range map[string]string{
		"10.0.2.15/24": "10.0.2.255", "10.0.2.15/8": "10.255.255.255", "10.0.2.15/28": "10.0.2.15",
		"10.0.2.15/32": "10.0.2.15", "10.0.2.15/0": "255.255.255.255", "172.16.5.1/20": "172.16.15.255",
	} {
		if got := lastAddr(netip.MustParsePrefix(p)); got != addr(want) {
			t.Errorf("last address of %s is %v, want %s", p, got, want)
		}
	}
}
