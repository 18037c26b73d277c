package dhcp

import (
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

// Helpers of the server tests.

// testServer is a server; the test plays its clients.
type testServer struct {
	*testing.T
	s   *Server
	now Time
}

// newTestServer returns a server at 10.0.2.2/24 with four addresses from 10.0.2.15.
func newTestServer(t *testing.T, change ...func(*ServerConfig)) *testServer {
	cfg := ServerConfig{
		Addr:  netip.MustParsePrefix("10.0.2.2/24"),
		First: addr("10.0.2.15"), Last: addr("10.0.2.18"),
		Routers: []netip.Addr{serverIP}, DNS: []netip.Addr{addr("10.0.2.3")}, Domain: "loam.test", MTU: 1400,
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &testServer{T: t, s: s, now: time.Hour}
}

func authoritative(cfg *ServerConfig) { cfg.Authoritative = true }

// client returns the MAC of the n-th client.
func client(n int) wire.MAC { return wire.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }

// say passes a message of client n to the server.
func (ts *testServer) say(n int, t wire.DHCPv4Type, change ...func(*wire.DHCPv4)) (Message, bool) {
	ts.Helper()
	m := wire.DHCPv4{Op: wire.DHCPv4BootRequest, XID: 0x1000 + uint32(n), CHAddr: client(n)}
	m.AddUint8(wire.DHCPv4OptMessageType, uint8(t))
	for _, f := range change {
		f(&m)
	}
	b := make([]byte, m.Len())
	m.Put(b)
	parsed, err := wire.ParseDHCPv4(b)
	if err != nil {
		ts.Fatal(err)
	}
	return ts.s.Handle(ts.now, &parsed)
}

// want checks that msg is a reply of type t from the server to a client, and returns it parsed.
func (ts *testServer) want(sentence string, t wire.DHCPv4Type, msg Message, ok bool) wire.DHCPv4 {
	ts.Helper()
	if !ok {
		ts.Fatalf("%s: no answer, want type %d", sentence, t)
	}
	m, err := wire.ParseDHCPv4(msg.Data)
	if err != nil {
		ts.Fatalf("%s: the answer is malformed: %v", sentence, err)
	}
	if m.MessageType() != t || m.Op != wire.DHCPv4BootReply || m.ServerID() != ts.s.own {
		ts.Fatalf("%s: type %d from %v, want %d from %v", sentence, m.MessageType(), m.ServerID(), t, ts.s.own)
	}
	if msg.Src != netip.AddrPortFrom(ts.s.own, 67) || msg.Dst.Port() != 68 {
		ts.Fatalf("%s: from %v to %v", sentence, msg.Src, msg.Dst)
	}
	return m
}

func (ts *testServer) wantSilence(sentence string, msg Message, ok bool) {
	ts.Helper()
	if ok {
		m, _ := wire.ParseDHCPv4(msg.Data)
		ts.Fatalf("%s: yet it answers with type %d", sentence, m.MessageType())
	}
}

func requested(a netip.Addr) func(*wire.DHCPv4) {
	return func(m *wire.DHCPv4) { m.AddAddrs(wire.DHCPv4OptRequestedIP, a) }
}

func toServer(a netip.Addr) func(*wire.DHCPv4) {
	return func(m *wire.DHCPv4) { m.AddAddrs(wire.DHCPv4OptServerID, a) }
}

func has(a netip.Addr) func(*wire.DHCPv4) { return func(m *wire.DHCPv4) { m.CIAddr = a } }

// lease gets an address for client n.
func (ts *testServer) lease(n int) netip.Addr {
	ts.Helper()
	msg, ok := ts.say(n, wire.DHCPv4Discover)
	m := ts.want("an offer", wire.DHCPv4Offer, msg, ok)
	msg, ok = ts.say(n, wire.DHCPv4Request, requested(m.YIAddr), toServer(ts.s.own))
	m = ts.want("an acknowledgement", wire.DHCPv4Ack, msg, ok)
	return m.YIAddr
}

// leases returns the addresses and clients listed by EachLease.
func (ts *testServer) leases() map[netip.Addr]wire.MAC {
	all := map[netip.Addr]wire.MAC{}
	ts.s.EachLease(ts.now, func(a netip.Addr, mac wire.MAC, until Time) bool {
		if until <= ts.now {
			ts.Errorf("%v is over", a)
		}
		all[a] = mac
		return true
	})
	return all
}
