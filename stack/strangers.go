package stack

import (
	"net/netip"
	"time"

	"loam/internal/siphash"
	"loam/link"
	"loam/stack/icmp"
	"loam/stack/tcp"
)

// Limits on replies to strangers: hosts that have not completed a handshake recently, so
// that their addresses may be forged. Packets from strangers are answered at a bounded
// rate, since an answer costs several times as much as dropping the packet. Known peers
// are exempt from the limits on cookies and on service during overload, so a flood
// affects them little. The limit on resets applies to all remote hosts.

// strangers is a shard's rate limits and its table of known peers.
type strangers struct {
	resets  icmp.Bucket
	cookies icmp.Bucket
	pressed icmp.Bucket           // limited only while the stack is overloaded
	known   [knownPeers]knownPeer // by hash of the address; a new peer replaces an old one
}

// knownPeer is a host that has completed a handshake, and the time when it did.
type knownPeer struct {
	addr  netip.Addr
	at    tcp.Time
	place uint64 // in Stack.peers, or 0
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
)

// knownPlace returns the entry of the known peers where an address belongs.
func (sh *shard) knownPlace(addr netip.Addr) *knownPeer {
	b := addr.As16()
	return &sh.strangers.known[siphash.Sum(siphash.Key{K0: sh.stack.seed}, b[:])%knownPeers]
}

// know records that a host has completed a handshake, which proves its address.
func (sh *shard) know(addr netip.Addr) {
	p := sh.knownPlace(addr)
	if p.addr != addr {
		*p = knownPeer{addr: addr}
	}
	p.at = sh.now
	if addr.Is4() && !sh.stack.peers.Holds(p.place) {
		p.place = sh.stack.peers.Add(addr)
	}
}

// knows reports whether a host has completed a handshake within knownFor.
func (sh *shard) knows(addr netip.Addr) bool {
	p := sh.knownPlace(addr)
	return p.addr == addr && sh.now-p.at < knownFor
}

// allowReset reports whether a segment without a connection may be answered with a reset.
// Peers on this host are not limited.
func (sh *shard) allowReset(peer netip.Addr) bool {
	if _, ours := sh.tables.local[peer]; ours || peer.IsLoopback() {
		return true
	}
	return sh.strangers.resets.Take(sh.now, resetPrice, resetBurst)
}

// allowCookie reports whether a SYN may be answered with a cookie.
func (sh *shard) allowCookie(peer netip.Addr) bool {
	return sh.knows(peer) || sh.strangers.cookies.Take(sh.now, cookiePrice, cookieBurst) && sh.allowPressed(peer)
}

// The stack counts as overloaded after a device has delivered fullBatches full batches in
// a row, and for pressedFor after that. Hosts that wait for replies send shorter bursts.
const (
	fullBatches = 64
	pressedFor  = time.Second
)

// Rate limit on replies to strangers while the stack is overloaded, per shard: on average
// one per pressedPrice.
const (
	pressedPrice = time.Millisecond
	pressedBurst = 64
)

// notePressure counts full batches and records when the stack is overloaded. It runs on
// the receiver.
func (r *receiver) notePressure(frames int) {
	if frames < link.BatchSize || r.ifc.loopback {
		r.full = 0
		return
	}
	if r.full++; r.full >= fullBatches {
		r.full = 0
		r.ifc.stack.pressedUntil.Store(int64(r.ifc.stack.now() + pressedFor))
	}
}

// allowPressed reports whether a peer may be served. Only strangers are limited, and only
// while the stack is overloaded.
func (sh *shard) allowPressed(peer netip.Addr) bool {
	if int64(sh.now) >= sh.stack.pressedUntil.Load() || sh.knows(peer) {
		return true
	}
	return sh.strangers.pressed.Take(sh.now, pressedPrice, pressedBurst)
}

// allowFragment reports whether a fragment is kept. While the stack is overloaded,
// strangers may use little of the second half of the reassembly memory.
func (sh *shard) allowFragment(peer netip.Addr) bool {
	return sh.reassembly.Cost() < sh.stack.config.MaxReassembly/2 || sh.allowPressed(peer)
}
