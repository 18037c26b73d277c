package flood

import (
	"net/netip"
	"time"

	"loam/internal/siphash"
	"loam/stack/icmp"
)

// Limits on replies to strangers: hosts that have not completed a handshake recently, so that their addresses may be forged.
// Packets from strangers are answered at a bounded rate, since an answer costs several times as much as dropping the packet.
// Known peers are exempt from the limits on cookies and on service during overload, so a flood affects them little. The limit on
// resets applies to all remote hosts.

// Strangers is a shard's rate limits and its table of known peers. Only the shard uses it.
type Strangers struct {
	// Seed is random: a remote host cannot choose addresses that replace known peers.
	Seed  uint64
	Peers *Peers

	resets  icmp.Bucket
	cookies icmp.Bucket
	pressed icmp.Bucket           // limit that applies only while the stack is overloaded
	known   [knownPeers]knownPeer // by hash of the address; a new peer replaces an old one
}

// knownPeer is a host that has completed a handshake, and the time when it did.
type knownPeer struct {
	addr  netip.Addr
	at    time.Duration
	place uint64 // place of the host in Peers; 0: none
}

const (
	knownPeers = 512
	knownFor   = 10 * time.Minute
)

// Rate limits of a shard, as token buckets: on average one reply in each interval ("price"), with bursts of at most
// "burst" replies.
const (
	resetPrice  = time.Millisecond
	resetBurst  = 2048
	cookiePrice = 100 * time.Microsecond
	cookieBurst = 8192

	pressedPrice = time.Millisecond
	PressedBurst = 64 // burst while the stack is overloaded
)

// place returns the entry of the known peers where an address belongs.
func (s *Strangers) place(addr netip.Addr) *knownPeer {
	b := addr.As16()
	return &s.known[siphash.Sum(siphash.Key{K0: s.Seed}, b[:])%knownPeers]
}

// Know records that a host has completed a handshake, which proves its address.
func (s *Strangers) Know(now time.Duration, addr netip.Addr) {
	p := s.place(addr)
	if p.addr != addr {
		*p = knownPeer{addr: addr}
	}
	p.at = now
	if addr.Is4() && !s.Peers.holds(p.place) {
		p.place = s.Peers.add(addr)
	}
}

// knows reports whether a host has completed a handshake within knownFor.
func (s *Strangers) knows(now time.Duration, addr netip.Addr) bool {
	p := s.place(addr)
	return p.addr == addr && now-p.at < knownFor
}

// AllowReset reports whether a segment without a connection may be answered with a reset.
func (s *Strangers) AllowReset(now time.Duration) bool {
	return s.resets.Take(now, resetPrice, resetBurst)
}

// AllowCookie reports whether a SYN may be answered with a cookie. pressed says that the stack is overloaded.
func (s *Strangers) AllowCookie(now time.Duration, peer netip.Addr, pressed bool) bool {
	return s.knows(now, peer) || s.cookies.Take(now, cookiePrice, cookieBurst) && s.AllowPressed(now, peer, pressed)
}

// AllowPressed reports whether a peer may be served. Only strangers are limited, and only while the stack is overloaded.
func (s *Strangers) AllowPressed(now time.Duration, peer netip.Addr, pressed bool) bool {
	return !pressed || s.knows(now, peer) || s.pressed.Take(now, pressedPrice, PressedBurst)
}
