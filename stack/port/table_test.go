package port

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"loam/wire"
)

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func mustBind(t *testing.T, table *Table, proto wire.Protocol, local string, o Options) *Binding {
	t.Helper()
	b, err := table.Bind(proto, addrPort(local), o)
	if err != nil {
		t.Fatalf("Bind %s: %v", local, err)
	}
	return b
}

func mustConnect(t *testing.T, table *Table, local, remote string, b *Binding) *Flow {
	t.Helper()
	f, err := table.Connect(wire.ProtoTCP, addrPort(local), addrPort(remote), b, Options{})
	if err != nil {
		t.Fatalf("Connect %s to %s: %v", local, remote, err)
	}
	return f
}

func wantBind(t *testing.T, sentence string, table *Table, local string, want error) {
	t.Helper()
	b, err := table.Bind(wire.ProtoTCP, addrPort(local), Options{})
	if !errors.Is(err, want) {
		t.Errorf("%s: Bind says %v, want %v", sentence, err, want)
	}
	if err == nil {
		table.Release(b)
	}
}

func wantEmpty(t *testing.T, table *Table) {
	t.Helper()
	if len(table.ports) != 0 || len(table.flows) != 0 {
		t.Errorf("%d ports and %d connections are held when all are given back", len(table.ports), len(table.flows))
	}
}

func TestBindAndRelease(t *testing.T) {
	table := NewTable(Config{})
	b := mustBind(t, table, wire.ProtoTCP, "192.0.2.1:80", Options{})
	if b.Local() != addrPort("192.0.2.1:80") {
		t.Errorf("bound to %v", b.Local())
	}
	wantBind(t, "taken", table, "192.0.2.1:80", ErrInUse)
	wantBind(t, "another port", table, "192.0.2.1:81", nil)
	udp := mustBind(t, table, wire.ProtoUDP, "192.0.2.1:80", Options{})
	table.Release(b)
	wantBind(t, "given back", table, "192.0.2.1:80", nil)
	table.Release(udp)
	wantEmpty(t, table)
}

func TestOnlyOneOfThoseThatShareByReuseAddrListens(t *testing.T) {
	table := NewTable(Config{})
	o := Options{ReuseAddr: true}
	a := mustBind(t, table, wire.ProtoTCP, "0.0.0.0:80", o)
	b := mustBind(t, table, wire.ProtoTCP, "0.0.0.0:80", o)
	if err := table.Listen(a); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := table.Listen(a); err != nil {
		t.Errorf("the first again: %v", err)
	}
	if err := table.Listen(b); !errors.Is(err, ErrInUse) {
		t.Errorf("the second: %v", err)
	}
	table.Release(a)
	if err := table.Listen(b); err != nil {
		t.Errorf("the second, once the first has gone: %v", err)
	}
	table.Release(b)
	wantEmpty(t, table)
}

func TestAllOfThoseThatShareByReusePortListen(t *testing.T) {
	table := NewTable(Config{})
	for range 4 {
		b := mustBind(t, table, wire.ProtoTCP, "0.0.0.0:80", Options{ReusePort: true})
		if err := table.Listen(b); err != nil {
			t.Error(err)
		}
	}
}

func TestAPortStaysTakenWhileItHasConnections(t *testing.T) {
	table := NewTable(Config{})
	listener := mustBind(t, table, wire.ProtoTCP, "0.0.0.0:80", Options{ReuseAddr: true})
	table.Listen(listener)
	first := mustConnect(t, table, "192.0.2.1:80", "198.51.100.7:1000", listener)
	second := mustConnect(t, table, "192.0.2.1:80", "198.51.100.7:1001", listener)
	table.Release(listener)
	wantBind(t, "without SO_REUSEADDR", table, "192.0.2.1:80", ErrInUse)
	again := mustBind(t, table, wire.ProtoTCP, "0.0.0.0:80", Options{ReuseAddr: true})
	if err := table.Listen(again); err != nil {
		t.Errorf("started again: %v", err)
	}
	table.Close(first)
	table.Close(second)
	table.Release(again)
	wantEmpty(t, table)
}

func TestAConnectionExistsOnce(t *testing.T) {
	table := NewTable(Config{})
	o := Options{ReuseAddr: true}
	a := mustBind(t, table, wire.ProtoTCP, "192.0.2.1:5000", o)
	b := mustBind(t, table, wire.ProtoTCP, "192.0.2.1:5000", o)
	f := mustConnect(t, table, "192.0.2.1:5000", "198.51.100.7:80", a)
	if _, err := table.Connect(wire.ProtoTCP, f.Local(), f.Remote(), b, o); !errors.Is(err, ErrNotAvailable) {
		t.Errorf("a second one with the same ends: %v", err)
	}
	g := mustConnect(t, table, "192.0.2.1:5000", "198.51.100.7:81", b)
	table.Close(f)
	h := mustConnect(t, table, "192.0.2.1:5000", "198.51.100.7:80", b)
	for _, f := range []*Flow{g, h} {
		table.Close(f)
	}
	table.Release(a)
	table.Release(b)
	wantEmpty(t, table)
}

func TestConnectFromAPortWithoutBinding(t *testing.T) {
	table := NewTable(Config{})
	f := mustConnect(t, table, "192.0.2.1:5000", "198.51.100.7:80", nil)
	if f.Local() != addrPort("192.0.2.1:5000") {
		t.Errorf("connected from %v", f.Local())
	}
	_, err := table.Connect(wire.ProtoTCP, addrPort("192.0.2.1:5000"), addrPort("198.51.100.7:81"), nil, Options{})
	if !errors.Is(err, ErrInUse) {
		t.Errorf("the port is taken: %v", err)
	}
	table.Close(f)
	wantEmpty(t, table)
}

// TestTableAgainstSlowTable performs random operations and checks every binding and flow for conflicts.
func TestTableAgainstSlowTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table := NewTable(Config{First: 40000, Last: 40015})
	type held struct {
		*Binding
		claim Claim
	}
	var bindings []held
	var flows []*Flow
	addrs := []netip.Addr{addr("0.0.0.0"), addr("192.0.2.1"), addr("192.0.2.2"), addr("::"), addr("2001:db8::1")}
	for range 20000 {
		i := r.IntN(len(bindings) + 1)
		switch r.IntN(4) {
		case 0:
			n := number{[]wire.Protocol{wire.ProtoTCP, wire.ProtoUDP}[r.IntN(2)], 50000 + uint16(r.IntN(4))}
			o := Options{ReuseAddr: r.IntN(2) == 0, ReusePort: r.IntN(2) == 0, Owner: uint32(r.IntN(2))}
			claim := Claim{addrs[r.IntN(len(addrs))], o, false}
			conflict := slices.ContainsFunc(bindings, func(h held) bool {
				return h.number == n && Conflict(n.proto, claim, h.claim)
			})
			b, err := table.Bind(n.proto, netip.AddrPortFrom(claim.Addr, n.port), o)
			if (err != nil) != conflict {
				t.Fatalf("Bind %+v to %+v: %v", claim, n, err)
			}
			if err == nil {
				bindings = append(bindings, held{b, claim})
			}
		case 1:
			if i < len(bindings) && bindings[i].proto == wire.ProtoTCP && table.Listen(bindings[i].Binding) == nil {
				bindings[i].claim.Listening = true
			}
		case 2:
			if i < len(bindings) {
				table.Release(bindings[i].Binding)
				bindings = slices.Delete(bindings, i, i+1)
			}
		case 3:
			f, err := table.Connect(wire.ProtoTCP, addrPort("192.0.2.1:0"), addrPort("198.51.100.7:80"), nil, Options{})
			if (err != nil) != (len(flows) == 16) {
				t.Fatalf("%v with %d connections from 16 ports", err, len(flows))
			}
			if err == nil {
				flows = append(flows, f)
			}
			for len(flows) > 0 && r.IntN(20) < len(flows) {
				table.Close(flows[0])
				flows = flows[1:]
			}
		}
		if len(table.flows) != len(flows) {
			t.Fatalf("%d connections, want %d", len(table.flows), len(flows))
		}
	}
	for _, h := range bindings {
		table.Release(h.Binding)
	}
	for _, f := range flows {
		table.Close(f)
	}
	wantEmpty(t, table)
}
