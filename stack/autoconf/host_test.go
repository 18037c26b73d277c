package autoconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"loam/wire"
)

// The behaviour of a host, following the text of RFC 4861 section 6.3, RFC 4862 section 5.5, RFC 4191 section
// 3 and RFC 8106 section 5.3. A script plays the routers. The clock moves only when the
// function advance is called.

var (
	station = wire.MAC{2, 0, 0, 0, 0, 0xa}
	first   = netip.MustParseAddr("fe80::1")
	second  = netip.MustParseAddr("fe80::2")
	net1    = netip.MustParsePrefix("2001:db8:1::/64")
	dns1    = netip.MustParseAddr("2001:db8:1::53")
)

const own1 = "2001:db8:1::ff:fe00:a"

type script struct {
	*Host
	t     *testing.T
	now   time.Duration
	setup Setup
}

func newScript(t *testing.T) *script {
	return &script{Host: NewHost(Config{MAC: station, MTU: 1500, Seed: 1}), t: t, now: time.Hour}
}

// advance lets the time d pass and stops at each deadline on the way.
func (s *script) advance(d time.Duration) {
	end := s.now + d
	for s.Deadline() <= end && !s.due {
		s.now = max(s.now, s.Deadline())
		s.Advance(s.now)
	}
	s.now = end
	s.Advance(s.now)
}

func (s *script) hear(from netip.Addr, a wire.RouterAdvertisement) { s.Receive(s.now, from, &a) }

// wantSetup compares the current setup with the expected one. Both are lists of texts:
// addresses, routes, servers.
func (s *script) wantSetup(sentence string, want ...string) {
	s.t.Helper()
	if u, changed := s.Setup(); changed {
		s.setup = u
	}
	var got []string
	for _, a := range s.setup.Addresses {
		text := a.Prefix.String()
		if a.Deprecated {
			text += " deprecated"
		}
		got = append(got, text)
	}
	for _, r := range s.setup.Routes {
		text := fmt.Sprintf("%s via %s metric %d", r.Dst, r.Gateway, r.Metric)
		if !r.Gateway.IsValid() {
			text = fmt.Sprintf("%s on the link", r.Dst)
		}
		got = append(got, text)
	}
	for _, a := range s.setup.DNS {
		got = append(got, "dns "+a.String())
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%s:\n  %s\nwant\n  %s", sentence, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func (s *script) wantSolicitation(sentence string, want bool) {
	s.t.Helper()
	if m, ok := s.Poll(s.now); ok != want || ok && m.LinkAddr != station {
		s.t.Errorf("%s: %+v, %v", sentence, m, ok)
	}
}

func onLink(p netip.Prefix, valid, preferred uint32) wire.RouterAdvertisement {
	return wire.RouterAdvertisement{Prefixes: []wire.PrefixInfo{{Prefix: p, OnLink: true, Autonomous: true, Valid: valid, Preferred: preferred}}}
}

// When a host sends router solicitations: RFC 4861 section 6.3.7, RFC 7559 section 2.
func TestSolicitations(t *testing.T) {
	s := newScript(t)
	s.wantSolicitation("nothing is asked before there is an address to ask from", false)
	s.Start(s.now)
	s.wantSolicitation("the first one is due at once", true)
	var waits []time.Duration
	for range 14 {
		s.wantSolicitation("and the next one later", false)
		before := s.now
		s.now = s.Deadline()
		s.Advance(s.now)
		s.wantSolicitation("which is now", true)
		waits = append(waits, s.now-before)
	}
	for i, w := range waits {
		want := min(4*time.Second<<i, time.Hour)
		if w < want*9/10 || w > want*11/10 {
			t.Errorf("wait %d is %v, want about %v", i, w, want)
		}
	}
	s.hear(first, wire.RouterAdvertisement{})
	if s.Deadline() == Never {
		t.Error("a router that is no default router does not end it")
	}
	s.hear(first, wire.RouterAdvertisement{Lifetime: 60})
	s.now = time.Hour * 100
	s.wantSolicitation("one that is does", false)
	s.Advance(s.now)
	s.wantSolicitation("when it is gone, others are looked for", true)
}

func TestDefaultRouters(t *testing.T) {
	s := newScript(t)
	s.hear(first, wire.RouterAdvertisement{Lifetime: 1800})
	s.hear(second, wire.RouterAdvertisement{Lifetime: 600, Preference: wire.PreferHigh})
	s.wantSetup("two routers, of which one is to be preferred", "::/0 via fe80::1 metric 2", "::/0 via fe80::2 metric 1")
	s.Reached(second, false)
	s.wantSetup("one that does not answer stands behind the others", "::/0 via fe80::1 metric 2", "::/0 via fe80::2 metric 5")
	s.hear(second, wire.RouterAdvertisement{Lifetime: 600, Preference: wire.PreferHigh})
	s.wantSetup("until it is heard again", "::/0 via fe80::1 metric 2", "::/0 via fe80::2 metric 1")
	s.Reached(second, false)
	s.Reached(second, true)
	s.wantSetup("or answers", "::/0 via fe80::1 metric 2", "::/0 via fe80::2 metric 1")
	s.advance(600 * time.Second)
	s.wantSetup("its lifetime ends", "::/0 via fe80::1 metric 2")
	s.hear(first, wire.RouterAdvertisement{})
	s.wantSetup("a lifetime of zero ends it at once")
	s.hear(first, wire.RouterAdvertisement{Lifetime: 1800})
	s.NotRouter(s.now, second)
	s.NotRouter(s.now, first)
	s.wantSetup("a neighbour that says it is no router is none")
	for i := range maxRouters + 3 {
		s.hear(netip.AddrFrom16([16]byte{0xfe, 0x80, 15: byte(i)}), wire.RouterAdvertisement{Lifetime: 1})
	}
	if u, _ := s.Setup(); len(u.Routes) != maxRouters || s.Counters().Overflow != 3 {
		t.Errorf("there is room for so many: %d, %+v", len(u.Routes), s.Counters())
	}
}

// Routes that routers advertise: RFC 4191 section 3.1.
func TestRoutes(t *testing.T) {
	s := newScript(t)
	far := netip.MustParsePrefix("2001:db8:f::/48")
	s.hear(first, wire.RouterAdvertisement{Routes: []wire.RouteInfo{{Prefix: far, Preference: wire.PreferLow, Lifetime: 60}}})
	s.wantSetup("a router that leads to one network", "2001:db8:f::/48 via fe80::1 metric 3")
	s.Reached(first, false)
	s.wantSetup("and does not answer", "2001:db8:f::/48 via fe80::1 metric 7")
	s.advance(time.Minute)
	s.wantSetup("until the lifetime of the route ends")
	s.hear(first, wire.RouterAdvertisement{Lifetime: 1800, Routes: []wire.RouteInfo{{Prefix: netip.MustParsePrefix("::/0"), Preference: wire.PreferHigh, Lifetime: 60}}})
	s.wantSetup("the option for everything overrides the header", "::/0 via fe80::1 metric 1")
	s.advance(time.Minute)
	s.wantSetup("its lifetime too")
	s.hear(first, wire.RouterAdvertisement{Routes: []wire.RouteInfo{{Prefix: netip.MustParsePrefix("fe80::/64"), Lifetime: 60}}})
	s.wantSetup("what is on every link is on the link")
}

// RFC 4191 section 3.2: a route through a router that answers is preferred over a longer prefix whose router does not
// answer.
func TestRoutesOfARouterThatIsDown(t *testing.T) {
	s := newScript(t)
	near, far := netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2001:db8:f::/48")
	s.hear(first, wire.RouterAdvertisement{Routes: []wire.RouteInfo{{Prefix: far, Lifetime: 600}}})
	s.hear(second, wire.RouterAdvertisement{Routes: []wire.RouteInfo{{Prefix: near, Lifetime: 60}}})
	s.wantSetup("two routers", "2001:db8:f::/48 via fe80::1 metric 2", "2001:db8::/32 via fe80::2 metric 2")
	s.Reached(first, false)
	s.wantSetup("the nearer one does not answer", "2001:db8::/32 via fe80::2 metric 2")
	s.Reached(second, false)
	s.wantSetup("nor does the other", "2001:db8:f::/48 via fe80::1 metric 6", "2001:db8::/32 via fe80::2 metric 6")
	s.hear(second, wire.RouterAdvertisement{Lifetime: 60})
	s.wantSetup("until it is heard", "2001:db8::/32 via fe80::2 metric 2", "::/0 via fe80::2 metric 2")
	s.Reached(first, true)
	s.wantSetup("the nearer one answers", "2001:db8:f::/48 via fe80::1 metric 2", "2001:db8::/32 via fe80::2 metric 2", "::/0 via fe80::2 metric 2")
	s.Reached(first, false)
	s.advance(time.Minute)
	s.wantSetup("or there is no other any more", "2001:db8:f::/48 via fe80::1 metric 6")
}

// Each address has the list of routers that advertised its prefix, for source selection (RFC 6724 section 5, rule
// 5.5).
func TestAdvertisers(t *testing.T) {
	s := newScript(t)
	want := func(sentence string, routers ...netip.Addr) {
		t.Helper()
		u, changed := s.Setup()
		if !changed || len(u.Addresses) != 1 || !slices.Equal(u.Addresses[0].Routers, routers) {
			t.Errorf("%s: %+v (changed: %v), want %v", sentence, u.Addresses, changed, routers)
		}
	}
	s.hear(first, onLink(net1, 7200, 3600))
	want("the one that has advertised it", first)
	s.hear(second, onLink(net1, 7200, 3600))
	want("and another", first, second)
	s.hear(first, onLink(net1, 0, 0))
	want("which is the only one that still does", second)
	for i := range 2 * maxRouters {
		s.hear(netip.AddrFrom16([16]byte{0xfe, 0x80, 15: byte(i)}), onLink(net1, 7200, 3600))
	}
	if u, _ := s.Setup(); len(u.Addresses[0].Routers) != maxRouters {
		t.Errorf("there is room for so many: %d", len(u.Addresses[0].Routers))
	}
}

func TestAddresses(t *testing.T) {
	s := newScript(t)
	s.hear(first, onLink(net1, 7200, 3600))
	s.wantSetup("an address of the prefix", own1+"/64")
	s.hear(first, onLink(net1, 7200, 3600))
	if u, changed := s.Setup(); changed {
		t.Errorf("to say the same again changes nothing: %+v", u)
	}
	s.advance(time.Hour)
	s.wantSetup("its preferred lifetime ends", own1+"/64 deprecated")
	s.hear(first, onLink(net1, 7200, 3600))
	s.wantSetup("and begins anew", own1+"/64")
	s.advance(2 * time.Hour)
	s.wantSetup("its valid lifetime ends")

	s.hear(first, onLink(net1, wire.LifetimeForever, wire.LifetimeForever))
	s.advance(1000 * time.Hour)
	s.wantSetup("an address for ever", own1+"/64")
	s.hear(first, onLink(net1, 60, 0))
	s.wantSetup("is deprecated at once if that is said", own1+"/64 deprecated")
	s.advance(time.Minute)
	s.wantSetup("the prefix is on the link for as long as is said; the address has two hours", own1+"/128 deprecated")
	s.hear(first, onLink(net1, 60, 60))
	s.advance(2*time.Hour - 2*time.Minute)
	s.wantSetup("of which nobody takes more", own1+"/128 deprecated")
	s.advance(time.Minute)
	s.wantSetup("and then it is gone")
}

func TestPrefixes(t *testing.T) {
	s := newScript(t)
	a := onLink(net1, 60, 60)
	a.Prefixes[0].Autonomous = false
	s.hear(first, a)
	s.wantSetup("a prefix that is only on the link", "2001:db8:1::/64 on the link")
	a = onLink(net1, 60, 60)
	a.Prefixes[0].OnLink = false
	s.hear(first, a)
	s.wantSetup("not to say that it is on the link does not say that it is not", own1+"/64")
	s.Refused(netip.MustParseAddr(own1))
	s.wantSetup("another host has the address", "2001:db8:1::/64 on the link")
	s.hear(first, onLink(net1, 60, 60))
	s.wantSetup("and keeps it", "2001:db8:1::/64 on the link")
	s.hear(first, wire.RouterAdvertisement{Prefixes: []wire.PrefixInfo{{Prefix: net1, OnLink: true}}})
	s.advance(time.Minute)
	s.wantSetup("a lifetime of zero ends it")

	for sentence, p := range map[string]wire.PrefixInfo{
		"the link-local prefix":                        {Prefix: netip.MustParsePrefix("fe80::/64"), OnLink: true, Autonomous: true, Valid: 60, Preferred: 60},
		"a prefix of groups":                           {Prefix: netip.MustParsePrefix("ff0e::/64"), OnLink: true, Autonomous: true, Valid: 60, Preferred: 60},
		"everything":                                   {Prefix: netip.MustParsePrefix("::/0"), OnLink: true, Valid: 60, Preferred: 60},
		"preferred for longer than valid":              {Prefix: net1, OnLink: true, Autonomous: true, Valid: 60, Preferred: 61},
		"an address whose prefix has another length":   {Prefix: netip.MustParsePrefix("2001:db8::/56"), Autonomous: true, Valid: 60, Preferred: 60},
		"the address of a prefix that was never known": {Prefix: net1, Autonomous: true},
	} {
		s.hear(first, wire.RouterAdvertisement{Prefixes: []wire.PrefixInfo{p}})
		s.wantSetup(sentence)
	}
	if len(s.prefixes) != 0 {
		t.Errorf("%d prefixes are left", len(s.prefixes))
	}
}

// Advertised name servers (RFC 8106 section 5.1) and MTU (RFC 4861 section 6.3.4).
func TestServersAndMTU(t *testing.T) {
	s := newScript(t)
	s.hear(first, wire.RouterAdvertisement{MTU: 1400, DNS: []wire.DNSServers{{Servers: []netip.Addr{dns1, first, netip.MustParseAddr("::1")}, Lifetime: 60}}})
	s.wantSetup("servers, but for the one that cannot be", "dns 2001:db8:1::53", "dns fe80::1")
	if s.setup.MTU != 1400 {
		t.Errorf("the MTU is %d", s.setup.MTU)
	}
	s.hear(first, wire.RouterAdvertisement{MTU: 9000, DNS: []wire.DNSServers{{Servers: []netip.Addr{dns1}}}})
	s.wantSetup("a lifetime of zero", "dns fe80::1")
	s.hear(first, wire.RouterAdvertisement{MTU: 576})
	if s.setup.MTU != 1400 || s.Counters().Unbelieved != 3 {
		t.Errorf("an MTU that cannot be is not believed: %d, %+v", s.setup.MTU, s.Counters())
	}
	s.advance(time.Minute)
	s.wantSetup("their lifetime ends")
}

// RFC 4861 section 6.3.4: a host uses the hop limit, the reachable time and the retransmission time that a router
// advertises.
func TestLink(t *testing.T) {
	s := newScript(t)
	want := func(sentence string, link Link, unbelieved uint64) {
		t.Helper()
		if u, changed := s.Setup(); changed {
			s.setup = u
		}
		if s.setup.Link != link || s.Counters().Unbelieved != unbelieved {
			t.Errorf("%s: %+v, %+v", sentence, s.setup.Link, s.Counters())
		}
	}
	s.hear(first, wire.RouterAdvertisement{HopLimit: 32, ReachableTime: 60_000, RetransTimer: 500})
	said := Link{HopLimit: 32, Reachable: time.Minute, Retransmit: 500 * time.Millisecond}
	want("what is said is taken over", said, 0)
	s.hear(first, wire.RouterAdvertisement{})
	want("what is not said stays", said, 0)
	s.hear(second, wire.RouterAdvertisement{HopLimit: 255})
	said.HopLimit = 255
	want("the last one counts, whoever says it", said, 0)
	s.hear(first, wire.RouterAdvertisement{ReachableTime: 3_600_001, RetransTimer: 9})
	want("no router may say more than an hour; nor is anybody asked for all the time", said, 2)
	s.hear(first, wire.RouterAdvertisement{ReachableTime: 1<<32 - 1, RetransTimer: 1<<32 - 1})
	want("or never", said, 4)
	s.hear(first, wire.RouterAdvertisement{ReachableTime: 3_600_000, RetransTimer: 10_000})
	said = Link{HopLimit: 255, Reachable: time.Hour, Retransmit: 10 * time.Second}
	want("up to the bounds", said, 4)
	said.Other = true
	s.hear(first, wire.RouterAdvertisement{Other: true})
	want("there is more by DHCPv6", said, 4)
	s.hear(first, wire.RouterAdvertisement{Managed: true})
	said.Managed, said.Other = true, false
	want("addresses, too", said, 4)
	said.Managed = false
	s.hear(first, wire.RouterAdvertisement{})
	want("unlike the rest, what is not said any more is not so", said, 4)
}

// RFC 4861 section 6.2 says when a router sends advertisements.
func TestRouter(t *testing.T) {
	now := time.Hour
	r := NewRouter(now, 1)
	for range 3 {
		if !r.Poll(now) || r.Poll(now) {
			t.Fatal("it says what it is")
		}
		r.Solicited(now)
		if d := r.Deadline() - now; d != minDelayBetween {
			t.Errorf("it was asked and answers after %v", d)
		}
		now = r.Deadline()
	}
	r.Poll(now)
	if d := r.Deadline() - now; d < minAdvertiseInterval || d > maxAdvertiseInterval {
		t.Errorf("it speaks again after %v", d)
	}
	now += time.Minute
	r.Solicited(now)
	if d := r.Deadline() - now; d < 0 || d > maxAnswerDelay {
		t.Errorf("it answers after %v", d)
	}
}

// For any advertisements, the learned data is bounded and expires.
func FuzzHost(f *testing.F) {
	a := onLink(net1, 60, 60)
	a.Lifetime, a.MTU = 1800, 1400
	a.Routes = []wire.RouteInfo{{Prefix: net1, Lifetime: 9}}
	a.DNS = []wire.DNSServers{{Servers: []netip.Addr{dns1}, Lifetime: 9}}
	b := make([]byte, a.Len())
	a.Put(b)
	f.Add(b, uint8(1), uint32(1000))
	f.Fuzz(func(t *testing.T, b []byte, from uint8, wait uint32) {
		h := NewHost(Config{MAC: station, MTU: 1500, Seed: 1})
		var now time.Duration
		h.Start(now)
		for i := range 3 {
			if a, err := wire.ParseRouterAdvertisement(b); err == nil {
				h.Receive(now, netip.AddrFrom16([16]byte{0xfe, 0x80, 15: from + uint8(i)}), &a)
			}
			u, _ := h.Setup()
			if len(u.Addresses) > maxPrefixes || len(u.Routes) > maxPrefixes+maxRoutes+maxRouters || len(u.DNS) > maxServers {
				t.Fatalf("too much: %+v", u)
			}
			if u.MTU != 0 && (u.MTU < minMTU || u.MTU > 1500) {
				t.Fatalf("an MTU of %d", u.MTU)
			}
			now += time.Duration(wait) * time.Millisecond
			h.Advance(now)
			h.Poll(now)
			if d := h.Deadline(); d <= now {
				t.Fatalf("the deadline %v has passed at %v", d, now)
			}
		}
	})
}
