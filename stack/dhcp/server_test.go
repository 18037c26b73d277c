package dhcp

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"loam/wire"
)

// ---- DISCOVER (RFC 2131 section 4.3.1) ----

func TestOffer(t *testing.T) {
	ts := newTestServer(t)
	msg, ok := ts.say(1, wire.DHCPv4Discover)
	m := ts.want("a client is offered an address", wire.DHCPv4Offer, msg, ok)
	if m.YIAddr != guestIP || m.XID != 0x1001 || m.CHAddr != client(1) || m.CIAddr.IsValid() {
		t.Errorf("offer %+v", m)
	}
	lease, _ := m.LeaseTime()
	bits, _ := m.SubnetMask()
	mtu, _ := m.MTU()
	if lease != time.Hour || bits != 24 || mtu != 1400 || m.DomainName() != "loam.test" ||
		!slices.Equal(m.Routers(), []netip.Addr{serverIP}) || !slices.Equal(m.DNS(), []netip.Addr{addr("10.0.2.3")}) {
		t.Errorf("lease %v, mask %d, MTU %d, domain %q, routers %v, DNS %v", lease, bits, mtu, m.DomainName(), m.Routers(), m.DNS())
	}
	if msg.Dst.Addr() != guestIP || msg.MAC != client(1) {
		t.Errorf("sent to %v at %v: without the broadcast flag, to the new address at the client's hardware address", msg.Dst, msg.MAC)
	}
	if len(ts.leases()) != 0 {
		t.Error("an offer is no lease")
	}
	msg, ok = ts.say(1, wire.DHCPv4Discover)
	if again := ts.want("asking again", wire.DHCPv4Offer, msg, ok); again.YIAddr != guestIP {
		t.Errorf("gives %v, want the same", again.YIAddr)
	}
}

func TestOfferByBroadcast(t *testing.T) {
	ts := newTestServer(t)
	msg, ok := ts.say(1, wire.DHCPv4Discover, func(m *wire.DHCPv4) { m.Broadcast = true })
	m := ts.want("the client asks for broadcast", wire.DHCPv4Offer, msg, ok)
	if msg.Dst.Addr() != everyone || msg.MAC != wire.Broadcast || !m.Broadcast {
		t.Errorf("sent to %v at %v, flag %v", msg.Dst, msg.MAC, m.Broadcast)
	}
}

func TestWhichAddressIsChosen(t *testing.T) {
	ts := newTestServer(t)
	msg, ok := ts.say(1, wire.DHCPv4Discover, requested(addr("10.0.2.17")))
	if m := ts.want("the one it wishes for", wire.DHCPv4Offer, msg, ok); m.YIAddr != addr("10.0.2.17") {
		t.Errorf("offered %v", m.YIAddr)
	}
	msg, ok = ts.say(2, wire.DHCPv4Discover, requested(addr("10.0.2.17")))
	if m := ts.want("unless somebody else has it", wire.DHCPv4Offer, msg, ok); m.YIAddr != guestIP {
		t.Errorf("offered %v", m.YIAddr)
	}
	msg, ok = ts.say(3, wire.DHCPv4Discover, requested(addr("10.0.2.200")))
	if m := ts.want("or it is not in the pool", wire.DHCPv4Offer, msg, ok); m.YIAddr != addr("10.0.2.16") {
		t.Errorf("offered %v", m.YIAddr)
	}
	msg, ok = ts.say(1, wire.DHCPv4Discover, requested(addr("10.0.2.18")))
	if m := ts.want("what it has comes before what it wishes for", wire.DHCPv4Offer, msg, ok); m.YIAddr != addr("10.0.2.17") {
		t.Errorf("offered %v", m.YIAddr)
	}
}

func TestClientIdentifier(t *testing.T) {
	ts := newTestServer(t)
	id := func(s string) func(*wire.DHCPv4) {
		return func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptClientID, []byte(s)) }
	}
	msg, ok := ts.say(1, wire.DHCPv4Discover, id("\x00one"))
	m := ts.want("", wire.DHCPv4Offer, msg, ok)
	if string(m.ClientID()) != "\x00one" {
		t.Errorf("identifier %q is not repeated (RFC 6842)", m.ClientID())
	}
	msg, ok = ts.say(2, wire.DHCPv4Discover, id("\x00one"))
	if again := ts.want("another network card, the same client", wire.DHCPv4Offer, msg, ok); again.YIAddr != m.YIAddr {
		t.Errorf("offered %v, want %v", again.YIAddr, m.YIAddr)
	}
	msg, ok = ts.say(1, wire.DHCPv4Discover, id("\x00two"))
	if other := ts.want("the same card, another client", wire.DHCPv4Offer, msg, ok); other.YIAddr == m.YIAddr {
		t.Error("two clients were offered one address")
	}
}

// ---- REQUEST (RFC 2131 section 4.3.2) ----

func TestAck(t *testing.T) {
	ts := newTestServer(t)
	a := ts.lease(1)
	if got := ts.leases(); len(got) != 1 || got[a] != client(1) {
		t.Errorf("leases %v", got)
	}
	if b := ts.lease(2); b == a {
		t.Error("two clients have one address")
	}
	ts.now += 59 * time.Minute
	msg, ok := ts.say(1, wire.DHCPv4Request, has(a))
	m := ts.want("RENEWING: address in ciaddr, nothing else", wire.DHCPv4Ack, msg, ok)
	if m.YIAddr != a || m.CIAddr != a || msg.Dst.Addr() != a || !msg.MAC.IsZero() {
		t.Errorf("%+v, sent to %v at %v", m, msg.Dst, msg.MAC)
	}
	ts.now += 2 * time.Minute
	if got := ts.leases(); len(got) != 1 || got[a] != client(1) {
		t.Errorf("leases %v: the one that was not renewed is over", got)
	}
}

func TestRequestForAnotherServer(t *testing.T) {
	ts := newTestServer(t)
	ts.say(1, wire.DHCPv4Discover)
	msg, ok := ts.say(1, wire.DHCPv4Request, requested(guestIP), toServer(addr("10.0.2.9")))
	ts.wantSilence("another server's offer was taken", msg, ok)
	msg, ok = ts.say(2, wire.DHCPv4Discover, requested(guestIP))
	if m := ts.want("so ours is free again", wire.DHCPv4Offer, msg, ok); m.YIAddr != guestIP {
		t.Errorf("offered %v", m.YIAddr)
	}
	if n := ts.s.Counters().OtherServer; n != 1 {
		t.Errorf("%d counted, want 1", n)
	}
}

func TestRequestForWhatWasNotOffered(t *testing.T) {
	ts := newTestServer(t)
	ts.say(1, wire.DHCPv4Discover)
	for _, a := range []string{"10.0.2.16", "10.0.2.2", "192.0.2.1"} {
		msg, ok := ts.say(1, wire.DHCPv4Request, requested(addr(a)), toServer(serverIP))
		m := ts.want(a, wire.DHCPv4Nak, msg, ok)
		if m.YIAddr.IsValid() || m.CIAddr.IsValid() || m.Message() == "" || msg.Dst.Addr() != everyone {
			t.Errorf("NAK %+v to %v", m, msg.Dst)
		}
		if _, ok := m.LeaseTime(); ok {
			t.Error("a NAK with a lease time")
		}
	}
	msg, ok := ts.say(2, wire.DHCPv4Request, requested(guestIP), toServer(serverIP))
	ts.want("a client that nothing was offered to", wire.DHCPv4Nak, msg, ok)
}

func TestOfferIsHeldForAWhile(t *testing.T) {
	ts := newTestServer(t, func(cfg *ServerConfig) { cfg.Last = cfg.First })
	ts.say(1, wire.DHCPv4Discover)
	msg, ok := ts.say(2, wire.DHCPv4Discover)
	ts.wantSilence("the only address is on offer", msg, ok)
	ts.now += offerHold
	msg, ok = ts.say(2, wire.DHCPv4Discover)
	ts.want("until the offer is over", wire.DHCPv4Offer, msg, ok)
	msg, ok = ts.say(1, wire.DHCPv4Request, requested(guestIP), toServer(serverIP))
	ts.want("the first one comes too late", wire.DHCPv4Nak, msg, ok)
	if n := ts.s.Counters().Exhausted; n != 1 {
		t.Errorf("%d counted, want 1", n)
	}
}

// The server answers requests of clients in INIT-REBOOT and RENEWING, whether or not it knows the client.
func TestConfirm(t *testing.T) {
	for _, test := range []struct {
		sentence       string
		authoritative  bool
		known          bool // the client has 10.0.2.15
		ask            func(netip.Addr) func(*wire.DHCPv4)
		a              string
		want           wire.DHCPv4Type // type of the reply; 0: none
		alreadyExpired bool
	}{
		{"reboot, known", false, true, requested, "10.0.2.15", wire.DHCPv4Ack, false},
		{"reboot, known, expired and nobody took it", false, true, requested, "10.0.2.15", wire.DHCPv4Ack, true},
		{"reboot, known with another address", false, true, requested, "10.0.2.16", wire.DHCPv4Nak, false},
		{"reboot, not known: MUST remain silent", false, false, requested, "10.0.2.15", 0, false},
		{"reboot, from another network", false, false, requested, "192.0.2.15", wire.DHCPv4Nak, false},
		{"reboot, not known, authoritative", true, false, requested, "10.0.2.15", wire.DHCPv4Ack, false},
		{"reboot, outside of the pool, authoritative", true, false, requested, "10.0.2.200", wire.DHCPv4Nak, false},
		{"renewing, known", false, true, has, "10.0.2.15", wire.DHCPv4Ack, false},
		{"renewing, known with another address", false, true, has, "10.0.2.16", wire.DHCPv4Nak, false},
		{"renewing, not known", false, false, has, "10.0.2.15", 0, false},
		{"renewing, not known, authoritative", true, false, has, "10.0.2.15", wire.DHCPv4Ack, false},
		{"renewing, outside of the pool, authoritative", true, false, has, "10.0.2.200", wire.DHCPv4Nak, false},
	} {
		ts := newTestServer(t, func(cfg *ServerConfig) { cfg.Authoritative = test.authoritative })
		if test.known {
			ts.lease(1)
		}
		if test.alreadyExpired {
			ts.now += 2 * time.Hour
		}
		msg, ok := ts.say(1, wire.DHCPv4Request, test.ask(addr(test.a)))
		if test.want == 0 {
			ts.wantSilence(test.sentence, msg, ok)
			if n := ts.s.Counters().Unknown; n != 1 {
				t.Errorf("%s: %d counted, want 1", test.sentence, n)
			}
			continue
		}
		m := ts.want(test.sentence, test.want, msg, ok)
		if test.want == wire.DHCPv4Ack && m.YIAddr != addr(test.a) {
			t.Errorf("%s: got %v", test.sentence, m.YIAddr)
		}
	}
}

func TestAnAuthoritativeServerDoesNotGiveAwayALease(t *testing.T) {
	ts := newTestServer(t, authoritative)
	a := ts.lease(1)
	msg, ok := ts.say(2, wire.DHCPv4Request, has(a))
	ts.want("somebody else claims the address", wire.DHCPv4Nak, msg, ok)
	if ts.leases()[a] != client(1) {
		t.Error("and got it")
	}
}

// ---- DECLINE, RELEASE, INFORM (RFC 2131 sections 4.3.3 to 4.3.5) ----

func TestDecline(t *testing.T) {
	ts := newTestServer(t)
	a := ts.lease(1)
	ts.say(2, wire.DHCPv4Decline, requested(a), toServer(serverIP))
	ts.say(1, wire.DHCPv4Decline, requested(addr("10.0.2.16")), toServer(serverIP))
	ts.say(1, wire.DHCPv4Decline, requested(a), toServer(addr("10.0.2.9")))
	if ts.leases()[a] != client(1) {
		t.Error("only the client that has it can decline an address, and only to its server")
	}
	msg, ok := ts.say(1, wire.DHCPv4Decline, requested(a), toServer(serverIP))
	ts.wantSilence("there is no answer to DECLINE", msg, ok)
	for n := range 5 {
		if got, ok := ts.say(10+n, wire.DHCPv4Discover, requested(a)); ok && got.Dst.Addr() == a {
			t.Error("an address that is in use was offered")
		}
	}
	ts.now += declineHold
	msg, ok = ts.say(20, wire.DHCPv4Discover, requested(a))
	if m := ts.want("later it is tried again", wire.DHCPv4Offer, msg, ok); m.YIAddr != a {
		t.Errorf("offered %v", m.YIAddr)
	}
	if c := ts.s.Counters(); c.Declines != 1 || c.Malformed != 3 {
		t.Errorf("counters %+v", c)
	}
}

func TestRelease(t *testing.T) {
	ts := newTestServer(t)
	a := ts.lease(1)
	ts.say(2, wire.DHCPv4Release, has(a), toServer(serverIP))
	if ts.leases()[a] != client(1) {
		t.Error("somebody else released it")
	}
	msg, ok := ts.say(1, wire.DHCPv4Release, has(a), toServer(serverIP))
	ts.wantSilence("there is no answer to RELEASE", msg, ok)
	if len(ts.leases()) != 0 {
		t.Errorf("leases %v", ts.leases())
	}
	if b := ts.lease(2); b == a {
		t.Error("while there are fresh ones, an address waits for its client to come back")
	}
	if b := ts.lease(1); b != a {
		t.Errorf("which gets %v, want %v again", b, a)
	}
}

func TestInform(t *testing.T) {
	ts := newTestServer(t)
	a := addr("10.0.2.99")
	msg, ok := ts.say(1, wire.DHCPv4Inform, has(a))
	m := ts.want("a client with an address of its own is told the rest", wire.DHCPv4Ack, msg, ok)
	_, lease := m.LeaseTime()
	if m.YIAddr.IsValid() || lease || m.CIAddr != a || msg.Dst.Addr() != a || len(m.DNS()) != 1 {
		t.Errorf("%+v to %v", m, msg.Dst)
	}
	msg, ok = ts.say(1, wire.DHCPv4Inform, has(addr("192.0.2.1")))
	ts.wantSilence("but not on another network", msg, ok)
	if len(ts.leases()) != 0 {
		t.Error("INFORM leases nothing")
	}
}

// ---- the pool ----

func TestExhaustion(t *testing.T) {
	ts := newTestServer(t)
	var first netip.Addr
	for n := range 4 {
		if a := ts.lease(n); n == 0 {
			first = a
		}
		ts.now += time.Minute
	}
	msg, ok := ts.say(4, wire.DHCPv4Discover)
	ts.wantSilence("all four addresses are leased", msg, ok)
	ts.now += 56 * time.Minute // the first lease has expired
	msg, ok = ts.say(4, wire.DHCPv4Discover)
	if m := ts.want("the one that has been free for longest", wire.DHCPv4Offer, msg, ok); m.YIAddr != first {
		t.Errorf("offered %v, want %v", m.YIAddr, first)
	}
	msg, ok = ts.say(0, wire.DHCPv4Request, has(first))
	ts.wantSilence("its former client is forgotten", msg, ok)
}

// The number of bindings never exceeds the number of addresses, however many clients are invented.
func TestInventedClientsAreBounded(t *testing.T) {
	ts := newTestServer(t)
	for n := range 3000 {
		ts.say(n, wire.DHCPv4Discover)
		ts.say(n, wire.DHCPv4Request, requested(guestIP), toServer(serverIP))
		ts.now += 10 * time.Second
	}
	if n := len(ts.s.pool.byClient); n > 4 {
		t.Errorf("%d clients remembered, want at most 4", n)
	}
}

func TestServerIgnores(t *testing.T) {
	ts := newTestServer(t)
	for _, test := range []struct {
		sentence string
		change   func(*wire.DHCPv4)
		t        wire.DHCPv4Type
		counter  func(ServerCounters) uint64
	}{
		{"a message through a relay agent", func(m *wire.DHCPv4) { m.GIAddr = addr("192.0.2.1") }, wire.DHCPv4Discover,
			func(c ServerCounters) uint64 { return c.Relayed }},
		{"a reply", func(m *wire.DHCPv4) { m.Op = wire.DHCPv4BootReply }, wire.DHCPv4Discover, malformed},
		{"an OFFER", func(*wire.DHCPv4) {}, wire.DHCPv4Offer, malformed},
		{"a type that does not exist", func(*wire.DHCPv4) {}, 99, malformed},
		{"a REQUEST for nothing", func(*wire.DHCPv4) {}, wire.DHCPv4Request, malformed},
		{"a REQUEST of an offer, without the address", toServer(serverIP), wire.DHCPv4Request, malformed},
		{"an INFORM without an address", func(*wire.DHCPv4) {}, wire.DHCPv4Inform, malformed},
		{"an identifier of 300 bytes", func(m *wire.DHCPv4) {
			m.Add(wire.DHCPv4OptClientID, bytes.Repeat([]byte{7}, 300))
		}, wire.DHCPv4Discover, malformed},
	} {
		before := test.counter(ts.s.Counters())
		msg, ok := ts.say(1, test.t, test.change)
		ts.wantSilence(test.sentence, msg, ok)
		if test.counter(ts.s.Counters()) != before+1 {
			t.Errorf("%s: not counted: %+v", test.sentence, ts.s.Counters())
		}
	}
	if len(ts.s.pool.byClient) != 0 {
		t.Error("and something of it was remembered")
	}
}

func malformed(c ServerCounters) uint64 { return c.Malformed }

func TestServerConfig(t *testing.T) {
	good := func() ServerConfig {
		return ServerConfig{Addr: netip.MustParsePrefix("10.0.2.2/24"), First: addr("10.0.2.15"), Last: addr("10.0.2.15")}
	}
	if _, err := NewServer(good()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*ServerConfig)
		want   error
	}{
		{"no address", func(c *ServerConfig) { c.Addr = netip.Prefix{} }, ErrSubnet},
		{"IPv6", func(c *ServerConfig) { c.Addr = netip.MustParsePrefix("fd00::1/64") }, ErrSubnet},
		{"the network itself", func(c *ServerConfig) { c.Addr = netip.MustParsePrefix("10.0.2.0/24") }, ErrSubnet},
		{"no pool", func(c *ServerConfig) { c.First, c.Last = netip.Addr{}, netip.Addr{} }, ErrPool},
		{"pool in another subnet", func(c *ServerConfig) { c.Last = addr("10.0.3.1") }, ErrPool},
		{"pool backwards", func(c *ServerConfig) { c.Last = addr("10.0.2.14") }, ErrPool},
		{"pool with the server in it", func(c *ServerConfig) { c.First = addr("10.0.2.1") }, ErrPool},
		{"pool with the broadcast address", func(c *ServerConfig) { c.Last = addr("10.0.2.255") }, ErrPool},
		{"pool of 4097", func(c *ServerConfig) {
			c.Addr = netip.MustParsePrefix("10.0.0.1/16")
			c.First, c.Last = addr("10.0.16.0"), addr("10.0.32.0")
		}, ErrPool},
		{"a lease of a second", func(c *ServerConfig) { c.LeaseTime = time.Second }, ErrLeaseTime},
		{"a lease of 200 years", func(c *ServerConfig) { c.LeaseTime = 200 * 365 * 24 * time.Hour }, ErrLeaseTime},
		{"half seconds", func(c *ServerConfig) { c.LeaseTime = 90*time.Second + time.Millisecond }, ErrLeaseTime},
	} {
		cfg := good()
		test.change(&cfg)
		if _, err := NewServer(cfg); !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", test.name, err, test.want)
		}
	}
}
