package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// RFC 8415 sections 15, 16.10, 18.2.6 and 21.23.

var (
	informMAC = wire.MAC{2, 0, 0, 0, 0, 0xa}
	informID  = []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 0xa}
	dns6      = netip.MustParseAddr("2001:db8::53")
)

func newInform() *Inform { return NewInform(informMAC, rand.New(rand.NewPCG(1, 2))) }

// asked returns a client that has sent its first message, the time, and a reply to that
// message.
func asked(t *testing.T, now time.Duration) (*Inform, time.Duration, wire.DHCPv6) {
	t.Helper()
	c := newInform()
	c.Start(now)
	now = c.Deadline()
	m, ok := c.Poll(now)
	if !ok || m.Type != wire.DHCPv6InformationRequest || !slices.Equal(m.ClientID, informID) || m.Elapsed != 0 {
		t.Fatalf("the first question is %+v, %v", m, ok)
	}
	return c, now, wire.DHCPv6{Type: wire.DHCPv6Reply, Transaction: m.Transaction, ClientID: informID, ServerID: []byte{1}, DNS: []netip.Addr{dns6}}
}

func TestInformAsks(t *testing.T) {
	c := newInform()
	if c.Deadline() != timer.Never {
		t.Error("it asks before it is told to")
	}
	c.Start(time.Hour)
	if d := c.Deadline() - time.Hour; d < 0 || d > time.Second {
		t.Errorf("section 18.2.6: the first question waits for up to a second, not %v", d)
	}
	at := c.Deadline()
	if _, ok := c.Poll(at - 1); ok {
		t.Error("it is asked early")
	}
	first, _ := c.Poll(at)
	began, last := at, time.Duration(0)
	for range 16 {
		wait := c.Deadline() - at
		want := min(max(2*last, time.Second), time.Hour)
		if wait < want*9/10-last/10 || wait > want*11/10+last/10 {
			t.Errorf("section 15: after %v it waits for %v", last, wait)
		}
		last, at = wait, c.Deadline()
		m, ok := c.Poll(at)
		if elapsed := min((at-began)/(10*time.Millisecond), 0xffff); !ok || m.Transaction != first.Transaction || time.Duration(m.Elapsed) != elapsed {
			t.Errorf("section 21.9: the same again, %v later: %+v, %v", at-began, m, ok)
		}
	}
}

func TestInformed(t *testing.T) {
	for seconds, want := range map[uint32]time.Duration{0: 24 * time.Hour, 3600: time.Hour, 60: 10 * time.Minute} {
		c, now, reply := asked(t, time.Hour)
		reply.Refresh = seconds
		if !c.Receive(now, &reply) || !slices.Equal(c.Servers(), reply.DNS) {
			t.Errorf("the servers are %v", c.Servers())
		}
		c.Start(now)
		if d := c.Deadline() - now; d != want {
			t.Errorf("told to refresh after %d s, it does after %v", seconds, d)
		}
		now = c.Deadline()
		c.Poll(now)
		now = c.Deadline()
		m, ok := c.Poll(now)
		if !ok || m.Transaction == reply.Transaction {
			t.Errorf("another question is due: %+v, %v", m, ok)
		}
		if c.Receive(now, &reply) {
			t.Error("which an old answer does not answer")
		}
		reply.Transaction = m.Transaction
		if c.Receive(now, &reply) || c.asking {
			t.Error("the same again changes nothing, and ends it")
		}
	}
	c, now, reply := asked(t, 0)
	reply.Refresh = wire.LifetimeForever
	if c.Receive(now, &reply); c.Deadline() != timer.Never {
		t.Errorf("what is good for ever is asked for again at %v", c.Deadline())
	}
}

func TestInformRefuses(t *testing.T) {
	for sentence, spoil := range map[string]func(*wire.DHCPv6){
		"another type":                 func(m *wire.DHCPv6) { m.Type = wire.DHCPv6InformationRequest },
		"another transaction":          func(m *wire.DHCPv6) { m.Transaction++ },
		"without a server":             func(m *wire.DHCPv6) { m.ServerID = nil },
		"another client's":             func(m *wire.DHCPv6) { m.ClientID = []byte{1} },
		"nobody's":                     func(m *wire.DHCPv6) { m.ClientID = nil },
		"a server that cannot answer":  func(m *wire.DHCPv6) { m.Status = 1 },
		"which says how often to ask":  func(m *wire.DHCPv6) { m.Status, m.InfMaxRT = 1, 120 },
		"or what it may not say of it": func(m *wire.DHCPv6) { m.Status, m.InfMaxRT = 1, 59 },
	} {
		c, now, reply := asked(t, 0)
		spoil(&reply)
		if c.Receive(now, &reply) || !c.asking || c.Servers() != nil {
			t.Errorf("%s: believed: %v", sentence, c.Servers())
		}
		if want := reply.InfMaxRT == 120; want != (c.most == 2*time.Minute) {
			t.Errorf("%s: the longest wait is %v", sentence, c.most)
		}
	}
	c, now, reply := asked(t, 0)
	reply.DNS = append([]netip.Addr{netip.IPv6Unspecified(), netip.IPv6Loopback(), netip.IPv6LinkLocalAllNodes()}, slices.Repeat(reply.DNS, 20)...)
	if c.Receive(now, &reply); len(c.Servers()) != maxServers6 || c.Servers()[0] != dns6 {
		t.Errorf("the servers are %v", c.Servers())
	}
	if c = newInform(); c.Receive(0, &reply) {
		t.Error("nobody has asked")
	}
}
