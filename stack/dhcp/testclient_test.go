package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

// Helpers of the client tests. The test plays the server: it states the message that the client must send,
// answers it, and advances the clock.

var (
	guestMAC = wire.MAC{2, 0, 0, 0, 0, 1}
	serverIP = addr("10.0.2.2")
	guestIP  = addr("10.0.2.15")
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

type testClient struct {
	*testing.T
	c    *Client
	now  Time
	last wire.DHCPv4 // last message of the client
	to   netip.Addr  // destination of last
	from netip.Addr
}

// newTestClient returns a started client.
func newTestClient(t *testing.T, change ...func(*Config)) *testClient {
	cfg := Config{MAC: guestMAC, HostName: "guest", MTU: 1500, Rand: rand.New(rand.NewPCG(1, 2))}
	for _, f := range change {
		f(&cfg)
	}
	tc := &testClient{T: t, c: NewClient(cfg), now: time.Hour}
	tc.c.Start(tc.now)
	return tc
}

// boundClient returns a client that has guestIP from serverIP for an hour.
func boundClient(t *testing.T, change ...func(*Config)) *testClient {
	tc := newTestClient(t, change...)
	tc.want("the client looks for servers", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer)
	tc.want("it takes the offer", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack)
	tc.wantEvent("it has a lease", Acquired, 0)
	tc.wantState(Bound)
	return tc
}

// want returns the message that the client must send now.
func (tc *testClient) want(sentence string, t wire.DHCPv4Type) *wire.DHCPv4 {
	tc.Helper()
	msg, ok := tc.c.Poll()
	if !ok {
		tc.Fatalf("%s: it sends nothing, want message type %d", sentence, t)
	}
	m, err := wire.ParseDHCPv4(msg.Data)
	if err != nil {
		tc.Fatalf("%s: it sends a malformed message: %v", sentence, err)
	}
	if m.MessageType() != t {
		tc.Fatalf("%s: it sends message type %d, want %d", sentence, m.MessageType(), t)
	}
	if msg.Src.Port() != 68 || msg.Dst.Port() != 67 || m.Op != wire.DHCPv4BootRequest || m.CHAddr != tc.c.cfg.MAC {
		tc.Fatalf("%s: from %v to %v: %+v", sentence, msg.Src, msg.Dst, m)
	}
	tc.last, tc.from, tc.to = m, msg.Src.Addr(), msg.Dst.Addr()
	tc.wantSilence("one message at a time")
	return &tc.last
}

func (tc *testClient) wantSilence(sentence string) {
	tc.Helper()
	if msg, ok := tc.c.Poll(); ok {
		m, err := wire.ParseDHCPv4(msg.Data)
		tc.Fatalf("%s: yet it sends message type %d, error %v", sentence, m.MessageType(), err)
	}
}

func (tc *testClient) wantState(s State) {
	tc.Helper()
	if tc.c.State() != s {
		tc.Fatalf("it is %v, want %v", tc.c.State(), s)
	}
}

func (tc *testClient) wantEvent(sentence string, kind EventKind, why Reason) Event {
	tc.Helper()
	e, ok := tc.c.NextEvent()
	if !ok || e.Kind != kind || e.Reason != why {
		tc.Fatalf("%s: event %+v, %v; want kind %d, reason %d", sentence, e, ok, kind, why)
	}
	_, has := tc.c.Lease()
	if has != (kind != Lost) {
		tc.Fatalf("%s: lease %v", sentence, has)
	}
	return e
}

func (tc *testClient) wantNoEvent(sentence string) {
	tc.Helper()
	if e, ok := tc.c.NextEvent(); ok {
		tc.Fatalf("%s: yet there is event %+v", sentence, e)
	}
}

// advance moves the clock to the next deadline, which must be between the durations least
// and most away.
func (tc *testClient) advance(sentence string, least, most time.Duration) {
	tc.Helper()
	d := tc.c.Deadline()
	if d < tc.now+least || d > tc.now+most {
		tc.Fatalf("%s: the next deadline is in %v, want %v to %v", sentence, d-tc.now, least, most)
	}
	tc.c.Tick(d - 1)
	tc.wantSilence("before the deadline nothing happens")
	tc.now = d
	tc.c.Tick(tc.now)
}

// jump moves the clock without regard to deadlines, as after a suspend.
func (tc *testClient) jump(d time.Duration) {
	tc.now += d
	tc.c.Tick(tc.now)
}

// reply answers the last message as a server that offers guestIP, with changes.
func (tc *testClient) reply(t wire.DHCPv4Type, change ...func(*wire.DHCPv4)) {
	tc.Helper()
	m := wire.DHCPv4{
		Op: wire.DHCPv4BootReply, XID: tc.last.XID, CHAddr: tc.last.CHAddr, CIAddr: tc.last.CIAddr,
	}
	m.AddUint8(wire.DHCPv4OptMessageType, uint8(t))
	if t != wire.DHCPv4Nak {
		m.YIAddr = guestIP
		if want := tc.last.RequestedIP(); want.IsValid() {
			m.YIAddr = want
		}
	}
	for _, f := range change {
		f(&m)
	}
	add := func(code wire.DHCPv4Option, f func()) { // add calls f, which adds an option, unless the test has changed the message and added that option itself
		if _, ok := m.Get(code); !ok {
			f()
		}
	}
	add(wire.DHCPv4OptServerID, func() { m.AddAddrs(wire.DHCPv4OptServerID, serverIP) })
	if t != wire.DHCPv4Nak {
		add(wire.DHCPv4OptLeaseTime, func() { m.AddDuration(wire.DHCPv4OptLeaseTime, time.Hour) })
		add(wire.DHCPv4OptSubnetMask, func() { m.AddSubnetMask(24) })
	}
	b := make([]byte, m.Len())
	m.Put(b)
	parsed, err := wire.ParseDHCPv4(b)
	if err != nil {
		tc.Fatal(err)
	}
	tc.c.Receive(tc.now, &parsed)
}

// fromServer changes the server of a reply.
func fromServer(a string) func(*wire.DHCPv4) {
	return func(m *wire.DHCPv4) { m.AddAddrs(wire.DHCPv4OptServerID, addr(a)) }
}

func forTime(d time.Duration) func(*wire.DHCPv4) {
	return func(m *wire.DHCPv4) { m.AddDuration(wire.DHCPv4OptLeaseTime, d) }
}
