package stack

import (
	"errors"
	"net/netip"
	"time"

	"loam/link"
	"loam/stack/flood"
	"loam/stack/icmp"
	"loam/stack/shared"
	"loam/wire"
)

// receiver reads one queue of a device. It passes ARP messages to the interface loop, and each IP packet to the shard that
// owns its flow. It makes all checks that need no connection, once: a packet it passes on is a valid IP packet for this host.
type receiver struct {
	ifc    *Interface
	queue  link.Queue
	tally  tally
	out    []*batch      // batches being filled, by shard; nil when empty
	asked  icmp.Bucket   // rate limit of ARP requests
	full   int           // number of full batches that were read in a row
	census flood.Census  // counts of frames that may belong to a flood
	ended  chan struct{} // closed by loop
}

func newReceiver(ifc *Interface, q link.Queue) *receiver {
	return &receiver{ifc: ifc, queue: q, out: make([]*batch, len(ifc.stack.shards)), ended: make(chan struct{})}
}

// loop reads frames until the device is closed or fails.
func (r *receiver) loop() {
	defer close(r.ended)
	var frames [link.BatchSize]*link.Frame
	for {
		n, err := r.queue.Recv(frames[:])
		r.ifc.stack.config.Resumed()
		t := r.ifc.stack.tables.Load()
		if r.ifc.thinning != nil {
			r.countKinds(frames[:n])
		}
		tapped := r.ifc.stack.linkConns.Load() != nil
		for i, f := range frames[:n] {
			frames[i] = nil
			if tapped {
				r.ifc.stack.tapIncoming(&r.tally, r.ifc, f)
			}
			r.receive(t, f)
		}
		r.flush()
		r.notePressure(n)
		if err != nil {
			if !errors.Is(err, link.ErrClosed) {
				r.ifc.stack.config.Log.Error("link failed", "interface", r.ifc.name, "error", err)
			}
			return
		}
	}
}

// flush passes the batches of packets to the shards, or processes them itself in place of the shards' goroutines. Shards always
// drain their input, so waiting for one is bounded. Meanwhile the device queues frames, and drops them when its queue is full.
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

// receive processes one frame and takes ownership of it.
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

// typeOfIP returns the type of an IP packet, judged by its first byte, for links without types.
func typeOfIP(b []byte) wire.EtherType {
	if len(b) > 0 && b[0]>>4 == 6 {
		return wire.TypeIPv6
	}
	return wire.TypeIPv4
}

// refuse checks the link header. It reports whether the frame must be dropped, and why.
func (r *receiver) refuse(h *wire.Ethernet, err error) (Counter, bool) {
	switch {
	case err != nil, h.Src.IsMulticast():
		return EthMalformed, true
	case h.Tags[0] != wire.VLAN{} && h.Tags[0].ID() != 0: // priority tags (ID 0) name no VLAN
		return EthTagged, true
	case h.Dst != r.ifc.mac && !h.Dst.IsMulticast():
		return EthNotForUs, true
	}
	return 0, false
}

// drop counts a frame by reason and frees it.
func (r *receiver) drop(f *link.Frame, reason Counter) {
	r.tally.count(reason)
	f.Free()
}

// drop6 is drop for IPv6 packets.
func (r *receiver) drop6(f *link.Frame, reason Counter) {
	r.tally.count6(reason)
	f.Free()
}

// receiveARP passes an ARP message to the interface loop, subject to the rate limit. It takes ownership of the frame.
func (r *receiver) receiveARP(f *link.Frame) {
	a, err := wire.ParseARP(f.Bytes())
	f.Free()
	if err != nil {
		r.tally.count(ARPMalformed)
		return
	}
	r.tally.count(ARPReceived)
	if a.Op == wire.ARPRequest && !r.allowARP(&a) {
		r.tally.count(ARPOverflow)
		return
	}
	select {
	case r.ifc.arpIn <- a:
	default:
		r.tally.count(ARPOverflow)
	}
}

// Rate limit of ARP requests, per receiver: one request per arpPrice, and a burst of arpBurst. Answering a request in
// the interface loop costs many times as much as dropping it here.
const (
	arpPrice = 500 * time.Microsecond
	arpBurst = 1024
)

// allowARP reports whether an ARP request is processed. A request with one of our
// addresses as its sender is always processed, because it is an address conflict.
func (r *receiver) allowARP(a *wire.ARP) bool {
	if _, ours := r.ifc.stack.tables.Load().local[a.SenderIP]; ours {
		return true
	}
	return r.asked.Take(r.ifc.stack.now(), arpPrice, arpBurst)
}

// receiveIPv4 checks an IPv4 packet and passes it to its shard, or to the DHCP client. It takes ownership of the frame.
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
	p.frame.Resize(h.Len() + len(payload)) // the frame may end with padding of the link, which is removed
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

// refuseIP reports whether a packet must be dropped because it is not for this host, and why (RFC 1122 section 3.2.1.3;
// RFC 1812 section 5.3.7 for addresses that must not appear on a link).
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
		return IPMartian, true // a unicast packet in a group frame (RFC 1122 section 3.3.6)
	}
	return 0, false
}

// martian reports whether the addresses of a packet are impossible for a packet that another host sent over this link.
func (r *receiver) martian(t *tables, p *packet) bool {
	if !r.ifc.loopback && (p.src.IsLoopback() || p.dst.IsLoopback()) {
		return true
	}
	switch l, ours := t.local[p.src]; {
	case ours:
		return l.broadcast || !r.ifc.loopback
	case p.src.IsUnspecified():
		return !allowedWithoutSource(p)
	}
	return p.src.IsMulticast() || p.src == limitedBroadcast || thisNetwork.Contains(p.src)
}

// thisNetwork is not valid as a source, except for a host that does not know its network yet (RFC 1122 section 3.2.1.3 (b)).
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

// shardOfPacket returns the index of the shard for a packet.
func shardOfPacket(s *Stack, p *packet, payload []byte) int {
	if p.fragment {
		payload = nil
	}
	return shared.ShardOfPacket(p.src, p.dst, p.proto, payload, s.seed, len(s.shards))
}
