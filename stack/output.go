package stack

import (
	"net/netip"

	"loam/link"
	"loam/wire"
)

// How packets leave. Each shard has a txLink for each interface: it collects
// the frames of a turn and hands them to the device at once, through a txPort
// (txport.go) that several shards may share.

// txLink is a shard's way out through one interface. It belongs to the shard.
type txLink struct {
	shard     *shard
	ifc       *Interface
	port      *txPort
	frames    []*link.Frame                // of this turn; beyond a batch only what had waited for a neighbour
	blocked   bool                         // the device was full; resume will be called
	stalled   []*TCPConn                   // have something to send once there is room
	waiting   map[netip.Addr][]*link.Frame // packets whose next hop is being resolved
	held      int                          // how many these are
	datagrams []outgoing                   // of programs, in order, until there is room; bounded by their send buffers
	goOn      func(*shard)                 // resume, made once
}

// Bounds on packets that wait for a neighbour, for each interface and shard.
const (
	maxWaiting    = 128 // for one neighbour; the longest datagram is 119 fragments at an MTU of 576
	maxWaitingFor = 256 // neighbours
	maxWaitingAll = 2048
)

// link finds the way out through ifc, and makes it when it is used first.
func (sh *shard) link(ifc *Interface) *txLink {
	if l := sh.knownLink(ifc); l != nil {
		return l
	}
	l := &txLink{shard: sh, ifc: ifc, port: ifc.ports[sh.index%len(ifc.ports)], waiting: make(map[netip.Addr][]*link.Frame)}
	l.goOn = l.resume
	sh.links = append(sh.links, l)
	return l
}

// knownLink is link for those that have nothing to do if it has not been used.
func (sh *shard) knownLink(ifc *Interface) *txLink {
	for _, l := range sh.links {
		if l.ifc == ifc {
			return l
		}
	}
	return nil
}

// unlink forgets an interface that has been detached. From now on the shard
// looks routes up in tables that do not have it.
func (sh *shard) unlink(ifc *Interface) {
	sh.tables = sh.stack.tables.Load()
	for i, l := range sh.links {
		if l.ifc == ifc {
			l.drop()
			sh.links = append(sh.links[:i], sh.links[i+1:]...)
			return
		}
	}
}

// room reports whether a packet may be sent now. Who does not look first adds
// to a queue without bound.
func (l *txLink) room() bool {
	if len(l.frames) < link.BatchSize {
		return true
	}
	if !l.blocked {
		l.flush()
	}
	return len(l.frames) < link.BatchSize
}

// flush hands the frames to the device.
func (l *txLink) flush() {
	if len(l.frames) == 0 || l.blocked {
		return
	}
	n, err := l.port.send(l, l.frames)
	if err != nil { // the device has gone
		link.FreeAll(l.frames[n:])
		n = len(l.frames)
	}
	rest := copy(l.frames, l.frames[n:])
	clear(l.frames[rest:])
	l.frames = l.frames[:rest]
	l.blocked = rest > 0
}

// resume goes on after the device was full.
func (l *txLink) resume(sh *shard) {
	l.blocked = false
	l.flush()
	l.resumeDatagrams()
	l.unstall()
}

// unstall has the connections that wait for room look again.
func (l *txLink) unstall() {
	for i, c := range l.stalled {
		l.stalled[i] = nil
		c.stalled = false
		l.shard.mark(c)
	}
	l.stalled = l.stalled[:0]
}

// transmit sends an IP packet, whose header is at the front of f, to a next hop
// on the link. It owns f.
func (l *txLink) transmit(nextHop netip.Addr, f *link.Frame) {
	if l.ifc.medium != link.Ethernet {
		l.append(f)
		return
	}
	mac, ok := l.resolve(nextHop)
	if !ok && nextHop.Is6() {
		mac, ok = l.detour(nextHop, f)
	}
	if !ok || l.waiting[nextHop] != nil { // what waits will be sent in a moment, and goes first
		l.wait(nextHop, f)
		return
	}
	l.push(mac, f)
}

func (l *txLink) push(mac wire.MAC, f *link.Frame) {
	h := wire.Ethernet{Dst: mac, Src: l.ifc.mac, Type: typeOfIP(f.Bytes())}
	h.Put(f.Prepend(wire.EthernetLen))
	l.shard.tally.count(EthSent)
	l.append(f)
}

// append has a frame go with those of this turn.
func (l *txLink) append(f *link.Frame) {
	if s := l.shard.stack; s.linkConns.Load() != nil {
		s.tapOutgoing(&l.shard.tally, l.ifc, f, nil)
	}
	l.frames = append(l.frames, f)
}

// resolve finds the link-layer address of a next hop, if it is known.
func (l *txLink) resolve(nextHop netip.Addr) (wire.MAC, bool) {
	if nextHop.IsMulticast() {
		return wire.MulticastMAC(nextHop), true
	}
	if nextHop.Is6() {
		return l.ifc.neighbour(nextHop)
	}
	if l.shard.tables.local[nextHop].broadcast || nextHop == limitedBroadcast {
		return wire.Broadcast, true
	}
	return l.ifc.neighbour(nextHop)
}

// wait keeps a packet until its next hop is resolved or has failed to answer.
func (l *txLink) wait(nextHop netip.Addr, f *link.Frame) {
	queue, known := l.waiting[nextHop]
	if len(queue) == maxWaiting {
		l.shard.tally.count(NeighOverflow)
		queue[0].Free()
		queue = append(queue[:0], queue[1:]...)
		l.held--
	}
	if !known && len(l.waiting) >= maxWaitingFor || l.held >= maxWaitingAll {
		l.shard.tally.count(NeighOverflow)
		f.Free()
		return
	}
	l.waiting[nextHop] = append(queue, f)
	l.held++
	if !known {
		l.ifc.want(l.shard, nextHop)
	}
}

// takeWaiting hands out what waited for a next hop.
func (l *txLink) takeWaiting(nextHop netip.Addr) []*link.Frame {
	queue := l.waiting[nextHop]
	delete(l.waiting, nextHop)
	l.held -= len(queue)
	return queue
}

// resolved sends what waited for a next hop.
func (l *txLink) resolved(nextHop netip.Addr, mac wire.MAC) {
	for _, f := range l.takeWaiting(nextHop) {
		l.push(mac, f)
	}
}

// failed tells the sockets whose packets waited that their host cannot be
// reached; it does not if the next one goes another way.
func (l *txLink) failed(nextHop netip.Addr, another bool) {
	for _, f := range l.takeWaiting(nextHop) {
		l.shard.tally.count(NeighFailed)
		if !another {
			l.shard.unreachable(f.Bytes())
		}
		f.Free()
	}
}

// drop frees everything.
func (l *txLink) drop() {
	l.unstall()
	for i := range l.datagrams {
		l.datagrams[i].drop()
	}
	l.datagrams = nil
	link.FreeAll(l.frames)
	l.frames = nil
	for hop := range l.waiting {
		link.FreeAll(l.takeWaiting(hop))
	}
}

// output asks every connection that was touched in this turn what there is to
// send, and hands it to the devices.
func (sh *shard) output() {
	dirty := sh.dirty
	sh.dirty = sh.spare[:0]
	for i, c := range dirty {
		dirty[i] = nil
		c.dirty = false
		c.output(sh)
	}
	sh.spare = dirty[:0]
	for _, l := range sh.links {
		l.flush()
	}
	if len(sh.dirty) > 0 { // some have more: come back after looking at the input
		sh.inbox.ring()
	}
}

// putIPv4 prepends the IPv4 header to a transport segment.
func putIPv4(f *link.Frame, h *wire.IPv4) {
	h.PayloadLen = f.Len()
	h.Put(f.Prepend(h.Len()))
}
