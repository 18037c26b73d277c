package neigh

import (
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

func TestRequestForUsIsAnsweredAndRemembered(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.request(peerMAC, peer, us)
	s.wantReply("request", peer, peerMAC)
	s.wantState("who asks for us will hear from us", peer, Stale)
	s.wantLookup("no question is needed", peer, peerMAC, Found)
	s.wantIdle("no question is needed")
}

func TestRequestForOthersMakesNoEntry(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.request(peerMAC, peer, other)
	s.wantIdle("not for us")
	s.wantNoEntry("not for us", peer)
	if s.Counters().Unmatched != 1 {
		t.Error("the news was not counted")
	}
}

func TestRequestFromOutsideOfTheSubnet(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	far := netip.MustParseAddr("198.51.100.7")
	s.request(peerMAC, far, us)
	s.wantReply("it is answered", far, peerMAC)
	s.wantNoEntry("it is not remembered", far)
}

func TestProbeForOurAddressIsAnsweredAndNotRemembered(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	zero := netip.IPv4Unspecified()
	s.request(peerMAC, zero, us)
	s.wantReply("RFC 5227 2.4: the address is taken", zero, peerMAC)
	if n := len(s.Entries()); n != 0 {
		t.Errorf("%d entries after a probe", n)
	}
}

func TestReplyThatNobodyAskedFor(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.reply(peerMAC, peer)
	s.wantNoEntry("unasked", peer)
	s.wantIdle("unasked")
}

func TestGratuitousARPCorrectsAnEntry(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	s.advance(2 * time.Second)
	s.request(otherMAC, peer, peer)
	s.wantEvent("the address moved to another host", Changed, peer, otherMAC)
	s.wantLookup("the new MAC is used", peer, otherMAC, Found)
	s.wantState("and is yet to be confirmed", peer, Delay)
}

func TestTheFirstOfTwoAnswersWins(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	s.reply(otherMAC, peer)
	s.wantLookup("a second answer", peer, peerMAC, Found)
	s.wantIdle("a second answer")
	if s.Counters().Locked != 1 {
		t.Error("the second answer was not counted")
	}
}

func TestHearingTheSameAgainProvesNothing(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	s.advance(time.Minute)
	s.request(peerMAC, peer, us)
	s.wantReply("request", peer, peerMAC)
	s.wantState("a request shows one direction only", peer, Stale)
}

func TestRequestResolvesWhatWeAreAskingFor(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	s.request(peerMAC, peer, us)
	s.wantEvent("both ask at once", Resolved, peer, peerMAC)
	s.wantReply("both ask at once", peer, peerMAC)
	s.wantState("both ask at once", peer, Stale)
	s.wantIdle("our own question is not needed any more")
}

func TestDamagedAndForeignPacketsAreCounted(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.request(wire.MAC{}, peer, us)
	s.request(wire.Broadcast, peer, us)
	s.request(wire.MAC{1, 0, 0x5e, 1, 2, 3}, peer, us)
	s.request(peerMAC, netip.MustParseAddr("224.0.0.1"), us)
	s.request(peerMAC, netip.MustParseAddr("127.0.0.1"), us)
	s.request(peerMAC, netip.MustParseAddr("255.255.255.255"), us)
	s.request(usMAC, us, us)
	s.wantIdle("damaged and foreign packets")
	if c := s.ARPCounters(); c.BadSender != 6 || c.Own != 1 || c.Requests != 7 {
		t.Errorf("counters %+v", c)
	}
}

func TestMoreRequestsThanAreAnsweredAtOnce(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	for i := range 100 {
		s.request(wire.MAC{2, byte(i)}, addrAt(i+2), us)
	}
	for i := range 64 {
		s.wantReply("in order", addrAt(i+2), wire.MAC{2, byte(i)})
	}
	s.wantIdle("the rest is lost")
	if c := s.ARPCounters(); c.Answered != 64 || c.Unsaid != 36 {
		t.Errorf("counters %+v", c)
	}
}

func TestQuestionsAreAskedFromTheSubnetOfTheTarget(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	second := netip.MustParsePrefix("198.51.100.1/24")
	s.Add(s.now, second)
	s.wantEvent("second address", Ready, second.Addr(), usMAC)
	s.wantRequest("second address", second.Addr(), second.Addr(), wire.Broadcast)
	target := netip.MustParseAddr("198.51.100.9")
	s.wantLookup("use", target, wire.MAC{}, Pending)
	s.wantRequest("its own subnet", second.Addr(), target, wire.Broadcast)
	outside := netip.MustParseAddr("203.0.113.9")
	s.wantLookup("use", outside, wire.MAC{}, Pending)
	s.wantRequest("no subnet: any address", us, outside, wire.Broadcast)
}

func TestWithoutAnAddressNothingIsAsked(t *testing.T) {
	s := newScript(t, ARPConfig{})
	s.wantLookup("use", peer, wire.MAC{}, Pending)
	for range 3 {
		s.wantIdle("no address to ask from")
		s.advance(time.Second + time.Millisecond)
	}
	s.wantEvent("it fails as if unanswered", Failed, peer, wire.MAC{})
	if s.ARPCounters().NoSource != 3 {
		t.Error("what was not asked was not counted")
	}
}

func TestProxy(t *testing.T) {
	s := newScript(t, ARPConfig{Any: true})
	s.Receive(s.now, wire.ARP{Op: wire.ARPRequest, SenderMAC: peerMAC, SenderIP: peer, TargetIP: other})
	s.wantPacket("any address", wire.ARP{Op: wire.ARPReply, SenderMAC: usMAC, SenderIP: other, TargetMAC: peerMAC, TargetIP: peer}, peerMAC)
	s.request(peerMAC, netip.IPv4Unspecified(), peer)
	s.wantIdle("a probe: the address is the peer's own")
	s.request(peerMAC, peer, peer)
	s.wantIdle("an announcement")
}

func TestMulticastMAC(t *testing.T) {
	for group, want := range map[string]wire.MAC{
		"224.0.0.1":       {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01},
		"239.255.255.250": {0x01, 0x00, 0x5e, 0x7f, 0xff, 0xfa},
	} {
		if got := MulticastMAC(netip.MustParseAddr(group)); got != want {
			t.Errorf("%s is at %v, want %v", group, got, want)
		}
	}
}
