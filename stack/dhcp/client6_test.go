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

// Tests of the DHCPv6 client: RFC 8415 section 15 (retransmission) and section 18.2 (messages).

var (
	address6 = netip.MustParseAddr("2001:db8::7")
	another6 = netip.MustParseAddr("2001:db8::8")
	serverID = []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 0xb}
)

// talk6 is a client and the current time; the test plays the servers.
type talk6 struct {
	t *testing.T
	*Client6
	now  time.Duration
	last wire.DHCPv6 // last message of the client
}

// begun returns a client that has sent its first message.
func begun(t *testing.T) *talk6 {
	t.Helper()
	w := &talk6{t: t, Client6: NewClient6(informMAC, rand.New(rand.NewPCG(1, 2))), now: time.Hour}
	if w.Deadline() != timer.Never {
		t.Error("it asks before it is told to")
	}
	w.Start(w.now)
	if d := w.Deadline() - w.now; d < 0 || d > time.Second {
		t.Errorf("section 18.2.1: the first message waits for up to a second, not %v", d)
	}
	w.says(wire.DHCPv6Solicit)
	return w
}

// pass advances the time to the client's next deadline. It reports whether the client sends a message.
func (w *talk6) pass() (said bool) {
	w.now = w.Deadline()
	m, said := w.Poll(w.now)
	if said {
		w.last = m
	}
	return said
}

// says advances the time until the client sends a message, which must be of type want.
func (w *talk6) says(want wire.DHCPv6Type) {
	w.t.Helper()
	for range 10 {
		if w.pass() {
			m := w.last
			if m.Type != want || !slices.Equal(m.ClientID, informID) || m.IA == nil || m.IA.ID != 1 {
				w.t.Errorf("it says %+v, want type %d", m, want)
			}
			return
		}
	}
	w.t.Fatalf("it says nothing; want type %d", want)
}

// answer sends a server's reply to the last message: an address for an hour, preferred for half of it.
func (w *talk6) answer(kind wire.DHCPv6Type, change ...func(*wire.DHCPv6)) {
	m := wire.DHCPv6{
		Type: kind, Transaction: w.last.Transaction, ClientID: w.last.ClientID, ServerID: serverID, DNS: []netip.Addr{dns6},
		IA: &wire.DHCPv6IA{ID: 1, T1: 900, T2: 1440, Addresses: []wire.DHCPv6Address{{Addr: address6, Preferred: 1800, Valid: 3600}}},
	}
	for _, f := range change {
		f(&m)
	}
	w.Receive(w.now, &m)
}

// holding returns a client that has a lease.
func holding(t *testing.T) *talk6 {
	t.Helper()
	w := begun(t)
	w.answer(wire.DHCPv6Advertise, func(m *wire.DHCPv6) { m.Preference = best })
	w.says(wire.DHCPv6Request)
	if !slices.Equal(w.last.ServerID, serverID) || len(w.last.IA.Addresses) != 1 || w.last.IA.Addresses[0].Addr != address6 {
		t.Errorf("it asks for %+v", w.last)
	}
	w.answer(wire.DHCPv6Reply)
	w.holds(address6)
	return w
}

func (w *talk6) holds(want ...netip.Addr) {
	w.t.Helper()
	var got []netip.Addr
	for _, a := range w.Addresses() {
		got = append(got, a.Addr)
	}
	if !w.Changed() || !slices.Equal(got, want) || len(want) > 0 != slices.Equal(w.Servers(), []netip.Addr{dns6}) {
		w.t.Errorf("it holds %v, and the servers %v; want %v", got, w.Servers(), want)
	}
	if w.Changed() {
		w.t.Error("it says so twice")
	}
}

func TestClient6Solicits(t *testing.T) {
	w := begun(t)
	first, began, at, last := w.last, w.now, w.now, time.Duration(0)
	if !first.RapidCommit || first.ServerID != nil || len(first.IA.Addresses) != 0 || first.Elapsed != 0 {
		t.Errorf("the first message is %+v", first)
	}
	for range 16 {
		w.says(wire.DHCPv6Solicit)
		wait := w.now - at
		want := min(max(2*last, time.Second), time.Hour)
		if wait < want*9/10-last/10 || wait > want*11/10+last/10 {
			t.Errorf("section 15: after %v it waits for %v", last, wait)
		}
		last, at = wait, w.now
		if elapsed := min((at-began)/(10*time.Millisecond), 0xffff); time.Duration(w.last.Elapsed) != elapsed || w.last.Transaction != first.Transaction {
			t.Errorf("section 21.9: the same again, %v later: %+v", at-began, w.last)
		}
	}
	w.answer(wire.DHCPv6Advertise, func(m *wire.DHCPv6) { m.SolMaxRT, m.IA = 60, nil })
	w.says(wire.DHCPv6Solicit)
	before := w.now
	w.says(wire.DHCPv6Solicit)
	if d := w.now - before; d > 66*time.Second {
		t.Errorf("section 21.24: a server that wants to be asked every minute is asked after %v", d)
	}
}

// Of the servers that advertise within the first second, the client requests from the one with the highest
// preference.
func TestClient6Chooses(t *testing.T) {
	w := begun(t)
	of := func(id byte, preference uint8) func(*wire.DHCPv6) {
		return func(m *wire.DHCPv6) { m.ServerID, m.Preference = []byte{id}, preference }
	}
	w.answer(wire.DHCPv6Advertise, of(1, 3))
	w.answer(wire.DHCPv6Advertise, of(2, 7))
	w.answer(wire.DHCPv6Advertise, of(3, 7))
	w.says(wire.DHCPv6Request)
	if !slices.Equal(w.last.ServerID, []byte{2}) {
		t.Errorf("it asks %v", w.last.ServerID)
	}
	w.answer(wire.DHCPv6Reply)
	if w.Addresses() != nil {
		t.Error("another server answers")
	}
	for range requestTries6 - 1 {
		w.says(wire.DHCPv6Request)
	}
	w.says(wire.DHCPv6Solicit)
	w.says(wire.DHCPv6Solicit)
	w.answer(wire.DHCPv6Advertise, of(4, 0))
	if w.Deadline() != w.now {
		t.Error("who answers later than that is asked at once")
	}
	w.says(wire.DHCPv6Request)
}

func TestClient6RapidCommit(t *testing.T) {
	w := begun(t)
	w.answer(wire.DHCPv6Reply)
	if w.Addresses() != nil {
		t.Error("a reply without the option answers no SOLICIT")
	}
	w.answer(wire.DHCPv6Reply, func(m *wire.DHCPv6) { m.RapidCommit = true })
	w.holds(address6)
}

func TestClient6Renews(t *testing.T) {
	w := holding(t)
	got := w.now
	w.says(wire.DHCPv6Renew)
	if w.now != got+900*time.Second || !slices.Equal(w.last.ServerID, serverID) || w.last.IA.Addresses[0].Addr != address6 {
		t.Errorf("after %v it says %+v", w.now-got, w.last)
	}
	w.answer(wire.DHCPv6Reply)
	if w.Changed() {
		t.Error("more time for the same is no change")
	}
	got = w.now
	for w.last.Type == wire.DHCPv6Renew {
		w.pass()
	}
	if w.last.Type != wire.DHCPv6Rebind || w.now != got+1440*time.Second || w.last.ServerID != nil {
		t.Errorf("after %v it says %+v", w.now-got, w.last)
	}
	for w.now < got+1800*time.Second {
		w.pass()
	}
	if !w.Changed() || w.Addresses()[0].Preferred != 0 {
		t.Errorf("after half an hour it is not preferred: %+v", w.Addresses())
	}
	for w.now < got+3600*time.Second {
		w.pass()
	}
	w.holds()
	w.says(wire.DHCPv6Solicit)
}

// Possible replies to a client that asks for an extension (RFC 8415 section 18.2.10.1).
func TestClient6Replies(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(*wire.DHCPv6)
		next   wire.DHCPv6Type
		holds  []netip.Addr
	}{
		"it knows nothing of it":          {func(m *wire.DHCPv6) { m.IA = &wire.DHCPv6IA{ID: 1, Status: wire.DHCPv6NoBinding} }, wire.DHCPv6Request, []netip.Addr{address6}},
		"it has failed":                   {func(m *wire.DHCPv6) { m.Status = 1 }, wire.DHCPv6Renew, []netip.Addr{address6}},
		"it says nothing of it":           {func(m *wire.DHCPv6) { m.IA.Addresses = nil }, wire.DHCPv6Renew, []netip.Addr{address6}},
		"nor of any":                      {func(m *wire.DHCPv6) { m.IA = nil }, wire.DHCPv6Renew, []netip.Addr{address6}},
		"times that cannot be":            {func(m *wire.DHCPv6) { m.IA.T1 = 1441 }, wire.DHCPv6Renew, []netip.Addr{address6}},
		"an address that cannot be":       {func(m *wire.DHCPv6) { m.IA.Addresses[0].Addr = netip.IPv6LinkLocalAllNodes() }, wire.DHCPv6Renew, []netip.Addr{address6}},
		"lifetimes that cannot be":        {func(m *wire.DHCPv6) { m.IA.Addresses[0].Preferred = 3601 }, wire.DHCPv6Renew, []netip.Addr{address6}},
		"another address as well":         {func(m *wire.DHCPv6) { m.IA.Addresses[0].Addr = another6 }, wire.DHCPv6Renew, []netip.Addr{address6, another6}},
		"no more time":                    {func(m *wire.DHCPv6) { m.IA.Addresses[0] = wire.DHCPv6Address{Addr: address6} }, wire.DHCPv6Solicit, nil},
		"the address is none of the link": {func(m *wire.DHCPv6) { m.Status = wire.DHCPv6NotOnLink }, wire.DHCPv6Solicit, nil},
		"as it likes":                     {func(m *wire.DHCPv6) { m.IA.T1, m.IA.T2 = 0, 0 }, wire.DHCPv6Renew, []netip.Addr{address6}},
		"for ever": {func(m *wire.DHCPv6) {
			m.IA.T1 = wire.LifetimeForever
			m.IA.T2 = wire.LifetimeForever
			m.IA.Addresses[0].Preferred = wire.LifetimeForever
			m.IA.Addresses[0].Valid = wire.LifetimeForever
		}, 0, []netip.Addr{address6}},
		"for ever, and the rest is for us to say": {func(m *wire.DHCPv6) {
			m.IA.T1, m.IA.T2 = 0, 0
			m.IA.Addresses[0].Preferred = wire.LifetimeForever
			m.IA.Addresses[0].Valid = wire.LifetimeForever
		}, 0, []netip.Addr{address6}},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := holding(t)
			w.says(wire.DHCPv6Renew)
			w.answer(wire.DHCPv6Reply, c.change)
			var got []netip.Addr
			for _, a := range w.Addresses() {
				got = append(got, a.Addr)
			}
			if !slices.Equal(got, c.holds) {
				t.Errorf("it holds %v", got)
			}
			if c.next == 0 {
				if w.Deadline() != timer.Never {
					t.Errorf("something is due at %v", w.Deadline())
				}
				return
			}
			w.says(c.next)
		})
	}
}

func TestClient6Refuses(t *testing.T) {
	for sentence, spoil := range map[string]func(*wire.DHCPv6){
		"another type":            func(m *wire.DHCPv6) { m.Type = wire.DHCPv6Solicit },
		"another transaction":     func(m *wire.DHCPv6) { m.Transaction++ },
		"without a server":        func(m *wire.DHCPv6) { m.ServerID = nil },
		"another client's":        func(m *wire.DHCPv6) { m.ClientID = []byte{1} },
		"nobody's":                func(m *wire.DHCPv6) { m.ClientID = nil },
		"no address":              func(m *wire.DHCPv6) { m.IA = nil },
		"none is left":            func(m *wire.DHCPv6) { m.IA = &wire.DHCPv6IA{ID: 1, Status: wire.DHCPv6NoAddrs} },
		"one that is out of date": func(m *wire.DHCPv6) { m.IA.Addresses[0] = wire.DHCPv6Address{Addr: address6} },
	} {
		w := begun(t)
		w.answer(wire.DHCPv6Advertise, spoil)
		w.says(wire.DHCPv6Solicit)
		if w.Addresses() != nil || w.None() != (sentence == "none is left") {
			t.Errorf("%s: believed", sentence)
		}
	}
	w := begun(t)
	w.answer(wire.DHCPv6Advertise)
	w.says(wire.DHCPv6Request)
	w.answer(wire.DHCPv6Reply, func(m *wire.DHCPv6) { m.IA = &wire.DHCPv6IA{ID: 1, Status: wire.DHCPv6NoAddrs} })
	w.says(wire.DHCPv6Solicit)

	w = begun(t)
	w.answer(wire.DHCPv6Reply, func(m *wire.DHCPv6) {
		m.RapidCommit = true
		for range 20 {
			a := m.IA.Addresses[len(m.IA.Addresses)-1]
			a.Addr = a.Addr.Next()
			m.IA.Addresses = append(m.IA.Addresses, a)
		}
	})
	if len(w.Addresses()) != maxAddresses {
		t.Errorf("it holds %v", w.Addresses())
	}
}

// The client declines an address that another host has (RFC 8415 section 18.2.8).
func TestClient6Declines(t *testing.T) {
	w := holding(t)
	w.Conflict(w.now, another6)
	if w.Changed() {
		t.Error("it is somebody else's")
	}
	w.Conflict(w.now, address6)
	w.holds()
	for range declineTries {
		w.says(wire.DHCPv6Decline)
		if !slices.Equal(w.last.ServerID, serverID) || w.last.IA.Addresses[0].Addr != address6 {
			t.Errorf("it says %+v", w.last)
		}
	}
	w.says(wire.DHCPv6Solicit)

	w = holding(t)
	w.Conflict(w.now, address6)
	w.says(wire.DHCPv6Decline)
	w.answer(wire.DHCPv6Reply, func(m *wire.DHCPv6) { m.IA = nil })
	w.says(wire.DHCPv6Solicit)
}

func TestClient6Releases(t *testing.T) {
	w := holding(t)
	m, ok := w.Close()
	if !ok || m.Type != wire.DHCPv6Release || !slices.Equal(m.ServerID, serverID) || m.IA.Addresses[0].Addr != address6 {
		t.Errorf("it says %+v, %v", m, ok)
	}
	w.holds()
	if w.Deadline() != timer.Never {
		t.Errorf("something is due at %v", w.Deadline())
	}
	if _, ok := w.Close(); ok {
		t.Error("there is nothing to give back")
	}
	w.Start(w.now)
	w.says(wire.DHCPv6Solicit)
}

// For any input, a client holds few addresses, each with time left, and sends one message at a time.
func FuzzClient6(f *testing.F) {
	f.Add([]byte{2, 0xff, 7, 1, 7, 0, 2, 0x80})
	f.Fuzz(func(t *testing.T, script []byte) {
		w := begun(t)
		for i := 0; i+1 < len(script) && i < 200; i += 2 {
			x := script[i+1]
			m := wire.DHCPv6{
				Type: wire.DHCPv6Type(script[i] & 0xf), Transaction: w.last.Transaction, ClientID: w.last.ClientID, ServerID: serverID,
				RapidCommit: x&1 != 0, Status: uint16(x >> 5), Preference: x,
				IA: &wire.DHCPv6IA{ID: 1, T1: uint32(x), T2: uint32(script[i]), Status: uint16(script[i]>>4) & 3, Addresses: []wire.DHCPv6Address{
					{Addr: address6, Preferred: uint32(x), Valid: uint32(script[i])}, {Addr: another6, Preferred: uint32(script[i]), Valid: uint32(script[i])},
				}},
			}
			w.Receive(w.now, &m)
			if x&2 != 0 {
				w.Conflict(w.now, address6)
			}
			if d := w.Deadline(); d == timer.Never {
				t.Fatal("nothing is due any more, and nothing is for ever")
			} else {
				w.now = max(w.now, d)
			}
			if said, ok := w.Poll(w.now); ok {
				w.last = said
			}
			if _, again := w.Poll(w.now); again {
				t.Fatal("it says two things at once")
			}
			for _, a := range w.Addresses() {
				if len(w.Addresses()) > maxAddresses || a.Valid <= w.now || a.Preferred > a.Valid {
					t.Fatalf("it holds %+v at %v", w.Addresses(), w.now)
				}
			}
		}
	})
}
