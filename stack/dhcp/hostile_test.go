package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

// Any station on the link can send messages to a client, and any guest to a server.

func TestClientIgnoresWhatIsNotForIt(t *testing.T) {
	for name, change := range map[string]func(*wire.DHCPv4){
		"another transaction":       func(m *wire.DHCPv4) { m.XID++ },
		"another hardware address":  func(m *wire.DHCPv4) { m.CHAddr[5]++ },
		"a request":                 func(m *wire.DHCPv4) { m.Op = wire.DHCPv4BootRequest },
		"another client identifier": func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptClientID, []byte{0, 'x'}) },
		"half an identifier":        func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptClientID, guestMAC[:1]) },
	} {
		tc := newTestClient(t)
		tc.want("", wire.DHCPv4Discover)
		tc.reply(wire.DHCPv4Offer, change)
		tc.wantSilence(name)
		tc.wantState(Selecting)
		if n := tc.c.Counters().NotForUs; n != 1 {
			t.Errorf("%s: %d counted, want 1", name, n)
		}
	}
	tc := newTestClient(t)
	tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer, func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptClientID, append([]byte{1}, guestMAC[:]...)) })
	tc.want("its own identifier is right (RFC 6842)", wire.DHCPv4Request)
}

func TestClientIgnoresWhatDoesNotFitItsState(t *testing.T) {
	tc := newTestClient(t)
	tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Ack)
	tc.reply(wire.DHCPv4Nak)
	tc.reply(wire.DHCPv4Inform)
	tc.reply(77)
	tc.wantSilence("nothing but an offer counts while selecting")
	tc.reply(wire.DHCPv4Offer, forTime(time.Second))
	tc.wantSilence("and it has to be a good one")
	tc.reply(wire.DHCPv4Offer)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack, fromServer("10.0.2.9"))
	tc.reply(wire.DHCPv4Ack, func(m *wire.DHCPv4) { m.YIAddr = addr("10.0.2.16") })
	tc.reply(wire.DHCPv4Ack, forTime(0))
	tc.wantState(Requesting)
	tc.wantNoEvent("only what was asked for is taken")
	if c := tc.c.Counters(); c.Unexpected != 5 || c.BadOffer != 1 || c.BadAck != 2 {
		t.Errorf("counters %+v", c)
	}
	before := tc.c.Deadline()
	for range 1000 {
		tc.reply(wire.DHCPv4Offer)
	}
	if tc.c.Deadline() != before {
		t.Error("a flood of offers puts off what the client does next")
	}
}

// hostileMessage returns a message that the parser accepts, with values likely to trigger errors.
func hostileMessage(r *rand.Rand, op wire.DHCPv4Op, xid uint32, mac wire.MAC) *wire.DHCPv4 {
	addrs := []netip.Addr{
		{}, guestIP, serverIP, addr("10.0.2.16"), addr("10.0.2.255"), addr("192.0.2.1"), everyone, addr("127.0.0.1"),
	}
	pick := func() netip.Addr { return addrs[r.IntN(len(addrs))] }
	m := &wire.DHCPv4{
		Op: op, XID: xid, CHAddr: mac, CIAddr: pick(), YIAddr: pick(), SIAddr: pick(),
		Broadcast: r.IntN(2) == 0, Secs: uint16(r.Uint32()),
	}
	m.AddUint8(wire.DHCPv4OptMessageType, uint8(r.IntN(9)+1))
	for _, code := range []wire.DHCPv4Option{wire.DHCPv4OptServerID, wire.DHCPv4OptRequestedIP} {
		if a := pick(); a.IsValid() {
			m.AddAddrs(code, a)
		}
	}
	for _, code := range []wire.DHCPv4Option{wire.DHCPv4OptLeaseTime, wire.DHCPv4OptT1, wire.DHCPv4OptT2} {
		times := []time.Duration{0, time.Second, 10 * time.Second, time.Hour, (1<<32 - 2) * time.Second, wire.DHCPv4Infinite}
		if i := r.IntN(len(times) + 1); i < len(times) {
			m.AddDuration(code, times[i])
		}
	}
	if r.IntN(2) == 0 {
		m.AddSubnetMask(r.IntN(33))
	}
	for range r.IntN(4) {
		data := make([]byte, r.IntN(300))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		m.Add(wire.DHCPv4Option(60+r.IntN(70)), data)
	}
	return m
}

// For any input, a client holds only valid leases, sends no more often than its timers allow, and sends no
// malformed message.
func hammerClient(t *testing.T, seed uint64, rounds int) {
	r := rand.New(rand.NewPCG(seed, 1))
	c := NewClient(Config{MAC: guestMAC, Rand: rand.New(rand.NewPCG(seed, 2))})
	now := time.Hour
	c.Start(now)
	said, began := 0, now
	for range rounds {
		if msg, ok := c.Poll(); ok {
			if _, err := wire.ParseDHCPv4(msg.Data); err != nil {
				t.Fatalf("seed %d: it sends a malformed message: %v", seed, err)
			}
			said++
		}
		switch r.IntN(8) {
		case 0:
			now = min(c.Deadline(), now+time.Hour)
			c.Tick(now)
		case 1:
			now += time.Duration(r.Int64N(int64(time.Minute)))
			c.Tick(now)
		default:
			now += time.Millisecond
			c.Receive(now, hostileMessage(r, wire.DHCPv4BootReply, c.xid, guestMAC))
		}
		if d := c.Deadline(); d <= now-time.Minute {
			t.Fatalf("seed %d: the deadline %v is long past, at %v", seed, d, now)
		}
		if l, ok := c.Lease(); ok {
			if !usableIn(l.Addr.Addr(), l.Addr) || !usable(l.Server) || l.T1 > l.T2 || l.T2 > l.Expires {
				t.Fatalf("seed %d: it holds %+v", seed, l)
			}
		}
	}
	// The client answers an offer at once, but only once for each DISCOVER.
	if most := int((now-began)/time.Second) + 10; said > most {
		t.Fatalf("seed %d: %d messages in %v", seed, said, now-began)
	}
}

// For any input, a server assigns each address to one client, has no more bindings than addresses, and sends
// no malformed message.
func hammerServer(t *testing.T, seed uint64, rounds int) {
	r := rand.New(rand.NewPCG(seed, 3))
	s := testServerAt(t, "10.0.2.2", "10.0.2.15", "10.0.2.20", func(cfg *ServerConfig) {
		cfg.Authoritative = seed%2 == 0
	})
	now := time.Hour
	for range rounds {
		now += time.Duration(r.Int64N(int64(time.Minute)))
		m := hostileMessage(r, wire.DHCPv4BootRequest, r.Uint32(), client(r.IntN(12)))
		if msg, ok := s.Handle(now, m); ok {
			reply, err := wire.ParseDHCPv4(msg.Data)
			if err != nil {
				t.Fatalf("seed %d: it sends a malformed message: %v", seed, err)
			}
			if a := reply.YIAddr; a.IsValid() && (a.Less(s.cfg.First) || s.cfg.Last.Less(a)) {
				t.Fatalf("seed %d: it gives away %v", seed, a)
			}
		}
		for client, i := range s.pool.byClient {
			if s.pool.bindings[i].client != client {
				t.Fatalf("seed %d: address %d is %q's and %q's", seed, i, client, s.pool.bindings[i].client)
			}
		}
		if len(s.pool.byClient) > len(s.pool.bindings) {
			t.Fatalf("seed %d: %d clients for %d addresses", seed, len(s.pool.byClient), len(s.pool.bindings))
		}
	}
}

func TestHostileInput(t *testing.T) {
	for seed := range uint64(20) {
		hammerClient(t, seed, 2000)
		hammerServer(t, seed, 2000)
	}
}

// seedMessages adds the seed corpus of the fuzz tests.
func seedMessages(f *testing.F, op wire.DHCPv4Op) {
	r := rand.New(rand.NewPCG(1, 4))
	for range 8 {
		m := hostileMessage(r, op, 0, guestMAC)
		b := make([]byte, m.Len())
		m.Put(b)
		f.Add(b)
	}
}

// FuzzClient passes a message from the input to a client, in each state in which the client waits for a message. The
// message is changed to belong to the client's transaction.
func FuzzClient(f *testing.F) {
	seedMessages(f, wire.DHCPv4BootReply)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wire.ParseDHCPv4(b)
		if err != nil {
			return
		}
		for _, tc := range []*testClient{
			newTestClient(t), newTestClient(t, rebooting), boundClient(t), boundClient(t), boundClient(t),
		} {
			if tc.c.State() == Bound {
				tc.jump([]time.Duration{0, 31 * time.Minute, 53 * time.Minute}[len(b)%3])
			}
			m.Op, m.XID, m.CHAddr = wire.DHCPv4BootReply, tc.c.xid, guestMAC
			tc.c.Receive(tc.now, &m)
			tc.c.Receive(tc.now, &m)
			if l, ok := tc.c.Lease(); ok && (!usableIn(l.Addr.Addr(), l.Addr) || l.T1 > l.T2 || l.T2 > l.Expires) {
				t.Fatalf("it holds %+v", l)
			}
			if tc.c.Deadline() <= tc.now {
				t.Fatalf("the next deadline is %v ago", tc.now-tc.c.Deadline())
			}
			if msg, ok := tc.c.Poll(); ok {
				if _, err := wire.ParseDHCPv4(msg.Data); err != nil {
					t.Fatalf("it sends a malformed message: %v", err)
				}
			}
		}
	})
}

// FuzzServer passes a message of a third client to a server that has granted a lease to one client and made an offer to
// another.
func FuzzServer(f *testing.F) {
	seedMessages(f, wire.DHCPv4BootRequest)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wire.ParseDHCPv4(b)
		if err != nil {
			return
		}
		ts := newTestServer(t, func(cfg *ServerConfig) { cfg.Authoritative = len(b)%2 == 0 })
		had := ts.lease(1)
		ts.say(2, wire.DHCPv4Discover)
		m.CHAddr = client(3)
		for range 2 {
			msg, ok := ts.s.Handle(ts.now, &m)
			if !ok {
				continue
			}
			reply, err := wire.ParseDHCPv4(msg.Data)
			if err != nil || reply.YIAddr == had || reply.XID != m.XID {
				t.Fatalf("it says %+v, error %v", reply, err)
			}
		}
		if ts.leases()[had] != client(1) {
			t.Fatalf("another client's message took a lease: %v", ts.leases())
		}
	})
}
