package stack

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"loam/link"
	"loam/stack/icmp"
	"loam/wire"
)

// receiver reads one queue of a device and sorts what it reads: ARP to the
// interface's owner, IP packets to the shard that owns their flow. It checks
// everything that can be checked without a connection, once: what it passes on
// is a sound IP packet for this host.
type receiver struct {
	ifc   *Interface
	queue link.Queue
	tally tally
	out   []*batch      // being filled, by shard; nil when empty
	ended chan struct{} // closed by loop
}

func newReceiver(ifc *Interface, q link.Queue) *receiver {
	return &receiver{ifc: ifc, queue: q, out: make([]*batch, len(ifc.stack.shards)), ended: make(chan struct{})}
}

// loop ends when the device is closed or fails.
func (r *receiver) loop() {
	defer close(r.ended)
	var frames [link.BatchSize]*link.Frame
	for {
		n, err := r.queue.Recv(frames[:])
		r.ifc.stack.config.Resumed()
		t := r.ifc.stack.tables.Load()
		tapped := r.ifc.stack.linkConns.Load() != nil
		for i, f := range frames[:n] {
			frames[i] = nil
			if tapped {
				r.ifc.stack.tapIncoming(&r.tally, r.ifc, f)
			}
			r.receive(t, f)
		}
		r.flush()
		if err != nil {
			if !errors.Is(err, link.ErrClosed) {
				r.ifc.stack.config.Log.Error("link failed", "interface", r.ifc.name, "error", err)
			}
			return
		}
	}
}

// flush passes the batches on, or does the shards' turns with them. Shards always
// drain their input, so waiting for one is bounded; meanwhile the device queues, and
// drops at its edge.
func (r *receiver) flush() {
	for i, b := range r.out {
		if b == nil {
			continue
		}
		r.out[i] = nil
		if sh := r.ifc.stack.shards[i]; !sh.inputNow(b) {
			sh.enqueue(b)
		}
	}
}

// receive takes one frame. It owns it.
func (r *receiver) receive(t *tables, f *link.Frame) {
	p := packet{frame: f, ifc: r.ifc}
	var etherType wire.EtherType
	var from wire.MAC
	if r.ifc.medium == link.Ethernet {
		h, payload, err := wire.ParseEthernet(f.Bytes())
		if reason, drop := r.refuse(&h, err); drop {
			r.drop(f, reason)
			return
		}
		r.tally.count(EthReceived)
		p.group = h.Dst.IsMulticast()
		f.TrimFront(f.Len() - len(payload))
		etherType, from = h.Type, h.Src
	} else {
		etherType = typeOfIP(f.Bytes())
	}
	switch etherType {
	case wire.TypeIPv4:
		r.receiveIPv4(t, &p)
	case wire.TypeARP:
		r.receiveARP(f)
	case wire.TypeIPv6:
		if !r.ifc.ipv6 {
			r.drop(f, EthUnknownType)
			return
		}
		r.receiveIPv6(t, &p, from)
	default:
		r.drop(f, EthUnknownType)
	}
}

// typeOfIP is what the first byte of an IP packet says of it, where the link has no
// types.
func typeOfIP(b []byte) wire.EtherType {
	if len(b) > 0 && b[0]>>4 == 6 {
		return wire.TypeIPv6
	}
	return wire.TypeIPv4
}

// refuse is the link layer's check.
func (r *receiver) refuse(h *wire.Ethernet, err error) (Counter, bool) {
	switch {
	case err != nil, h.Src.IsMulticast():
		return EthMalformed, true
	case h.Tags[0] != wire.VLAN{} && h.Tags[0].ID() != 0: // priority tags (ID 0) carry no VLAN
		return EthTagged, true
	case h.Dst != r.ifc.mac && !h.Dst.IsMulticast():
		return EthNotForUs, true
	}
	return 0, false
}

func (r *receiver) drop(f *link.Frame, reason Counter) {
	r.tally.count(reason)
	f.Free()
}

// drop6 is drop for packets of IPv6.
func (r *receiver) drop6(f *link.Frame, reason Counter) {
	r.tally.count6(reason)
	f.Free()
}

func (r *receiver) receiveARP(f *link.Frame) {
	a, err := wire.ParseARP(f.Bytes())
	f.Free()
	if err != nil {
		r.tally.count(ARPMalformed)
		return
	}
	r.tally.count(ARPReceived)
	select {
	case r.ifc.arpIn <- a:
	default:
		r.tally.count(ARPOverflow)
	}
}

func (r *receiver) receiveIPv4(t *tables, p *packet) {
	h, payload, err := wire.ParseIPv4(p.frame.Bytes())
	if err != nil {
		r.drop(p.frame, IPMalformed)
		return
	}
	r.tally.count(IPReceived)
	if !wire.IPv4ChecksumOK(p.frame.Bytes()) {
		r.drop(p.frame, IPChecksum)
		return
	}
	p.src, p.dst = h.Src, h.Dst
	p.headerLen, p.proto = uint16(h.Len()), h.Protocol
	p.tos, p.ttl, p.fragment = h.TOS, h.TTL, h.IsFragment()
	p.frame.Resize(h.Len() + len(payload)) // without the link's padding
	if r.ifc.forLease(p) {
		if reason, ok := p.hand(r.ifc.leases); !ok {
			r.tally.count(reason)
		}
		return
	}
	if reason, drop := r.refuseIP(t, p, &h); drop {
		r.drop(p.frame, reason)
		return
	}
	r.pass(p, payload)
}

// refuseIP decides whether the packet is for this host (RFC 1122 section
// 3.2.1.3; RFC 1812 section 5.3.7 for addresses that must not be on a wire).
func (r *receiver) refuseIP(t *tables, p *packet, h *wire.IPv4) (Counter, bool) {
	for kind := range h.EachOption {
		if kind == wire.OptLSRR || kind == wire.OptSSRR {
			return IPSourceRoute, true
		}
	}
	l, ours := t.local[p.dst]
	p.broadcast = l.broadcast || p.dst.IsMulticast() || p.dst == limitedBroadcast
	switch {
	case r.martian(t, p):
		return IPMartian, true
	case p.broadcast && p.dst.IsMulticast() && !t.inGroup(r.ifc, p.dst):
		return IPNotMember, true
	case !ours && !p.broadcast && !r.ifc.acceptAny && !(r.ifc.loopback && p.dst.IsLoopback()):
		return IPNotForUs, true
	case p.group && !p.broadcast:
		return IPMartian, true // RFC 1122 section 3.3.6
	}
	return 0, false
}

// martian reports whether the addresses of a packet cannot be those of one that
// another host has sent over this link.
func (r *receiver) martian(t *tables, p *packet) bool {
	if !r.ifc.loopback && (p.src.IsLoopback() || p.dst.IsLoopback()) {
		return true
	}
	switch l, ours := t.local[p.src]; {
	case ours:
		return l.broadcast || !r.ifc.loopback
	case p.src.IsUnspecified():
		return !fromNobody(p)
	}
	return p.src.IsMulticast() || p.src == limitedBroadcast || thisNetwork.Contains(p.src)
}

// thisNetwork is no source but of a host that does not know its network yet (RFC
// 1122 section 3.2.1.3 (b)).
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// pass adds the packet to the batch of the shard that owns its flow.
func (r *receiver) pass(p *packet, payload []byte) {
	s := r.ifc.stack
	i := shardOfPacket(s, p, payload)
	b := r.out[i]
	if b == nil {
		b = newBatch()
		r.out[i] = b
	}
	b.packets[b.n] = *p
	b.n++
	if b.n == len(b.packets) {
		r.out[i] = nil
		s.shards[i].enqueue(b)
	}
}

// shardOfPacket reads just enough of the payload to find the flow. Fragments
// meet by their addresses alone, in whichever shard that names, and are sorted
// again once they are put together. An ICMP error goes where the packet that it
// quotes came from.
func shardOfPacket(s *Stack, p *packet, payload []byte) int {
	n := len(s.shards)
	switch {
	case n == 1:
		return 0
	case p.fragment:
	case (p.proto == wire.ProtoTCP || p.proto == wire.ProtoUDP) && len(payload) >= 4:
		return shardOf(p.src, p.dst, binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:]), s.seed, n)
	case p.proto == wire.ProtoICMPv6 && len(payload) > wire.ICMPv6Len:
		if h, quoted, err := wire.ParseICMPv6(payload); err == nil && h.IsError() {
			if q, ok := icmp.ParseQuote(quoted); ok {
				return shardOf(q.Src, q.Dst, q.SrcPort, q.DstPort, s.seed, n)
			}
		}
	case p.proto == wire.ProtoICMP && len(payload) > wire.ICMPv4Len:
		if h, quoted, err := wire.ParseICMPv4(payload); err == nil && h.IsError() {
			if q, ok := icmp.ParseQuote(quoted); ok {
				return shardOf(q.Src, q.Dst, q.SrcPort, q.DstPort, s.seed, n)
			}
		}
	}
	return shardOf(p.src, p.dst, 0, 0, s.seed, n)
}
