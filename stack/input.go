package stack

import (
	"loam/link"
	"loam/stack/ip"
	"loam/stack/tcp"
	"loam/wire"
)

// input processes a batch from a receiver and recycles it.
func (sh *shard) input(b *batch) {
	for i := range b.packets[:b.n] {
		sh.deliver(&b.packets[i])
	}
	b.recycle()
}

// deliver passes a packet to its protocol. It takes ownership of the frame.
func (sh *shard) deliver(p *packet) {
	if p.fragment || p.problem != 0 {
		sh.deliverOdd(p)
		return
	}
	received := sh.stack.raws.Load() != nil && sh.stack.inputRaw(&sh.tally, p)
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
	case wire.ProtoUDPLite:
		sh.tally.countBy(p.src, IPDelivered)
		sh.inputUDPLite(p)
	case wire.ProtoICMP, wire.ProtoIGMP, wire.ProtoICMPv6:
		if p.dst.Is4() == (p.proto == wire.ProtoICMPv6) {
			sh.unclaimed(p, received)
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
		sh.unclaimed(p, received)
	}
}

// unclaimed processes a packet of a protocol that the stack does not implement. received
// reports that a raw socket has received it. It takes ownership of the frame.
func (sh *shard) unclaimed(p *packet, received bool) {
	if !received {
		sh.noProtocol(p)
		return
	}
	sh.tally.countBy(p.src, IPDelivered)
	p.frame.Free()
}

// reassemble processes an IPv4 fragment. It takes ownership of the frame.
func (sh *shard) reassemble(p *packet) {
	sh.tally.count(IPFragments)
	if !sh.allowFragment(p.src) {
		sh.tally.count(IPOverflow)
		p.frame.Free()
		return
	}
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

// passOn passes a reassembled packet to the shard of its flow.
func (sh *shard) passOn(p *packet) {
	i := shardOfPacket(sh.stack, p, p.payload())
	if i == sh.index {
		sh.deliver(p)
		return
	}
	sh.stack.shards[i].inject(sh, p)
}

// frameOf returns the IP packet of a reassembled datagram.
func frameOf(d *ip.Datagram) *link.Frame {
	if d.Header.Src.Is6() {
		return frameOf6(d)
	}
	f := d.Payload.(*link.Frame)
	putIPv4(f, &d.Header)
	return f
}

// newReassembler returns a reassembler that uses frames as its buffers. memory is its bound in bytes.
func newReassembler(memory int) *ip.Reassembler {
	return ip.NewReassembler(ip.ReassemblyConfig{
		Memory: memory,
		Alloc:  func(n int) ip.Buffer { return link.NewFrame(n) },
	})
}

// maxInjected bounds the packets from other shards that wait for a shard.
const maxInjected = 256

// inject passes a packet from another shard, from, to this one. A shard never waits for
// another, so the packet is dropped if too many are waiting.
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

// sendIP sends an IP packet and takes ownership of f, which starts with the IP header. A packet longer than the path MTU is
// fragmented, unless the device will segment it. The caller must have checked for room.
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
		g := link.FrameOf(part)
		putIPv4(g, &piece)
		sh.tally.count(IPFragsSent)
		l.transmit(p.nextHop, g)
	}
	f.Free()
}

// confirmEvery is the minimum interval between two notifications that confirm sends to the interface loop for one path,
// in nanoseconds.
const confirmEvery = 5e9

// confirm records that the next hop of a path is reachable, because a connection makes
// forward progress (RFC 4861 section 7.3.1).
func (sh *shard) confirm(p *path) {
	if sh.now-p.confirmed < confirmEvery || p.ifc.medium != link.Ethernet {
		return
	}
	p.confirmed = sh.now
	p.ifc.confirm(p.nextHop)
}

// mss returns the payload of a segment without options on the path of a connection, in
// bytes. The parameter on is the interface that the connection is bound to, or nil.
func (sh *shard) mss(on *Interface, id tcp.ID) int {
	p, err := sh.tables.routeOn(on, id.Local.Addr(), id.Remote.Addr())
	if err != nil {
		return 536 // the default segment size (RFC 9293 section 3.7.1)
	}
	mtu := p.mtu
	if learned, ok := sh.stack.paths.Lookup(sh.now, id.Remote.Addr().WithZone("")); ok {
		mtu = min(mtu, learned.MTU)
	}
	return mtu - tcp.HeadersLen(id.Remote.Addr())
}

// expireReassembly drops incomplete datagrams whose time is over. It informs the sender
// if the first fragment has arrived (RFC 792).
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

// reassemblyDrops returns the number of datagrams and fragments that were dropped.
func reassemblyDrops(c ip.ReassemblyCounters) uint64 {
	return c.Timeout + c.Evicted + c.Duplicate + c.Absorbed + c.Overlap + c.Oversize + c.Malformed + c.BadECN + c.Scattered + c.OutOfSpace
}
