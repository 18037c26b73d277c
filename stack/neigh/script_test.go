package neigh

import (
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

// Addresses of the tests' link.
var (
	subnet = netip.MustParsePrefix("192.0.2.1/24")
	us     = subnet.Addr()
	peer   = netip.MustParseAddr("192.0.2.2")
	other  = netip.MustParseAddr("192.0.2.3")

	usMAC    = wire.MAC{2, 0, 0, 0, 0, 1}
	peerMAC  = wire.MAC{2, 0, 0, 0, 0, 2}
	otherMAC = wire.MAC{2, 0, 0, 0, 0, 3}
)

// script plays all other hosts of the link. Time passes only during calls of the method
// advance.
type script struct {
	*ARP
	t   *testing.T
	now time.Duration
}

func newScript(t *testing.T, cfg ARPConfig) *script {
	cfg.MAC = usMAC
	return &script{ARP: NewARP(cfg), t: t, now: time.Hour}
}

// settledScript returns a script of a host that has probed for its address, found no conflict, and announced it.
func settledScript(t *testing.T, cfg ARPConfig) *script {
	s := newScript(t, cfg)
	s.Add(s.now, subnet)
	s.wantEvent("the address is ready", Ready, us, usMAC)
	for range announceCount {
		s.wantRequest("announcement", us, us, wire.Broadcast)
		s.advance(announceInterval)
	}
	s.wantIdle("announced twice")
	return s
}

// advance lets the time d pass. It stops at each deadline on the way until there is a
// packet or an event.
func (s *script) advance(d time.Duration) {
	end := s.now + d
	for s.Deadline() <= end && s.due.Len() == 0 && len(s.events) == 0 && !s.addressPending() {
		s.now = max(s.now, s.Deadline())
		s.ARP.Advance(s.now)
	}
	s.now = end
	s.ARP.Advance(s.now)
}

func (s *script) addressPending() bool {
	for _, own := range s.own {
		if own.pending {
			return true
		}
	}
	return false
}

func (s *script) request(mac wire.MAC, from, target netip.Addr) {
	s.Receive(s.now, wire.ARP{Op: wire.ARPRequest, SenderMAC: mac, SenderIP: from, TargetIP: target})
}

func (s *script) reply(mac wire.MAC, from netip.Addr) {
	s.Receive(s.now, wire.ARP{Op: wire.ARPReply, SenderMAC: mac, SenderIP: from, TargetMAC: usMAC, TargetIP: us})
}

func (s *script) wantPacket(sentence string, want wire.ARP, dst wire.MAC) {
	s.t.Helper()
	var p wire.ARP
	var to wire.MAC
	if !s.Poll(s.now, &p, &to) {
		s.t.Fatalf("%s: nothing is sent, want %+v", sentence, want)
	}
	if p != want || to != dst {
		s.t.Fatalf("%s: %+v to %v is sent, want %+v to %v", sentence, p, to, want, dst)
	}
}

func (s *script) wantRequest(sentence string, from, target netip.Addr, dst wire.MAC) {
	s.t.Helper()
	s.wantPacket(sentence, wire.ARP{Op: wire.ARPRequest, SenderMAC: usMAC, SenderIP: from, TargetIP: target}, dst)
}

func (s *script) wantReply(sentence string, to netip.Addr, mac wire.MAC) {
	s.t.Helper()
	s.wantPacket(sentence, wire.ARP{Op: wire.ARPReply, SenderMAC: usMAC, SenderIP: us, TargetMAC: mac, TargetIP: to}, mac)
}

func (s *script) wantEvent(sentence string, kind EventKind, addr netip.Addr, mac wire.MAC) {
	s.t.Helper()
	e, ok := s.Event()
	if !ok || e != (Event{kind, addr, mac}) {
		s.t.Fatalf("%s: event %+v (%v), want %v", sentence, e, ok, Event{kind, addr, mac})
	}
}

func (s *script) wantIdle(sentence string) {
	s.t.Helper()
	var p wire.ARP
	var to wire.MAC
	if s.Poll(s.now, &p, &to) {
		s.t.Fatalf("%s: %+v is sent, want nothing", sentence, p)
	}
	if e, ok := s.Event(); ok {
		s.t.Fatalf("%s: event %+v, want none", sentence, e)
	}
}

func (s *script) wantLookup(sentence string, addr netip.Addr, mac wire.MAC, answer Answer) {
	s.t.Helper()
	if m, a := s.Lookup(s.now, addr); m != mac || a != answer {
		s.t.Fatalf("%s: Lookup says %v, %v, want %v, %v", sentence, m, a, mac, answer)
	}
}

func (s *script) wantState(sentence string, addr netip.Addr, want State) {
	s.t.Helper()
	for _, e := range s.Entries() {
		if e.Addr == addr {
			if e.State != want {
				s.t.Fatalf("%s: the entry is %v, want %v", sentence, e.State, want)
			}
			return
		}
	}
	s.t.Fatalf("%s: there is no entry", sentence)
}

func (s *script) wantNoEntry(sentence string, addr netip.Addr) {
	s.t.Helper()
	for _, e := range s.Entries() {
		if e.Addr == addr {
			s.t.Fatalf("%s: there is an entry, %v", sentence, e.State)
		}
	}
}

// resolve makes peer Reachable.
func (s *script) resolve() {
	s.t.Helper()
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	s.wantRequest("first use", us, peer, wire.Broadcast)
	s.reply(peerMAC, peer)
	s.wantEvent("answer", Resolved, peer, peerMAC)
	s.wantState("answer", peer, Reachable)
}
