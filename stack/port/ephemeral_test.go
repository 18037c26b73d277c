package port

import (
	"errors"
	"net/netip"
	"testing"

	"loam/wire"
)

func TestEphemeralPortsOfOneDestination(t *testing.T) {
	table := NewTable(Config{})
	seen := map[uint16]bool{}
	for range 28232 { // the number of ephemeral ports
		f := mustConnect(t, table, "192.0.2.1:0", "198.51.100.7:80", nil)
		port := f.Local().Port()
		if port < 32768 || port > 60999 || seen[port] || f.Local().Addr() != addr("192.0.2.1") {
			t.Fatalf("connection %d is from %v", len(seen), f.Local())
		}
		seen[port] = true
	}
	local := addrPort("192.0.2.1:0")
	if _, err := table.Connect(wire.ProtoTCP, local, addrPort("198.51.100.7:80"), nil, Options{}); !errors.Is(err, ErrNotAvailable) {
		t.Errorf("one more: %v", err)
	}
	mustConnect(t, table, "192.0.2.1:0", "198.51.100.7:81", nil)
	mustConnect(t, table, "192.0.2.2:0", "198.51.100.7:80", nil)
}

func TestAPortThatWasGivenBackComesAgainLast(t *testing.T) {
	table := NewTable(Config{First: 40000, Last: 40099})
	var order []uint16
	for range 200 {
		f := mustConnect(t, table, "192.0.2.1:0", "198.51.100.7:80", nil)
		order = append(order, f.Local().Port())
		table.Close(f)
	}
	for i, port := range order[:100] {
		if order[i+100] != port {
			t.Fatalf("port %d comes again out of turn", port)
		}
		for _, later := range order[i+1 : i+100] {
			if later == port {
				t.Fatalf("port %d comes again before all others were used", port)
			}
		}
	}
}

// RFC 6056 section 2.2: the ports of one destination do not reveal the ports of another.
func TestEphemeralPortsDependOnTheDestinationAndTheSecret(t *testing.T) {
	first := func(seed byte, local, remote string) uint16 {
		table := NewTable(Config{Seed: [32]byte{seed}})
		return mustConnect(t, table, local, remote, nil).Local().Port()
	}
	base := first(1, "192.0.2.1:0", "198.51.100.7:80")
	for what, port := range map[string]uint16{
		"secret":         first(2, "192.0.2.1:0", "198.51.100.7:80"),
		"source":         first(1, "192.0.2.2:0", "198.51.100.7:80"),
		"destination":    first(1, "192.0.2.1:0", "198.51.100.8:80"),
		"remote port":    first(1, "192.0.2.1:0", "198.51.100.7:81"),
		"address family": first(1, "[2001:db8::1]:0", "[2001:db8::2]:80"),
	} {
		if port == base {
			t.Errorf("another %s makes no difference", what)
		}
	}
	if first(1, "192.0.2.1:0", "198.51.100.7:80") != base {
		t.Error("the same seed gives another port")
	}
}

func TestEphemeralPortsAvoidBoundOnes(t *testing.T) {
	table := NewTable(Config{First: 40000, Last: 40001})
	b := mustBind(t, table, wire.ProtoTCP, "192.0.2.9:40000", Options{ReuseAddr: true})
	f := mustConnect(t, table, "192.0.2.1:0", "198.51.100.7:80", nil)
	if f.Local().Port() != 40001 {
		t.Errorf("connected from %v", f.Local())
	}
	if _, err := table.Connect(wire.ProtoTCP, addrPort("192.0.2.1:0"), addrPort("198.51.100.7:80"), nil, Options{}); err == nil {
		t.Error("connected from a port that a program has bound")
	}
	wantBind(t, "a port with an outgoing connection", table, "192.0.2.1:40001", ErrInUse)
	table.Release(b)
	table.Close(f)
	wantEmpty(t, table)
}

func TestBindToAnyPort(t *testing.T) {
	table := NewTable(Config{First: 40000, Last: 40009})
	seen := map[uint16]bool{}
	for range 10 {
		b := mustBind(t, table, wire.ProtoUDP, "0.0.0.0:0", Options{ReuseAddr: true, ReusePort: true})
		if port := b.Local().Port(); port < 40000 || port > 40009 || seen[port] {
			t.Fatalf("bound to %v", b.Local())
		}
		seen[b.Local().Port()] = true
	}
	if _, err := table.Bind(wire.ProtoUDP, addrPort("0.0.0.0:0"), Options{ReuseAddr: true}); !errors.Is(err, ErrInUse) {
		t.Errorf("nobody shares a port unasked: %v", err)
	}
	mustBind(t, table, wire.ProtoTCP, "0.0.0.0:0", Options{})
}

func BenchmarkConnect(b *testing.B) {
	table := NewTable(Config{})
	local := addrPort("192.0.2.1:0")
	for i := range 100_000 { // many destinations, so that few local ports are in use
		remote := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 80)
		if _, err := table.Connect(wire.ProtoTCP, local, remote, nil, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	remote := addrPort("198.51.100.7:80")
	for b.Loop() {
		f, err := table.Connect(wire.ProtoTCP, local, remote, nil, Options{})
		if err != nil {
			b.Fatal(err)
		}
		table.Close(f)
	}
}

// If every port is used for a peer, Connect fails without a search; after a Close, it finds the free port.
func TestExhausted(t *testing.T) {
	table := NewTable(Config{})
	local, remote := addrPort("192.0.2.1:0"), addrPort("198.51.100.7:80")
	var last *Flow
	for range table.count {
		f, err := table.Connect(wire.ProtoTCP, local, remote, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		last = f
	}
	before := table.offsets
	if _, err := table.Connect(wire.ProtoTCP, local, remote, nil, Options{}); err != ErrNotAvailable {
		t.Errorf("one more: %v", err)
	}
	if table.offsets != before {
		t.Error("the table was searched")
	}
	if _, err := table.Connect(wire.ProtoTCP, local, addrPort("198.51.100.8:80"), nil, Options{}); err != nil {
		t.Errorf("another peer: %v", err)
	}
	port := last.Local().Port()
	table.Close(last)
	f, err := table.Connect(wire.ProtoTCP, local, remote, nil, Options{})
	if err != nil || f.Local().Port() != port {
		t.Errorf("after a close: %v, want port %d", err, port)
	}
}

// BenchmarkExhausted measures an attempt to connect when no port is left.
func BenchmarkExhausted(b *testing.B) {
	table := NewTable(Config{})
	local, remote := addrPort("192.0.2.1:0"), addrPort("198.51.100.7:80")
	for range table.count {
		if _, err := table.Connect(wire.ProtoTCP, local, remote, nil, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		table.Connect(wire.ProtoTCP, local, remote, nil, Options{})
	}
}

func BenchmarkBind(b *testing.B) {
	table := NewTable(Config{})
	for i := range 10_000 {
		local := netip.AddrPortFrom(addr("192.0.2.1"), uint16(10000+i))
		if _, err := table.Bind(wire.ProtoTCP, local, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	local := addrPort("192.0.2.1:0")
	for b.Loop() {
		p, err := table.Bind(wire.ProtoTCP, local, Options{})
		if err != nil {
			b.Fatal(err)
		}
		table.Release(p)
	}
}
