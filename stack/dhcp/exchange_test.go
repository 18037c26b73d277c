package dhcp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

// Clients and servers on one link, in virtual time. Every message is encoded, carried and parsed. A test
// selects the messages that the link loses.

type testLink struct {
	*testing.T
	now     Time
	clients []*Client
	servers []*Server
	lose    func(n int, m *wire.DHCPv4) bool // reports whether the link loses a message; n is the number of the message, from 0
	carried int
	events  []string
}

const step = 20 * time.Millisecond // transmission time of a message

func newTestLink(t *testing.T, servers ...*Server) *testLink {
	return &testLink{T: t, now: time.Hour, servers: servers, lose: func(int, *wire.DHCPv4) bool { return false }}
}

func (l *testLink) addClient(n int, change ...func(*Config)) *Client {
	cfg := Config{MAC: client(n), Rand: rand.New(rand.NewPCG(7, uint64(n)))}
	for _, f := range change {
		f(&cfg)
	}
	c := NewClient(cfg)
	l.clients = append(l.clients, c)
	c.Start(l.now)
	return c
}

// run lets the time d pass.
func (l *testLink) run(d time.Duration) {
	l.Helper()
	end := l.now + d
	for turns := 0; ; turns++ {
		if turns > 100_000 {
			l.Fatal("the machines keep each other busy")
		}
		if l.settle() {
			l.now += step
			continue
		}
		next := end
		for _, c := range l.clients {
			next = min(next, c.Deadline())
		}
		l.now = max(l.now, next)
		for _, c := range l.clients {
			c.Tick(l.now)
		}
		if next == end {
			return
		}
	}
}

// settle carries the clients' messages and the replies. It reports whether there were any.
func (l *testLink) settle() (busy bool) {
	for i, c := range l.clients {
		if e, ok := c.NextEvent(); ok {
			busy = true
			l.events = append(l.events, fmt.Sprintf("%d %d %v", i, e.Kind, e.Lease.Addr.Addr()))
		}
		if msg, ok := c.Poll(); ok {
			busy = true
			l.toServers(msg)
		}
	}
	return busy
}

// carry parses a message as its receiver does. ok is false if the message was lost.
func (l *testLink) carry(msg Message) (m wire.DHCPv4, ok bool) {
	m, err := wire.ParseDHCPv4(msg.Data)
	if err != nil {
		l.Fatalf("malformed message: %v", err)
	}
	l.carried++
	return m, !l.lose(l.carried-1, &m)
}

func (l *testLink) toServers(msg Message) {
	m, ok := l.carry(msg)
	if !ok {
		return
	}
	for _, s := range l.servers {
		if msg.Dst.Addr() != everyone && msg.Dst.Addr() != s.own {
			continue
		}
		reply, ok := s.Handle(l.now, &m)
		if !ok {
			continue
		}
		r, ok := l.carry(reply)
		if !ok {
			continue
		}
		for _, c := range l.clients {
			if reply.Dst.Addr() == everyone || reply.MAC == c.cfg.MAC || holds(c, reply.Dst.Addr()) {
				c.Receive(l.now, &r)
			}
		}
	}
}

func holds(c *Client, a netip.Addr) bool {
	lease, ok := c.Lease()
	return ok && lease.Addr.Addr() == a
}

// wantAddr returns the address of a bound client, which its server must also list.
func (l *testLink) wantAddr(c *Client) netip.Addr {
	l.Helper()
	lease, ok := c.Lease()
	if !ok || c.State() != Bound {
		l.Fatalf("%v: %v, lease %v; want it bound (%d messages, events %v)", c.cfg.MAC, c.State(), ok, l.carried, l.events)
	}
	for _, s := range l.servers {
		found := false
		s.EachLease(l.now, func(a netip.Addr, mac wire.MAC, until Time) bool {
			found = found || a == lease.Addr.Addr() && mac == c.cfg.MAC && until >= lease.Expires
			return true
		})
		if found {
			return lease.Addr.Addr()
		}
	}
	l.Fatalf("%v has %v, and no server knows", c.cfg.MAC, lease.Addr)
	return netip.Addr{}
}

func testServerAt(t *testing.T, own, first, last string, change ...func(*ServerConfig)) *Server {
	t.Helper()
	cfg := ServerConfig{Addr: netip.PrefixFrom(addr(own), 24), First: addr(first), Last: addr(last), Routers: []netip.Addr{addr(own)}}
	for _, f := range change {
		f(&cfg)
	}
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func oneServer(t *testing.T, change ...func(*ServerConfig)) *Server {
	return testServerAt(t, "10.0.2.2", "10.0.2.15", "10.0.2.31", change...)
}

func TestExchange(t *testing.T) {
	l := newTestLink(t, oneServer(t))
	c := l.addClient(1)
	l.run(time.Second)
	if a := l.wantAddr(c); a != guestIP || l.carried != 4 {
		t.Errorf("%v after %d messages, want %v after 4", a, l.carried, guestIP)
	}
	l.run(24 * time.Hour)
	if a := l.wantAddr(c); a != guestIP || len(l.events) < 24 {
		t.Errorf("%v after a day, events %v", a, l.events)
	}
	for _, e := range l.events[1:] {
		if want := fmt.Sprintf("0 %d %v", Renewed, guestIP); e != want {
			t.Errorf("event %s, want only %s: the lease is extended in time", e, want)
		}
	}
}

// If any of the first messages is lost together with the next one, the client still has an address after a
// minute or two, and keeps it.
func TestLossOfEachMessage(t *testing.T) {
	for first := range 12 {
		for count := 1; count <= 3; count++ {
			l := newTestLink(t, oneServer(t, func(cfg *ServerConfig) { cfg.LeaseTime = 10 * time.Minute }))
			l.lose = func(n int, _ *wire.DHCPv4) bool { return n >= first && n < first+count }
			c := l.addClient(1)
			l.run(2 * time.Minute)
			l.wantAddr(c)
			l.run(time.Hour)
			if a := l.wantAddr(c); a != guestIP {
				t.Errorf("messages %d to %d lost: it has %v, want %v", first, first+count-1, a, guestIP)
			}
			for _, e := range l.events {
				if e[:3] == fmt.Sprintf("0 %d", Lost) {
					t.Errorf("messages %d to %d lost: events %v", first, first+count-1, l.events)
				}
			}
		}
	}
}

// With a third of all messages lost at random, many clients and a full pool, every client has its own address
// at any time.
func TestLossAtRandom(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := newTestLink(t, oneServer(t))
		l.lose = func(int, *wire.DHCPv4) bool { return r.IntN(3) == 0 }
		for n := range 17 {
			l.addClient(n, func(cfg *Config) { cfg.Broadcast = n%2 == 0 })
		}
		l.run(10 * time.Minute)
		for range 20 {
			l.run(17 * time.Minute)
			taken := map[netip.Addr]bool{}
			for _, c := range l.clients {
				lease, ok := c.Lease()
				if ok && taken[lease.Addr.Addr()] {
					t.Fatalf("seed %d: two clients have %v", seed, lease.Addr)
				}
				taken[lease.Addr.Addr()] = ok
			}
		}
		l.lose = func(int, *wire.DHCPv4) bool { return false }
		l.run(2 * time.Hour)
		for _, c := range l.clients {
			l.wantAddr(c)
		}
	}
}

func TestTwoServers(t *testing.T) {
	a := testServerAt(t, "10.0.2.2", "10.0.2.15", "10.0.2.31")
	b := testServerAt(t, "10.0.2.3", "10.0.2.115", "10.0.2.131")
	l := newTestLink(t, a, b)
	c := l.addClient(1)
	l.run(time.Second)
	if got := l.wantAddr(c); got != guestIP || b.Counters().OtherServer != 1 {
		t.Errorf("%v; the other server's counters are %+v", got, b.Counters())
	}
	// The server that granted the lease disappears. The other server does not know the client and stays silent until
	// the lease has expired.
	l.servers = []*Server{b}
	l.run(59 * time.Minute)
	if c.State() != Rebinding || b.Counters().Unknown == 0 {
		t.Errorf("%v, counters %+v", c.State(), b.Counters())
	}
	l.run(2 * time.Minute)
	if got := l.wantAddr(c); got != addr("10.0.2.115") {
		t.Errorf("%v, want an address of the other server", got)
	}
}

// An authoritative server for the same pool takes over at T2, and the client keeps its address.
func TestRebindingToASuccessor(t *testing.T) {
	l := newTestLink(t, testServerAt(t, "10.0.2.2", "10.0.2.15", "10.0.2.31"))
	c := l.addClient(1)
	l.run(time.Second)
	successor := testServerAt(t, "10.0.2.3", "10.0.2.15", "10.0.2.31", authoritative)
	l.servers = []*Server{successor}
	l.run(time.Hour)
	if got := l.wantAddr(c); got != guestIP || len(l.events) != 2 {
		t.Errorf("%v, events %v; want the same address, and one renewal", got, l.events)
	}
	if lease, _ := c.Lease(); lease.Server != successor.own {
		t.Errorf("server %v", lease.Server)
	}
}

func TestServerThatForgot(t *testing.T) {
	for _, auth := range []bool{false, true} {
		l := newTestLink(t, oneServer(t))
		c := l.addClient(1)
		l.run(time.Second)
		l.servers = []*Server{oneServer(t, func(cfg *ServerConfig) { cfg.Authoritative = auth })}
		l.run(2 * time.Hour)
		if got := l.wantAddr(c); got != guestIP {
			t.Errorf("authoritative %v: %v", auth, got)
		}
		lost := false
		for _, e := range l.events {
			lost = lost || e[:3] == fmt.Sprintf("0 %d", Lost)
		}
		if lost == auth {
			t.Errorf("authoritative %v: lease lost in between: %v", auth, lost)
		}
	}
}

func TestRebootAgainstAServer(t *testing.T) {
	s := oneServer(t)
	l := newTestLink(t, s)
	first := l.addClient(1)
	l.run(time.Second)
	had := l.wantAddr(first)
	l.clients = nil // the machine restarts and remembers its address
	l.carried = 0
	again := l.addClient(1, func(cfg *Config) { cfg.Requested = had })
	l.run(time.Second)
	if got := l.wantAddr(again); got != had || l.carried != 2 {
		t.Errorf("%v after %d messages, want %v after 2", got, l.carried, had)
	}
	// The machine moves to another network.
	l.clients, l.servers = nil, []*Server{testServerAt(t, "192.0.2.1", "192.0.2.15", "192.0.2.20")}
	moved := l.addClient(1, func(cfg *Config) { cfg.Requested = had })
	l.run(time.Second)
	if got := l.wantAddr(moved); got != addr("192.0.2.15") {
		t.Errorf("%v on the other network", got)
	}
}

func TestConflictAgainstAServer(t *testing.T) {
	s := oneServer(t)
	l := newTestLink(t, s)
	c := l.addClient(1)
	l.run(time.Second)
	c.Conflict(l.now)
	l.run(9 * time.Second)
	if _, ok := c.Lease(); ok || s.Counters().Declines != 1 {
		t.Errorf("lease %v, counters %+v", ok, s.Counters())
	}
	l.run(2 * time.Second)
	if got := l.wantAddr(c); got != addr("10.0.2.16") {
		t.Errorf("%v, want the next address", got)
	}
}

func TestReleaseAgainstAServer(t *testing.T) {
	s := oneServer(t, func(cfg *ServerConfig) { cfg.Last = cfg.First })
	l := newTestLink(t, s)
	first := l.addClient(1)
	l.run(time.Second)
	second := l.addClient(2)
	l.run(time.Minute)
	if _, ok := second.Lease(); ok || s.Counters().Exhausted == 0 {
		t.Errorf("one address for two: %v, counters %+v", ok, s.Counters())
	}
	first.Close(l.now)
	l.run(2 * time.Minute)
	if got := l.wantAddr(second); got != guestIP {
		t.Errorf("%v", got)
	}
	if first.State() != Stopped || first.Deadline() != Never {
		t.Errorf("the first is %v", first.State())
	}
}
