package stack_test

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/stack/neigh"
	"loam/wire"
)

// Tests of a stack whose goroutines handle events late.

// slowLog takes two seconds per line, so a goroutine that logs is late for its next
// event.
type slowLog struct{ slog.Handler }

func (l slowLog) Handle(context.Context, slog.Record) error {
	time.Sleep(2 * time.Second)
	return nil
}

// A message of another host that claims the same address (an objection) counts if it arrives in time, however late it
// is processed.
func TestObjectionInTime(t *testing.T) {
	for range 10 { // repeated because two events are due at once, in random order
		synctest.Test(t, func(t *testing.T) {
			s := stack.New(stack.Config{Shards: 1, Log: slog.New(slowLog{slog.NewTextHandler(io.Discard, nil)})})
			w := attachPeer(t, s, pipe.Config{}, stack.InterfaceConfig{MAC: macA})
			must(t, s.AddAddress("eth0", netip.PrefixFrom(addrA, 24)))
			w.advance(100 * time.Millisecond)
			for range 2 { // the second objection is logged, and slowLog makes the stack late
				w.sendARP(wire.ARP{Op: wire.ARPReply, SenderIP: addrA, TargetMAC: macA, TargetIP: addrA})
			}
			w.sendND(neigh.Message{
				Neighbor: wire.Neighbor{Advertisement: true, Target: wire.LinkLocal6(macA), LinkAddr: macB, Override: true},
				Src:      wire.LinkLocal6(macA), Dst: netip.IPv6LinkLocalAllNodes(), MAC: wire.MulticastMAC6(netip.IPv6LinkLocalAllNodes()),
			})
			w.advance(10 * time.Second)
			if got := s.Addresses(); slices.ContainsFunc(got, func(a stack.Address) bool { return a.Prefix.Addr().IsLinkLocalUnicast() }) {
				t.Errorf("the addresses are %v", got)
			}
			w.forget()
		})
	}
}

// Another host may object to a new address (claim it for itself) before the address is in the stack's tables, because
// that change takes long with many addresses. The objection still removes the address.
func TestObjectionAtOnce(t *testing.T) {
	devA, devB := pipe.New(pipe.Config{})
	owner, s := newHost(t, stack.Config{}, devB, addrB), stack.New(stack.Config{})
	t.Cleanup(func() { owner.Close(); s.Close() })
	if _, err := s.Attach(devA, stack.InterfaceConfig{Name: "eth0"}); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		to := netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)})
		must(t, s.AddRoute(stack.Route{Dst: netip.PrefixFrom(to, 32), Interface: "eth0"}))
	}
	for range 20 {
		must(t, s.AddAddress("eth0", netip.PrefixFrom(addrB6, 64)))
		for end := time.Now().Add(5 * time.Second); slices.ContainsFunc(s.Addresses(), func(a stack.Address) bool { return a.Prefix.Addr() == addrB6 }); {
			if time.Now().After(end) {
				c := s.Counters()
				t.Fatalf("the address is still there after %d objections", c.Get(stack.NDConflict))
			}
			time.Sleep(time.Millisecond)
		}
	}
}
