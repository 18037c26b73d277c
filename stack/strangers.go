package stack

import (
	"net/netip"
	"time"

	"loam/link"
	"loam/stack/tcp"
	"loam/wire"
)

// Limits on replies to strangers, which are hosts that have not completed a handshake with this host: see flood.Strangers.

// know records that a host has completed a handshake, which proves its address.
func (sh *shard) know(addr netip.Addr) { sh.strangers.Know(sh.now, addr) }

// allowReset reports whether a segment without a connection may be answered with a reset. Peers on this host are not limited.
func (sh *shard) allowReset(peer netip.Addr) bool {
	if _, ours := sh.tables.local[peer]; ours || peer.IsLoopback() {
		return true
	}
	return sh.strangers.AllowReset(sh.now)
}

// allowCookie reports whether a SYN may be answered with a cookie.
func (sh *shard) allowCookie(peer netip.Addr) bool {
	return sh.strangers.AllowCookie(sh.now, peer, sh.pressed())
}

// allowPressed reports whether a peer may be served. Only strangers are limited, and only while the stack is overloaded.
func (sh *shard) allowPressed(peer netip.Addr) bool {
	return sh.strangers.AllowPressed(sh.now, peer, sh.pressed())
}

// allowFragment reports whether a fragment is kept. While the stack is overloaded,
// strangers may use little of the second half of the reassembly memory.
func (sh *shard) allowFragment(peer netip.Addr) bool {
	return sh.reassembly.Cost() < sh.stack.config.MaxReassembly/2 || sh.allowPressed(peer)
}

// pressed reports whether the stack is overloaded.
func (sh *shard) pressed() bool { return int64(sh.now) < sh.stack.pressedUntil.Load() }

// The stack counts as overloaded after a device has delivered fullBatches full batches in
// a row, and for pressedFor after that. Hosts that wait for replies send shorter bursts.
const (
	fullBatches = 64
	pressedFor  = time.Second
)

// notePressure counts full batches of a receiver, and records when the stack is overloaded.
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

// countKinds counts frames that may belong to a flood, on a device that can thin them out.
func (r *receiver) countKinds(frames []*link.Frame) {
	i := r.ifc
	thinned := i.thinning.Active()
	if len(frames) == 1 && !thinned { // a lone frame is no flood
		return
	}
	counted := r.census.Count(frames, i.stack.now, func(kinds link.Kinds, port uint16) {
		i.post(func(l *ifaceLoop) { l.thin(kinds, port) })
	})
	if thinned && counted > 0 {
		i.thinning.Delivered(counted)
	}
}

// thin makes the device thin out a flood.
func (l *ifaceLoop) thin(kinds link.Kinds, port uint16) {
	if l.thinning.Begin(l.now, kinds, port) {
		l.stack.tally.count(EthFloods)
	}
}

// countStray counts a segment that matches no connection (a stray), unless it is a SYN without ACK. A flood of strays
// starts thinStrays.
func (sh *shard) countStray(ifc *Interface, seg *tcp.Segment) {
	if ifc.listing != nil && seg.Flags&(wire.SYN|wire.ACK) != wire.SYN && sh.strays.Count(sh.now, len(sh.stack.shards), ifc.thinning) {
		ifc.post((*ifaceLoop).thinStrays)
	}
}

// thinStrays makes the device drop most segments that belong to no connection. The device must first know all
// connections: each shard adds its own to the device's set of flows (join), and the last shard makes the interface loop
// call thinStrays again.
func (l *ifaceLoop) thinStrays() {
	flows, complete, err := l.listing.Begin(len(l.stack.shards))
	switch {
	case err != nil:
		l.stack.config.Log.Warn("floods of TCP segments cannot be filtered", "interface", l.name, "error", err)
	case complete:
		l.thin(link.KindStray, 0)
	case flows != nil:
		for _, sh := range l.stack.shards {
			sh.post(func(sh *shard) { sh.join(l.Interface, flows) })
		}
	}
}

// join adds the connections of the shard to the set of flows that an interface's device delivers. Interface.loop posts
// it, so it runs before unlink.
func (sh *shard) join(ifc *Interface, flows *link.Flows) {
	sh.strays.Join(flows, func(add func(local, remote netip.AddrPort)) {
		for _, c := range sh.conns {
			add(c.local, c.remote)
		}
		for _, w := range sh.timeWaits {
			add(w.machine.ID().Local, w.machine.ID().Remote)
		}
	})
	if ifc.listing.Joined() {
		ifc.post((*ifaceLoop).thinStrays)
	}
}
