package stack

import (
	"math/bits"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/stack/tcp"
	"loam/wire"
)

// Limiting floods from forged addresses: the device delivers only a part of the frames of a flood.
//
// A receiver counts the frames that hosts can send without a connection (link.Kinds). When
// many of them arrive from many senders, the loop of the interface makes the device
// deliver only a share of those kinds, except from known peers. Every thinFor it counts the
// frames that still arrive, to see whether the flood continues.
//
// The stack would answer few of these frames, but it would spend a system call or more on
// each of them. A single sender is not limited: it may be a host that waits for replies.

// Limits of floods and of thinning.
const (
	censusFrames = 4096                   // frames of any kind after which a receiver judges
	censusSpan   = 200 * time.Millisecond // that arrive within this time: 20,000 a second
	thinShift    = 4                      // one in 16 is delivered
	thinFor      = time.Second
	thinLeast    = 512 // if fewer frames were delivered in thinFor, the flood is over
)

// census counts the frames of a receiver that may belong to a flood. It belongs to the
// receiver.
type census struct {
	began  tcp.Time
	frames int
	kinds  [link.NumKinds]int
	sender vote[netip.Addr]
	port   vote[uint16] // destination port of UDP datagrams
}

// vote finds the value that occurs in more than half of all cases, by the algorithm of Boyer
// and Moore.
type vote[T comparable] struct {
	value T   // the candidate
	lead  int // at most how often it has occurred more than all other values together
}

func (v *vote[T]) add(value T) {
	switch {
	case value == v.value:
		v.lead++
	case v.lead == 0:
		v.value, v.lead = value, 1
	default:
		v.lead--
	}
}

// add counts a frame.
func (c *census) add(kind link.Kinds, sender netip.Addr, frame []byte) {
	c.frames++
	c.kinds[bits.TrailingZeros8(uint8(kind))]++
	c.sender.add(sender)
	if kind == link.KindUDP {
		c.port.add(link.UDPPort(frame))
	}
}

// flood returns the kinds that make up a flood, at the end of a census that took span. UDP
// datagrams do if most of them have the same destination port.
func (c *census) flood(span tcp.Time) (kinds link.Kinds) {
	if span > censusSpan || c.sender.lead > censusFrames/4 {
		return 0
	}
	for i, n := range c.kinds {
		if n > censusFrames/8 {
			kinds |= 1 << i
		}
	}
	if c.port.lead < censusFrames/16 {
		kinds &^= link.KindUDP
	}
	return kinds
}

// countKinds counts arriving frames in the census. The device must be able to thin them out.
func (r *receiver) countKinds(frames []*link.Frame) {
	thinned := r.ifc.thinned.Load()
	if len(frames) == 1 && !thinned { // a lone frame is no flood
		return
	}
	delivered := int64(0)
	for _, f := range frames {
		kind, sender := link.KindOf(f.Bytes())
		if kind == 0 {
			continue
		}
		delivered++
		if r.census.frames == 0 {
			r.census.began = r.ifc.stack.now()
		}
		if r.census.add(kind, sender, f.Bytes()); r.census.frames == censusFrames {
			if kinds := r.census.flood(r.ifc.stack.now() - r.census.began); kinds != 0 {
				port := r.census.port.value
				r.ifc.post(func(l *ifaceLoop) { l.thin(kinds, port) })
			}
			r.census = census{}
		}
	}
	if thinned && delivered > 0 {
		r.ifc.delivered.Add(delivered)
	}
}

// thin makes the device thin out further kinds. port is the destination port of a flood of
// UDP datagrams, which is left alone if a program or the DHCP client uses the port.
func (l *ifaceLoop) thin(kinds link.Kinds, port uint16) {
	if kinds&link.KindUDP != 0 && (port == dhcpClientPort || l.stack.ports.used(wire.ProtoUDP, port)) {
		kinds &^= link.KindUDP
	}
	if l.flood.unable || kinds&^l.flood.kinds == 0 {
		return
	}
	if kinds&link.KindUDP != 0 {
		l.flood.port = port
	}
	l.stack.tally.count(EthFloods)
	l.flood.kinds |= kinds
	l.applyThinning()
}

// floodState is the part of ifaceLoop that deals with floods.
type floodState struct {
	kinds  link.Kinds // being thinned out
	port   uint16     // of link.KindUDP
	review tcp.Time   // when to check whether the flood continues
	unable bool       // the device has refused
}

// deadline returns when advanceThinning must run.
func (f *floodState) deadline() tcp.Time {
	if f.kinds == 0 {
		return tcp.Never
	}
	return f.review
}

// advanceThinning ends the thinning after the flood, and renews it during the flood, since
// there may be new peers.
func (l *ifaceLoop) advanceThinning() {
	if l.now < l.flood.deadline() {
		return
	}
	if l.delivered.Load() < thinLeast {
		l.flood.kinds = 0
	}
	if l.stack.ports.used(wire.ProtoUDP, l.flood.port) {
		l.flood.kinds &^= link.KindUDP
	}
	l.applyThinning()
}

// applyThinning passes the state to the device.
func (l *ifaceLoop) applyThinning() {
	t := link.Thinning{Kinds: l.flood.kinds, Port: l.flood.port, Shift: thinShift, Known: l.stack.peers.list()}
	if err := l.thinner.Thin(t); err != nil {
		l.flood = floodState{unable: true}
	}
	l.flood.review = l.now + thinFor
	l.delivered.Store(0)
	l.thinned.Store(l.flood.kinds != 0)
}

// recentPeers are the IPv4 hosts that have completed a handshake most recently. Shards add
// to it, and the loops of interfaces read it.
type recentPeers struct {
	mu    sync.Mutex // guards addrs
	addrs [link.MaxKnown]netip.Addr
	added atomic.Uint64 // number of addresses ever added, changed under mu
}

// holds reports whether the list still holds the address that add returned place for.
func (p *recentPeers) holds(place uint64) bool {
	return place != 0 && p.added.Load()-place < uint64(len(p.addrs))
}

// add adds an address in place of the oldest one, unless the list holds it, and returns its place.
func (p *recentPeers) add(addr netip.Addr) (place uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	added, length := p.added.Load(), uint64(len(p.addrs))
	for place := added; place > 0 && added-place < length; place-- {
		if p.addrs[(place-1)%length] == addr {
			return place
		}
	}
	p.addrs[added%length] = addr
	return p.added.Add(1)
}

// list returns the addresses.
func (p *recentPeers) list() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]netip.Addr(nil), p.addrs[:min(p.added.Load(), uint64(len(p.addrs)))]...)
}
