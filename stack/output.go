package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/queue"
	"loam/wire"
)

// Output of packets. Each shard has a txLink per interface. It collects the frames of a turn (one pass of the shard
// over its work) and passes them to the device together, through a txPort (txport.go) that several shards may share.

// txLink is a shard's output on one interface. It belongs to the shard.
type txLink struct {
	shard     *shard
	ifc       *Interface
	port      *txPort
	frames    []*link.Frame                // frames that the shard sends at the end of the current turn; more than a batch only if packets have waited for a neighbour
	blocked   bool                         // the device was full; resume will be called
	opening   queue.FIFO[*TCPConn]         // connections that wait for room and are not established; served first
	stalled   queue.FIFO[*TCPConn]         // other connections that wait for room; each connection is in at most one list, once
	waiting   map[netip.Addr][]*link.Frame // packets whose next hop is being resolved
	held      int                          // number of packets in waiting
	recent    recentHop                    // the last next hop that was looked up
	datagrams queue.FIFO[outgoing]         // datagrams that wait for room, in order; bounded by their send buffers
	goOn      func(*shard)                 // resume as a func value, allocated once
}

// Limits on packets that wait for neighbours, per interface and shard.
const (
	maxWaiting    = 128 // packets for one neighbour; the longest datagram has 119 fragments at an MTU of 576
	maxWaitingFor = 256 // next hops with waiting packets
	maxWaitingAll = 2048
)

// link returns the txLink of an interface and creates it at first use.
func (sh *shard) link(ifc *Interface) *txLink {
	if l := sh.knownLink(ifc); l != nil {
		return l
	}
	l := &txLink{shard: sh, ifc: ifc, port: ifc.ports[sh.index%len(ifc.ports)], waiting: make(map[netip.Addr][]*link.Frame)}
	l.goOn = l.resume
	sh.links = append(sh.links, l)
	return l
}

// knownLink returns the txLink of an interface, or nil if it has not been used.
func (sh *shard) knownLink(ifc *Interface) *txLink {
	for _, l := range sh.links {
		if l.ifc == ifc {
			return l
		}
	}
	return nil
}

// unlink removes the txLink of a detached interface. From then on the shard uses tables without that interface.
func (sh *shard) unlink(ifc *Interface) {
	sh.tables = sh.stack.tables.Load()
	sh.strays.Leave(ifc.listing.Flows())
	for i, l := range sh.links {
		if l.ifc == ifc {
			l.drop()
			sh.links = append(sh.links[:i], sh.links[i+1:]...)
			return
		}
	}
}

// room reports whether a packet may be sent now. A caller that ignores the result makes the queue grow without bound.
func (l *txLink) room() bool { return l.roomFor(link.BatchSize) }

// roomForReset is room for resets and SYN cookies, which are not kept for later. A second batch is reserved for them, because
// connections fill the first batch as soon as there is room.
func (l *txLink) roomForReset() bool { return l.roomFor(2 * link.BatchSize) }

// roomForICMP is room for ICMP messages, which are not kept for later. A third batch is reserved for them: when many
// connections close at once, resets fill the second batch, and an echo request must still get its reply.
func (l *txLink) roomForICMP() bool { return l.roomFor(3 * link.BatchSize) }

// roomFor reports whether the number of queued frames is less than the limit most, after a flush if necessary.
func (l *txLink) roomFor(most int) bool {
	if len(l.frames) < most {
		return true
	}
	if !l.blocked {
		l.flush()
	}
	return len(l.frames) < most
}

// flush passes the collected frames to the device.
func (l *txLink) flush() {
	if len(l.frames) == 0 || l.blocked {
		return
	}
	n, err := l.port.send(l, l.frames)
	if err != nil { // the device was closed
		link.FreeAll(l.frames[n:])
		n = len(l.frames)
	}
	rest := copy(l.frames, l.frames[n:])
	clear(l.frames[rest:])
	l.frames = l.frames[:rest]
	l.blocked = rest > 0
}

// resume continues sending after the device was full.
func (l *txLink) resume(sh *shard) {
	l.blocked = false
	l.flush()
	l.resumeDatagrams()
}

// maxResumed bounds the connections that send in one turn of the shard because a full device has room again, so that
// input is processed in between.
const maxResumed = link.BatchSize

// unstall lets connections that wait for room send, in order of arrival and while there is room. It does not touch the other
// stalled connections: otherwise, with many connections, every frame sent would cost a visit to each of them.
func (l *txLink) unstall() {
	for range maxResumed {
		if l.opening.Len()+l.stalled.Len() == 0 || !l.room() {
			return
		}
		l.nextStalled().output(l.shard)
	}
	if l.opening.Len()+l.stalled.Len() > 0 {
		l.shard.inbox.ring()
	}
}

// nextStalled removes and returns the next connection that waits for room.
func (l *txLink) nextStalled() *TCPConn {
	line := &l.stalled
	if l.opening.Len() > 0 {
		line = &l.opening
	}
	c := line.Pop()
	c.stalled = false
	return c
}

// transmit sends an IP packet to a next hop on the link. It takes ownership of f, which starts with the IP header.
func (l *txLink) transmit(nextHop netip.Addr, f *link.Frame) {
	if l.ifc.medium != link.Ethernet {
		l.append(f)
		return
	}
	mac, ok := l.resolve(nextHop)
	if !ok && nextHop.Is6() {
		mac, ok = l.detour(nextHop, f)
	}
	if !ok || l.waiting[nextHop] != nil { // waiting packets will be sent soon, and go first
		l.wait(nextHop, f)
		return
	}
	l.push(mac, f)
}

// push adds the Ethernet header to an IP packet and queues the frame.
func (l *txLink) push(mac wire.MAC, f *link.Frame) {
	h := wire.Ethernet{Dst: mac, Src: l.ifc.mac, Type: typeOfIP(f.Bytes())}
	h.Put(f.Prepend(wire.EthernetLen))
	l.shard.tally.count(EthSent)
	l.append(f)
}

// append adds a frame to those that the shard passes to the device at the end of its current turn (pass over its work).
func (l *txLink) append(f *link.Frame) {
	if s := l.shard.stack; s.linkConns.Load() != nil {
		s.tapOutgoing(&l.shard.tally, l.ifc, f, nil)
	}
	l.frames = append(l.frames, f)
}

// resolve returns the link-layer address of a next hop, if it is known.
func (l *txLink) resolve(nextHop netip.Addr) (wire.MAC, bool) {
	if nextHop.IsMulticast() {
		return wire.MulticastMAC(nextHop), true
	}
	if nextHop.Is6() {
		return l.neighbour(nextHop)
	}
	if l.shard.tables.local[nextHop].broadcast || nextHop == limitedBroadcast {
		return wire.Broadcast, true
	}
	return l.neighbour(nextHop)
}

// wait keeps a packet until its next hop is resolved or has failed.
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

// takeWaiting removes and returns the packets that wait for a next hop.
func (l *txLink) takeWaiting(nextHop netip.Addr) []*link.Frame {
	queue := l.waiting[nextHop]
	delete(l.waiting, nextHop)
	l.held -= len(queue)
	return queue
}

// resolved sends the packets that waited for a next hop.
func (l *txLink) resolved(nextHop netip.Addr, mac wire.MAC) {
	for _, f := range l.takeWaiting(nextHop) {
		l.push(mac, f)
	}
}

// failed drops the packets that waited for a next hop. It reports the failure to their
// sockets unless another path exists (another).
func (l *txLink) failed(nextHop netip.Addr, another bool) {
	for _, f := range l.takeWaiting(nextHop) {
		l.shard.tally.count(NeighFailed)
		if !another {
			l.shard.unreachable(f.Bytes())
		}
		f.Free()
	}
}

// drop frees all queued packets and marks the stalled connections for output.
func (l *txLink) drop() {
	for l.opening.Len()+l.stalled.Len() > 0 {
		l.shard.mark(l.nextStalled())
	}
	for l.datagrams.Len() > 0 {
		o := l.datagrams.Pop()
		o.drop()
	}
	link.FreeAll(l.frames)
	l.frames = nil
	for hop := range l.waiting {
		link.FreeAll(l.takeWaiting(hop))
	}
}

// output asks every connection that had an event in this turn of the shard for segments, and passes these to the
// devices. Connections that have waited for room come first.
func (sh *shard) output() {
	for _, l := range sh.links {
		l.unstall()
	}
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
}

// putIPv4 sets the payload length and prepends the IPv4 header to the payload in f.
func putIPv4(f *link.Frame, h *wire.IPv4) {
	h.PayloadLen = f.Len()
	h.Put(f.Prepend(h.Len()))
}
