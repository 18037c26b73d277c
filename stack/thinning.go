package stack

import (
	"sync/atomic"
	"time"

	"loam/link"
	"loam/stack/flood"
	"loam/stack/tcp"
	"loam/wire"
)

// Floods from forged addresses, thinned out by the device.
//
// A receiver counts the frames that hosts can send without a connection (link.Kinds). When
// many of them arrive from many senders, the loop of the interface makes the device
// deliver only a share of those kinds, except from known peers. Every thinFor it counts the
// frames that still arrive, to see whether the flood continues.
//
// The stack would answer few of these frames, but it would spend a system call or more on
// each of them. A single sender is not limited: it may be a host that waits for replies.
//
// TCP segments that belong to no connection (link.KindStray) are counted by the shards. When
// there are many, the loop of the interface asks the device for a set of flows (link.Flows).
// Each shard adds its connections to the set, and from then on each connection when it
// begins and ends. When all shards have done so, the loop makes the device drop most segments
// of other flows. It keeps the set after the flood, so that the next flood needs no
// preparation. The senders do not matter: such segments are at most answered with a reset,
// and the rate of resets is limited to less than what is still delivered (allowReset).

// Limits of thinning.
const (
	thinShift = 4 // one in 16 is delivered
	thinFor   = time.Second
	thinLeast = 512 // if fewer frames were delivered in thinFor, the flood is over
)

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
		if r.census.Empty() {
			r.census.Begin(r.ifc.stack.now())
		}
		if r.census.Add(kind, sender, f.Bytes()) {
			if kinds, port := r.census.End(r.ifc.stack.now()); kinds != 0 {
				r.ifc.post(func(l *ifaceLoop) { l.thin(kinds, port) })
			}
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

	// Of link.KindStray.
	unlisted *atomic.Int32 // shards that have not added their connections to the flows; nil: not begun
	flowless bool          // the device has no set of flows
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
	t := link.Thinning{Kinds: l.flood.kinds, Port: l.flood.port, Shift: thinShift, Known: l.stack.peers.List()}
	if err := l.thinner.Thin(t); err != nil {
		l.flood = floodState{unable: true, flowless: true}
	}
	l.flood.review = l.now + thinFor
	l.delivered.Store(0)
	l.thinned.Store(l.flood.kinds != 0)
}

// strays is the part of a shard that deals with stray segments.
type strays struct {
	flood.Sets
	counted flood.Strays
}

// countStray counts a segment that matches no connection, and is not a SYN alone.
func (sh *shard) countStray(ifc *Interface) {
	if ifc.flowThinner == nil {
		return
	}
	if ifc.thinned.Load() {
		ifc.delivered.Add(1)
	}
	if sh.strays.counted.Add(sh.now, len(sh.stack.shards)) {
		ifc.post((*ifaceLoop).thinStrays)
	}
}

// thinStrays makes the device drop most stray segments. The first time, it only begins to
// set up the set of flows. The last shard to do its part calls thinStrays again.
func (l *ifaceLoop) thinStrays() {
	f := &l.flood
	switch {
	case f.flowless:
	case f.unlisted == nil:
		flows, err := l.flowThinner.Flows()
		if err != nil {
			l.stack.config.Log.Warn("floods of TCP segments cannot be filtered", "interface", l.name, "error", err)
			f.flowless = true
			return
		}
		l.flows.Store(flows)
		f.unlisted = l.stack.listFlows(l.Interface, flows)
	case f.unlisted.Load() == 0:
		l.thin(link.KindStray, 0)
	}
}

// listFlows makes all shards add their connections to the flows of an interface. It returns the
// number of shards that have not done so yet. When it becomes 0, thinStrays runs again.
func (s *Stack) listFlows(ifc *Interface, flows *link.Flows) (left *atomic.Int32) {
	left = new(atomic.Int32)
	left.Store(int32(len(s.shards)))
	for _, sh := range s.shards {
		sh.post(func(sh *shard) {
			sh.watch(flows)
			if left.Add(-1) == 0 {
				ifc.post((*ifaceLoop).thinStrays)
			}
		})
	}
	return left
}

// watch adds the connections of the shard to the flows of an interface. It runs before unlink,
// because the loop of the interface, which posted it, has ended by then.
func (sh *shard) watch(flows *link.Flows) {
	var one flood.Sets
	one.Join(flows)
	for _, c := range sh.conns {
		one.Add(c.local, c.remote)
	}
	for _, w := range sh.timeWaits {
		id := w.machine.ID()
		one.Add(id.Local, id.Remote)
	}
	sh.strays.Join(flows)
}
