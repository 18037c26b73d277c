package stack

import (
	"loam/link"
	"loam/stack/ip"
	"loam/stack/tcp"
	"loam/wire"
)

// input takes a batch from a receiver.
func (sh *shard) input(b *batch) {
	for i := range b.packets[:b.n] {
		sh.deliver(&b.packets[i])
	}
	b.recycle()
}

// deliver hands a packet to its protocol. It owns the frame.
func (sh *shard) deliver(p *packet) {
	if p.fragment || p.problem != 0 {
		sh.deliverOdd(p)
		return
	}
	heard := sh.stack.raws.Load() != nil && sh.stack.inputRaw(&sh.tally, p)
	switch p.proto {
	case wire.ProtoTCP:
		sh.tally.countBy(p.src, IPDelivered)
		sh.inputTCP(p)
		if p.frame != nil {
			p.frame.Free()
		}
	case wire.ProtoUDP:
		sh.tally.countBy(p.src, IPDelivered)
		sh.inputUDP(p)
	case wire.ProtoICMP, wire.ProtoIGMP, wire.ProtoICMPv6:
		if p.dst.Is4() == (p.proto == wire.ProtoICMPv6) {
			sh.unclaimed(p, heard)
			return
		}
		sh.tally.countBy(p.src, IPDelivered)
		switch p.proto {
		case wire.ProtoICMP:
			sh.inputICMP(p)
		case wire.ProtoIGMP:
			sh.inputIGMP(p)
		default:
			sh.inputICMP6(p)
		}
		p.frame.Free()
	default:
		sh.unclaimed(p, heard)
	}
}

// unclaimed takes a packet of a protocol that the stack does not speak, but a raw socket may
// have heard. It owns the frame.
func (sh *shard) unclaimed(p *packet, heard bool) {
	if !heard {
		sh.noProtocol(p)
		return
	}
	sh.tally.countBy(p.src, IPDelivered)
	p.frame.Free()
}

// reassemble takes a fragment. It owns the frame.
func (sh *shard) reassemble(p *packet) {
	sh.tally.count(IPFragments)
	h, payload, err := wire.ParseIPv4(p.frame.Bytes())
	if err != nil {
		panic("stack: a receiver passed on a malformed packet")
	}
	d, ok := sh.reassembly.Add(sh.now, &h, payload)
	p.frame.Free()
	if !ok {
		return
	}
	sh.tally.count(IPReassembled)
	whole := *p
	whole.fragment = false
	whole.frame = frameOf(&d)
	whole.headerLen = uint16(d.Header.Len())
	sh.passOn(&whole)
}

// passOn hands a packet that was put together to the shard of its flow.
func (sh *shard) passOn(p *packet) {
	i := shardOfPacket(sh.stack, p, p.payload())
	if i == sh.index {
		sh.deliver(p)
		return
	}
	sh.stack.shards[i].inject(sh, p)
}

// frameOf is the IP packet of a datagram that was put together.
func frameOf(d *ip.Datagram) *link.Frame {
	if d.Header.Src.Is6() {
		return frameOf6(d)
	}
	f := d.Payload.(*link.Frame)
	putIPv4(f, &d.Header)
	return f
}

// newReassembler makes one that puts datagrams together in frames.
func newReassembler(memory int) *ip.Reassembler {
	return ip.NewReassembler(ip.ReassemblyConfig{
		Memory: memory,
		Alloc:  func(n int) ip.Buffer { return link.NewFrame(n) },
	})
}

// maxInjected bounds the packets that wait for a shard because another one put
// them together.
const maxInjected = 256

// inject passes a packet from another shard to this one. A shard never waits
// for another, so it is dropped when too many wait already.
func (sh *shard) inject(from *shard, p *packet) {
	sh.inbox.mu.Lock()
	full := len(sh.inbox.in.packets) >= maxInjected || sh.inbox.ended
	if !full {
		sh.inbox.in.packets = append(sh.inbox.in.packets, *p)
	}
	sh.inbox.mu.Unlock()
	if full {
		from.tally.count(IPOverflow)
		p.frame.Free()
		return
	}
	sh.inbox.ring()
}

// sendIP sends an IP packet, whose header is at the front of f, and cuts it up
// if it is longer than the path allows and is not to be cut by the device. It
// owns f. The caller has looked for room.
func (sh *shard) sendIP(p *path, f *link.Frame) {
	sh.tally.countSent(p.nextHop, f.Len())
	l := sh.link(p.ifc)
	if f.Len() <= p.mtu || f.GSO != link.GSONone {
		l.transmit(p.nextHop, f)
		return
	}
	if p.nextHop.Is6() {
		sh.fragment6(p, f)
		return
	}
	h, payload, err := wire.ParseIPv4(f.Bytes())
	if err != nil {
		panic("stack: sending a malformed packet")
	}
	pieces, err := ip.Fragment(&h, payload, p.mtu)
	if err != nil {
		panic("stack: sending a packet that must not be fragmented")
	}
	sh.tally.count(IPFragmented)
	for piece, part, ok := pieces.Next(); ok; piece, part, ok = pieces.Next() {
		g := link.NewFrame(len(part))
		copy(g.Bytes(), part)
		putIPv4(g, &piece)
		sh.tally.count(IPFragsSent)
		l.transmit(p.nextHop, g)
	}
	f.Free()
}

// confirmEvery is how often at most a shard tells the owner of a neighbour
// cache that a neighbour answers.
const confirmEvery = 5e9

// confirm notes that the next hop of a path has been heard to answer (RFC 4861
// section 7.3.1, "forward progress").
func (sh *shard) confirm(p *path) {
	if sh.now-p.confirmed < confirmEvery || p.ifc.medium != link.Ethernet {
		return
	}
	p.confirmed = sh.now
	p.ifc.confirm(p.nextHop)
}

// mss is the payload that the path of a connection allows in a segment without
// options; on is the interface that it is bound to, or nil.
func (sh *shard) mss(on *Interface, id tcp.ID) int {
	p, err := sh.tables.routeOn(on, id.Local.Addr(), id.Remote.Addr())
	if err != nil {
		return 536 // RFC 9293 section 3.7.1
	}
	mtu := p.mtu
	if learned, ok := sh.stack.paths.lookup(sh.now, id.Remote.Addr().WithZone("")); ok {
		mtu = min(mtu, learned.MTU)
	}
	return mtu - headersTCP(id.Remote.Addr())
}

// expireReassembly drops datagrams that did not become complete in time, and
// says so to their senders if the first fragment is there (RFC 792).
func (sh *shard) expireReassembly() {
	if sh.reassembly.Deadline() > sh.now {
		return
	}
	for first := range sh.reassembly.Expire(sh.now) {
		if first.Header.Src.Is6() {
			sh.expired6(&first)
			continue
		}
		f := frameOf(&first)
		sh.sendError(f.Bytes(), wire.ICMPv4TimeExceeded, wire.CodeReassemblyExceeded)
		f.Free()
	}
}

// reassemblyDrops adds up the datagrams and fragments that came to nothing.
func reassemblyDrops(c ip.ReassemblyCounters) uint64 {
	return c.Timeout + c.Evicted + c.Duplicate + c.Absorbed + c.Overlap + c.Oversize + c.Malformed + c.BadECN + c.Scattered + c.OutOfSpace
}
