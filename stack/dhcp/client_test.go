package dhcp

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

// ---- INIT, SELECTING (RFC 2131 section 4.4.1) ----

func TestDiscover(t *testing.T) {
	tc := newTestClient(t)
	m := tc.want("a client without an address broadcasts DISCOVER", wire.DHCPv4Discover)
	if tc.from != addr("0.0.0.0") || tc.to != addr("255.255.255.255") {
		t.Errorf("from %v to %v, want from 0.0.0.0 to everyone", tc.from, tc.to)
	}
	if m.CIAddr.IsValid() || m.YIAddr.IsValid() || m.GIAddr.IsValid() || m.Secs != 0 || m.Broadcast {
		t.Errorf("fields %+v, want them empty", m)
	}
	if !bytes.Equal(m.ClientID(), append([]byte{1}, guestMAC[:]...)) {
		t.Errorf("client identifier % x, want hardware type and address", m.ClientID())
	}
	if n, _ := m.MaxMessageSize(); n != 1500 || m.HostName() != "guest" || len(m.ParameterRequestList()) == 0 {
		t.Errorf("size %d, host name %q, wishes %v", n, m.HostName(), m.ParameterRequestList())
	}
	if m.RequestedIP().IsValid() || m.ServerID().IsValid() {
		t.Error("DISCOVER must not name a server, and this client has no address to wish for")
	}
	tc.wantNoEvent("nothing has happened yet")
}

func TestDiscoverAsConfigured(t *testing.T) {
	tc := newTestClient(t, func(cfg *Config) {
		cfg.ClientID, cfg.HostName, cfg.MTU, cfg.Broadcast = []byte{0, 'x'}, "", 0, true
	})
	m := tc.want("", wire.DHCPv4Discover)
	_, size := m.MaxMessageSize()
	if string(m.ClientID()) != "\x00x" || m.HostName() != "" || size || !m.Broadcast {
		t.Errorf("sent %+v", m)
	}
}

// Intervals of retransmissions (RFC 2131 section 4.1): 4, 8, 16, 32 and 64 s, each randomised by one second.
func TestDiscoverIsRepeated(t *testing.T) {
	tc := newTestClient(t)
	first := *tc.want("the first", wire.DHCPv4Discover)
	wait := 4 * time.Second
	waits := map[time.Duration]bool{}
	for range 10 {
		before := tc.now
		tc.advance("it waits longer each time, up to a minute", wait-time.Second, wait+time.Second)
		waits[(tc.now-before)%time.Second] = true
		m := tc.want("and tries again", wire.DHCPv4Discover)
		if m.XID != first.XID {
			t.Errorf("transaction %#x, want %#x: it is the same one", m.XID, first.XID)
		}
		if want := uint16((tc.now - time.Hour) / time.Second); m.Secs != want {
			t.Errorf("%d seconds, want %d", m.Secs, want)
		}
		wait = min(2*wait, 64*time.Second)
	}
	if len(waits) < 5 {
		t.Errorf("waits are not randomised: %v", waits)
	}
}

func TestTheFirstAcceptableOfferIsTaken(t *testing.T) {
	tc := newTestClient(t)
	tc.want("", wire.DHCPv4Discover)
	tc.advance("", 3*time.Second, 5*time.Second)
	discover := *tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer)
	m := tc.want("it asks for what was offered", wire.DHCPv4Request)
	tc.wantState(Requesting)
	if m.RequestedIP() != guestIP || m.ServerID() != serverIP || m.CIAddr.IsValid() {
		t.Errorf("asks %v for %v, ciaddr %v", m.ServerID(), m.RequestedIP(), m.CIAddr)
	}
	if m.XID != discover.XID || m.Secs != discover.Secs {
		t.Errorf("transaction %#x and %d s, want those of the DISCOVER, %#x and %d", m.XID, m.Secs, discover.XID, discover.Secs)
	}
	if tc.to != everyone || tc.from != netip.IPv4Unspecified() {
		t.Errorf("from %v to %v: everyone has to hear whose offer was taken", tc.from, tc.to)
	}
	tc.last = discover
	tc.reply(wire.DHCPv4Offer, fromServer("10.0.2.9"))
	tc.wantSilence("a second offer is too late")
	if n := tc.c.Counters().Unexpected; n != 1 {
		t.Errorf("%d unexpected messages counted, want 1", n)
	}
}

// ---- REQUESTING ----

func TestBound(t *testing.T) {
	tc := newTestClient(t)
	tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer)
	asked := tc.now
	tc.want("", wire.DHCPv4Request)
	tc.now += time.Second // time between request and answer
	tc.reply(wire.DHCPv4Ack, func(m *wire.DHCPv4) {
		m.AddAddrs(wire.DHCPv4OptRouter, serverIP)
		m.AddAddrs(wire.DHCPv4OptDNS, addr("10.0.2.3"), addr("10.0.2.4"))
		m.AddAddrs(wire.DHCPv4OptNTP, addr("10.0.2.5"))
		m.Add(wire.DHCPv4OptDomainName, []byte("loam.test"))
		name, _ := wire.ParseDNSName("eng.loam.test")
		m.AddDomainSearch(name)
		m.AddUint16(wire.DHCPv4OptMTU, 1400)
	})
	tc.wantSilence("it has what it wanted")
	e := tc.wantEvent("and says so", Acquired, 0)
	l := e.Lease
	if l.Addr != netip.MustParsePrefix("10.0.2.15/24") || l.Server != serverIP || l.MTU != 1400 || l.Domain != "loam.test" {
		t.Errorf("lease %+v", l)
	}
	if len(l.Routers) != 1 || l.Routers[0] != serverIP || len(l.DNS) != 2 || len(l.NTP) != 1 || len(l.Search) != 1 || l.Search[0] != "eng.loam.test" {
		t.Errorf("lease %+v", l)
	}
	// RFC 2131 section 4.4.1: the lease runs from when the request was sent.
	if l.Start != asked || l.Expires != asked+time.Hour || l.T2 != asked+time.Hour/8*7 {
		t.Errorf("lease from %v, T2 %v, until %v", l.Start-asked, l.T2-asked, l.Expires-asked)
	}
	// RFC 2131 section 4.4.5: T1 is half of the lease time, randomized.
	if t1 := l.T1 - asked; t1 > 30*time.Minute || t1 < 28*time.Minute {
		t.Errorf("T1 after %v, want about 30 minutes", t1)
	}
	if got, ok := tc.c.Lease(); !ok || got.Expires != l.Expires || tc.c.Deadline() != l.T1 {
		t.Errorf("lease %+v, deadline %v", got, tc.c.Deadline())
	}
}

func TestRequestIsRepeatedAndThenGivenUp(t *testing.T) {
	tc := newTestClient(t)
	discover := *tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer)
	tc.want("the first request", wire.DHCPv4Request)
	for i, wait := range []time.Duration{4, 8, 16} {
		tc.advance("it waits", wait*time.Second-time.Second, wait*time.Second+time.Second)
		if m := tc.want("and asks again", wire.DHCPv4Request); m.ServerID() != serverIP {
			t.Errorf("request %d to %v", i+2, m.ServerID())
		}
	}
	tc.advance("the last wait", 31*time.Second, 33*time.Second)
	m := tc.want("it starts afresh", wire.DHCPv4Discover)
	tc.wantState(Selecting)
	if m.XID == discover.XID {
		t.Error("a new attempt is a new transaction")
	}
	if tc.c.Counters().Timeouts != 1 {
		t.Errorf("counters %+v, want one timeout", tc.c.Counters())
	}
}

func TestNak(t *testing.T) {
	tc := newTestClient(t)
	tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Nak, fromServer("10.0.2.9"))
	tc.wantSilence("only the server that was asked can refuse")
	tc.wantState(Requesting)
	tc.reply(wire.DHCPv4Nak)
	m := tc.want("refused, it starts afresh at once", wire.DHCPv4Discover)
	if m.RequestedIP().IsValid() {
		t.Error("it does not wish for what was refused")
	}
	// A server that repeatedly offers and refuses is asked less and less often.
	for _, wait := range []time.Duration{4, 8, 16, 32, 64, 64} {
		tc.reply(wire.DHCPv4Offer)
		tc.want("", wire.DHCPv4Request)
		tc.reply(wire.DHCPv4Nak)
		tc.wantState(Init)
		tc.wantSilence("it waits")
		tc.advance("and waits", wait*time.Second-time.Second, wait*time.Second+time.Second)
		tc.want("before it starts afresh", wire.DHCPv4Discover)
	}
	tc.reply(wire.DHCPv4Offer)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack)
	tc.wantState(Bound)
}

// ---- INIT-REBOOT (RFC 2131 section 4.4.2) ----

func rebooting(cfg *Config) { cfg.Requested = addr("10.0.2.20") }

func TestReboot(t *testing.T) {
	tc := newTestClient(t, rebooting)
	m := tc.want("with an earlier address, it asks for that", wire.DHCPv4Request)
	tc.wantState(Rebooting)
	if m.RequestedIP() != addr("10.0.2.20") || m.ServerID().IsValid() || m.CIAddr.IsValid() || tc.to != everyone {
		t.Errorf("asks %v for %v, ciaddr %v; want no server and no ciaddr", m.ServerID(), m.RequestedIP(), m.CIAddr)
	}
	tc.reply(wire.DHCPv4Ack, fromServer("10.0.2.9"))
	e := tc.wantEvent("any server may say yes", Acquired, 0)
	if e.Lease.Addr.Addr() != addr("10.0.2.20") || e.Lease.Server != addr("10.0.2.9") {
		t.Errorf("lease %+v", e.Lease)
	}
}

func TestRebootRefused(t *testing.T) {
	tc := newTestClient(t, rebooting)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Nak)
	m := tc.want("refused, it looks for servers at once", wire.DHCPv4Discover)
	if m.RequestedIP().IsValid() {
		t.Error("it does not wish for what was refused")
	}
}

func TestRebootUnanswered(t *testing.T) {
	tc := newTestClient(t, rebooting)
	tc.want("", wire.DHCPv4Request)
	tc.advance("", 3*time.Second, 5*time.Second)
	tc.want("it tries twice", wire.DHCPv4Request)
	tc.advance("", 7*time.Second, 9*time.Second)
	m := tc.want("and then looks for servers", wire.DHCPv4Discover)
	if m.RequestedIP() != addr("10.0.2.20") {
		t.Error("it still wishes for the address that it had")
	}
}

func TestRebootToAnotherAddress(t *testing.T) {
	tc := newTestClient(t, rebooting)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack, func(m *wire.DHCPv4) { m.YIAddr = guestIP })
	tc.wantNoEvent("an address that was not asked for is not taken")
	tc.wantState(Rebooting)
}

// ---- DECLINE, RELEASE ----

func TestConflict(t *testing.T) {
	tc := boundClient(t)
	tc.c.Conflict(tc.now)
	m := tc.want("it tells the server that the address is no good", wire.DHCPv4Decline)
	if m.RequestedIP() != guestIP || m.ServerID() != serverIP || m.CIAddr.IsValid() || tc.to != everyone || tc.from != netip.IPv4Unspecified() {
		t.Errorf("from %v to %v: %+v", tc.from, tc.to, m)
	}
	if m.ParameterRequestList() != nil || m.HostName() != "" {
		t.Error("DECLINE has no other options (RFC 2131 table 5)")
	}
	tc.wantEvent("and its owner", Lost, Conflict)
	tc.advance("after ten seconds", 10*time.Second, 10*time.Second)
	if m := tc.want("it starts afresh", wire.DHCPv4Discover); m.RequestedIP().IsValid() {
		t.Error("wishing for an address that somebody else has")
	}
	tc.c.Conflict(tc.now)
	tc.wantSilence("without a lease there is nothing to decline")
}

func TestClose(t *testing.T) {
	tc := boundClient(t)
	tc.c.Close(tc.now)
	m := tc.want("it gives the address back", wire.DHCPv4Release)
	if m.CIAddr != guestIP || m.ServerID() != serverIP || m.RequestedIP().IsValid() || tc.to != serverIP || tc.from != guestIP {
		t.Errorf("from %v to %v: %+v", tc.from, tc.to, m)
	}
	tc.wantEvent("", Lost, Released)
	tc.wantState(Stopped)
	if tc.c.Deadline() != Never {
		t.Errorf("deadline %v, want never", tc.c.Deadline())
	}
	tc.c.Start(tc.now)
	tc.want("it can be started again", wire.DHCPv4Discover)
}

func TestCloseWithoutALease(t *testing.T) {
	tc := newTestClient(t)
	tc.c.Close(tc.now)
	tc.wantSilence("there is nothing to give back, and nothing more to ask")
	tc.wantNoEvent("or to lose")
	tc.c.Start(tc.now)
	tc.c.Start(tc.now)
	tc.want("", wire.DHCPv4Discover)
}

// ---- events ----

func TestEventsThatWereNotFetched(t *testing.T) {
	tc := newTestClient(t)
	tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack)
	tc.jump(31 * time.Minute)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack)
	e := tc.wantEvent("acquired and renewed is acquired", Acquired, 0)
	if e.Lease.Start != tc.now {
		t.Error("with the values of the last one")
	}
	tc.jump(2 * time.Hour)
	tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack)
	tc.wantEvent("lost and acquired is acquired", Acquired, 0)
	tc.wantNoEvent("and told once")
}

func TestStatesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for s := Stopped; s <= Rebinding; s++ {
		if name := s.String(); name == "" || seen[name] {
			t.Errorf("state %d is called %q", s, name)
		}
		seen[s.String()] = true
	}
}
