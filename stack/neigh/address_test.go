package neigh

import (
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

var zero = netip.IPv4Unspecified()

func probingScript(t *testing.T) *script {
	s := newScript(t, ARPConfig{Detect: true})
	s.Add(s.now, subnet)
	return s
}

func TestProbeBeforeUse(t *testing.T) {
	s := probingScript(t)
	s.request(peerMAC, peer, us)
	s.wantIdle("the address is not ours yet")
	s.advance(probeWait)
	for range probeCount {
		s.wantRequest("probe from nowhere", zero, us, wire.Broadcast)
		s.wantIdle("one at a time")
		s.advance(probeMax)
	}
	s.wantEvent("nobody objects", Ready, us, usMAC)
	s.wantRequest("announcement", us, us, wire.Broadcast)
	s.request(peerMAC, peer, us)
	s.wantReply("the address is ours", peer, peerMAC)
	s.advance(announceInterval)
	s.wantRequest("second announcement", us, us, wire.Broadcast)
	s.wantIdle("settled")
	s.advance(time.Hour)
	s.wantEvent("who asked is forgotten", Gone, peer, peerMAC)
	s.wantIdle("settled")
}

func TestProbesKeepTheirDistance(t *testing.T) {
	s := probingScript(t)
	s.advance(probeWait)
	s.wantRequest("probe", zero, us, wire.Broadcast)
	s.advance(probeMin - time.Nanosecond)
	s.wantIdle("RFC 5227: PROBE_MIN is one second")
}

func TestConflictWhileProbing(t *testing.T) {
	conflicts := map[string]wire.ARP{
		"somebody uses it": {Op: wire.ARPReply, SenderMAC: otherMAC, SenderIP: us, TargetIP: peer},
		"somebody says so": {Op: wire.ARPRequest, SenderMAC: otherMAC, SenderIP: us, TargetIP: us},
		"somebody probes":  {Op: wire.ARPRequest, SenderMAC: otherMAC, SenderIP: zero, TargetIP: us},
	}
	for sentence, p := range conflicts {
		s := probingScript(t)
		s.advance(probeWait)
		s.wantRequest("probe", zero, us, wire.Broadcast)
		s.Receive(s.now, p)
		s.wantEvent(sentence, Conflict, us, otherMAC)
		s.advance(time.Minute)
		s.wantIdle("the address is given up")
		s.request(peerMAC, peer, us)
		s.wantIdle("the address is given up")
	}
}

func TestOurOwnProbeComingBackIsNoConflict(t *testing.T) {
	s := probingScript(t)
	s.advance(probeWait)
	s.wantRequest("probe", zero, us, wire.Broadcast)
	s.request(usMAC, zero, us)
	s.wantIdle("our own probe")
}

func TestDefendOnceThenReport(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.request(otherMAC, us, peer)
	s.wantRequest("it is ours", us, us, wire.Broadcast)
	s.wantIdle("said once")
	s.advance(time.Second)
	s.request(otherMAC, us, peer)
	s.wantEvent("the other one insists", Conflict, us, otherMAC)
	for range 5 {
		s.advance(time.Second)
		s.request(otherMAC, us, peer)
		s.wantIdle("reported once, and no quarrel")
	}
	s.advance(defendInterval)
	s.request(otherMAC, us, peer)
	s.wantRequest("a new conflict after a pause", us, us, wire.Broadcast)
	s.wantNoEntry("nothing is learnt about our own address", us)
	if c := s.ARPCounters(); c.Conflicts != 8 || c.Defended != 2 {
		t.Errorf("counters %+v", c)
	}
}

func TestDeletedAddressIsNotAnswered(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.Add(s.now, subnet)
	s.wantIdle("added twice")
	s.Delete(us)
	s.request(peerMAC, peer, us)
	s.wantIdle("deleted")
}
