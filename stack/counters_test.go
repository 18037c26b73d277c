package stack

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"loam/link"
	"loam/wire"
)

// Every counter has a unique name of the form "protocol.thing".
func TestCounterNames(t *testing.T) {
	seen := map[string]Counter{}
	for c := range numCounters {
		name := c.String()
		protocol, thing, ok := strings.Cut(name, ".")
		if !ok || protocol == "" || thing == "" {
			t.Errorf("counter %d is called %q", c, name)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("counters %d and %d are both called %q", other, c, name)
		}
		seen[name] = c
	}
	if EthReceived.String() != "eth.received" || ForwardOverflow.String() != "forward.overflow" {
		t.Error("the names are not in the order of the counters")
	}
	if !strings.HasPrefix(numCounters.String(), "counter(") {
		t.Errorf("what is no counter is called %q", numCounters)
	}
	var c Counters
	c[UDPSent], c[TCPSent] = 2, 3
	if got := c.String(); got != "udp.sent 2\ntcp.sent 3\n" {
		t.Errorf("the snapshot reads %q", got)
	}
	n := 0
	for range c.All() {
		n++
	}
	if n != int(numCounters) {
		t.Errorf("All yields %d of %d counters", n, numCounters)
	}
}

// A shard accepts a bounded number of packets from other shards, and frees the
// unprocessed ones when it ends.
func TestInjectIsBounded(t *testing.T) {
	link.Track(true)
	from, to := &shard{}, &shard{inbox: newInbox()}
	for range maxInjected + 10 {
		to.inject(from, &packet{frame: link.NewFrame(20)})
	}
	if n := from.tally[IPOverflow].Load(); n != 10 {
		t.Errorf("%d packets were dropped, want 10", n)
	}
	to.inbox.end()
	to.inject(from, &packet{frame: link.NewFrame(20)})
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are left behind", n)
	}
}

// heldUp returns a stack and its loopback interface. The goroutine of the interface is
// blocked until the function release is called.
func heldUp() (s *Stack, lo *Interface, release func()) {
	s = New(Config{Shards: 1})
	lo = s.Interfaces()[0]
	held := make(chan struct{})
	lo.post(func(*ifaceLoop) { <-held })
	synctest.Wait()
	return s, lo, func() { close(held) }
}

// ARP messages that the interface loop cannot keep up with are dropped and counted.
func TestARPOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lo, release := heldUp()
		defer s.Close()
		lo4 := loopbackPrefix.Addr()
		r := lo.receivers[0]
		for range cap(lo.arpIn) + 10 {
			f := link.NewFrame(28)
			(&wire.ARP{Op: wire.ARPRequest, SenderIP: lo4, TargetIP: lo4}).Put(f.Bytes())
			r.receiveARP(f)
		}
		if n := r.tally[ARPOverflow].Load(); n != 10 {
			t.Errorf("%d packets were dropped, want 10", n)
		}
		release()
	})
}

// Group messages that the interface loop cannot keep up with are dropped and counted.
func TestGroupOverflow(t *testing.T) {
	link.Track(true)
	synctest.Test(t, func(t *testing.T) {
		s, lo, release := heldUp()
		defer s.Close()
		lo4 := loopbackPrefix.Addr()
		lo.groupless = false
		f := link.NewFrame(8)
		defer f.Free()
		member := wire.GroupMessage{Kind: wire.GroupMember, Version: 2, Group: netip.AddrFrom4([4]byte{239, 1, 2, 3})}
		member.Put(f.Bytes())
		wire.PutIGMPChecksum(f.Bytes())
		putIPv4(f, &wire.IPv4{TTL: 1, Protocol: wire.ProtoIGMP, Src: lo4, Dst: member.Group})
		sh := s.shards[0]
		for range cap(lo.groupsIn) + 10 {
			sh.inputIGMP(&packet{frame: f, ifc: lo, src: lo4, dst: member.Group, headerLen: wire.IPv4MinLen})
		}
		if n := sh.tally[GroupOverflow].Load(); n != 10 {
			t.Errorf("%d messages were dropped, want 10", n)
		}
		release()
	})
}
