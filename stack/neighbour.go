package stack

import (
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/stack/configure"
	"loam/stack/ip"
	"loam/stack/neigh"
	"loam/stack/tcp"
	"loam/wire"
)

// The neighbour cache of an interface, and how shards read it.
//
// A shard looks up a next hop in the published map, without a message to the interface loop. If there is no entry, it
// keeps the packet and requests one (want). When the state machine (package neigh) has a result, the loop publishes a
// new map and notifies every shard.

// neighbour is a resolved next hop. Only lastUse changes.
type neighbour struct {
	mac     wire.MAC
	lastUse atomic.Int64 // tcp.Time of the last use reported to the loop
}

// useEvery is the minimum interval between two reports to the loop that a neighbour is in use, in nanoseconds. The loop needs
// the reports to decide when to check that the neighbour is still there.
const useEvery = int64(time.Second)

// neighMessage informs the loop about a next hop.
type neighMessage struct {
	kind neighKind
	addr netip.Addr
}

type neighKind uint8

const (
	neighWant    neighKind = iota // a packet is waiting for the next hop to be resolved
	neighUse                      // packets are being sent to the next hop
	neighConfirm                  // the next hop is known to be reachable
)

// recentHop is the result of a shard's last lookup of a next hop. Most successive packets have the same
// next hop, and a comparison is cheaper than a map lookup.
type recentHop struct {
	known *map[netip.Addr]*neighbour // the map of the lookup; the result is valid while the interface has this map
	hop   netip.Addr
	found *neighbour // nil if hop is not resolved
}

// neighbour returns the link-layer address of a next hop, if it is resolved, and reports the use to the loop.
func (l *txLink) neighbour(hop netip.Addr) (wire.MAC, bool) {
	if known := l.ifc.neighbours.Load(); l.recent.known != known || l.recent.hop != hop {
		l.recent = recentHop{known, hop, (*known)[hop]}
	}
	n := l.recent.found
	if n == nil {
		return wire.MAC{}, false
	}
	now := int64(l.shard.now)
	if last := n.lastUse.Load(); now-last > useEvery && n.lastUse.CompareAndSwap(last, now) {
		l.ifc.hint(neighUse, hop)
	}
	return n.mac, true
}

// hint sends a message to the interface loop unless the channel is full. It reports whether it was sent.
func (i *Interface) hint(kind neighKind, addr netip.Addr) bool {
	select {
	case i.wanted <- neighMessage{kind, addr}:
		return true
	default:
		return false
	}
}

func (i *Interface) confirm(addr netip.Addr) { i.hint(neighConfirm, addr) }

// want requests the link-layer address of a next hop. The result is posted to all shards.
// If the loop is too busy to accept the request, the waiting packets are dropped.
func (i *Interface) want(sh *shard, addr netip.Addr) {
	if i.hint(neighWant, addr) {
		return
	}
	queue := sh.link(i).takeWaiting(addr)
	sh.tally.add(NeighOverflow, uint64(len(queue)))
	link.FreeAll(queue)
}

// announce starts to answer for one of our addresses, and withdraw stops it.
func (i *Interface) announce(p netip.Prefix) {
	i.post(func(l *ifaceLoop) {
		if p.Addr().Is4() {
			l.arp.Add(l.now, p)
		} else {
			l.join(wire.SolicitedNode(p.Addr()))
			l.ndp.Add(l.now, p, i.trial())
		}
	})
}

func (i *Interface) withdraw(addr netip.Addr) {
	i.post(func(l *ifaceLoop) {
		if addr.Is4() {
			l.arp.Delete(addr)
		} else {
			l.ndp.Delete(addr)
			l.leave(wire.SolicitedNode(addr))
		}
	})
}

// Neighbours returns the entries of both neighbour caches. It is empty after the interface has been detached.
func (i *Interface) Neighbours() []neigh.Entry {
	answer := make(chan []neigh.Entry, 1)
	i.post(func(l *ifaceLoop) { answer <- append(l.arp.Entries(), l.ndp.Entries()...) })
	select {
	case list := <-answer:
		return list
	case <-i.ended:
		return nil
	}
}

// SetNeighbour adds a permanent entry to the neighbour cache. It does not wait until the entry is in use.
func (i *Interface) SetNeighbour(addr netip.Addr, mac wire.MAC) {
	i.post(func(l *ifaceLoop) {
		if addr.Is4() {
			l.arp.Set(addr, mac)
		} else {
			l.ndp.Set(addr.WithZone(""), mac)
		}
	})
}

// ifaceLoop is the state owned by the loop of an interface.
type ifaceLoop struct {
	*Interface
	now   tcp.Time
	arp   *neigh.ARP
	ndp   *neigh.NDP
	dhcp  *configure.Lease // the DHCP client; nil: none
	timer *time.Timer
	armed tcp.Time

	groups    groupHosts
	redirects ip.Redirects

	auto       *configure.Auto // nil: router advertisements are ignored
	advertised *advertising    // nil: the interface is not a router
}

// loop owns the neighbour caches, the DHCP clients, the state from router advertisements
// and the group reports. It ends when the interface is closed.
func (i *Interface) loop() {
	defer close(i.ended)
	l := &ifaceLoop{Interface: i, armed: tcp.Never, timer: time.NewTimer(time.Hour)}
	l.arp = neigh.NewARP(neigh.ARPConfig{Config: neigh.Config{Seed: i.stack.seed ^ uint64(i.index)}, MAC: i.mac, Any: i.acceptAny})
	l.ndp = neigh.NewNDP(neigh.NDPConfig{Config: neigh.Config{Seed: i.stack.seed ^ uint64(i.index)<<8}, MAC: i.mac})
	l.groups = i.newGroupHosts()
	l.timer.Stop()
	defer l.timer.Stop()
	for {
		select {
		case a := <-i.arpIn:
			l.now = i.stack.now()
			l.arp.Receive(l.now, a)
		case m := <-i.ndIn:
			l.now = i.stack.now()
			l.receiveND(&m)
		case m := <-i.routersIn:
			l.now = i.stack.now()
			l.receiveRouter(&m)
		case m := <-i.redirectsIn:
			l.now = i.stack.now()
			l.receiveRedirect(&m)
		case m := <-i.groupsIn:
			l.now = i.stack.now()
			l.receiveGroup(&m)
		case m := <-i.wanted:
			l.now = i.stack.now()
			l.takeRequests() // the request that adds the packet's source address may still be queued
			l.handle(m)
		case <-i.wake:
			l.now = i.stack.now()
			l.takeRequests()
		case b := <-i.leases:
			l.now = i.stack.now()
			l.receiveLease(b)
		case b := <-i.dhcp6In:
			l.now = i.stack.now()
			l.receiveDHCPv6(b)
		case <-l.timer.C:
			l.now = i.stack.now()
			l.armed = tcp.Never
		case <-i.done:
			l.takeRequests()
			return
		}
		l.catchUp()
		l.arp.Advance(l.now)
		l.ndp.Advance(l.now)
		l.publish()
		l.expireRedirects()
		if l.dhcp != nil {
			l.dhcp.Advance(l.now) // must follow publish, which may have reported an address conflict to the DHCP client
		}
		l.advanceRouters()
		l.thinning.Advance(l.now)
		l.sendARP()
		l.sendGroups() // group reports come before sendND: a switch that does not know our groups may filter the replies
		l.sendND()
		l.arm()
	}
}

// mostAtOnce bounds the messages of each kind that catchUp processes. The ARP and Neighbor Discovery machines have room
// for the replies to that many messages.
const mostAtOnce = 32

// catchUp processes messages of neighbours that are already queued when a timer is due. So a reply or an objection that
// arrived in time counts before the timer fires, however late the loop runs.
func (l *ifaceLoop) catchUp() {
	if l.now < min(l.arp.Deadline(), l.ndp.Deadline()) {
		return
	}
	for range min(len(l.arpIn), mostAtOnce) {
		l.arp.Receive(l.now, <-l.arpIn)
	}
	for range min(len(l.ndIn), mostAtOnce) {
		m := <-l.ndIn
		l.receiveND(&m)
	}
}

func (l *ifaceLoop) receiveND(m *neigh.Message) {
	l.ndp.Receive(l.now, m)
	l.noRouter(m)
}

// takeRequests runs the functions passed to post, in order.
func (l *ifaceLoop) takeRequests() {
	l.mu.Lock()
	requests := l.requests
	l.requests = nil
	l.mu.Unlock()
	for _, f := range requests {
		f(l)
	}
}

// handle processes a message about a next hop from a shard.
func (l *ifaceLoop) handle(m neighMessage) {
	if m.kind == neighConfirm {
		l.confirmed(m.addr)
		return
	}
	mac, answer := l.lookup(m.addr)
	if m.kind != neighWant {
		return
	}
	// Package neigh reports only changes as events, so a result that is already known is published here.
	switch answer {
	case neigh.Found:
		l.publishOne(m.addr, mac)
	case neigh.Unreachable:
		l.dropWaiting(m.addr, l.detourFailed(m.addr))
	}
}

// publish applies the events of the ARP and Neighbor Discovery machines: resolved and failed neighbours, and address
// conflicts.
func (l *ifaceLoop) publish() {
	for {
		e, ok := l.event()
		if !ok {
			return
		}
		switch e.Kind {
		case neigh.Resolved, neigh.Changed:
			l.publishOne(e.Addr, e.MAC)
			l.reached(e.Addr, true)
			l.stack.tally.count(NeighResolved)
		case neigh.Failed:
			l.unpublish(e.Addr)
			l.reached(e.Addr, false)
			l.dropWaiting(e.Addr, l.detourFailed(e.Addr))
		case neigh.Gone:
			l.unpublish(e.Addr)
		case neigh.Ready:
			l.ready(e.Addr)
		case neigh.Conflict:
			l.stack.tally.count(conflictCounter(e.Addr))
			l.stack.config.Log.Warn("another host uses our address", "interface", l.name, "address", e.Addr, "mac", e.MAC)
			if l.dhcp != nil {
				l.dhcp.Conflict(l.now, e.Addr)
			}
			l.duplicate(e.Addr)
		}
	}
}

// publishOne adds a neighbour to the published map and makes the shards send the packets waiting for it.
func (l *ifaceLoop) publishOne(addr netip.Addr, mac wire.MAC) {
	table := maps.Clone(*l.neighbours.Load())
	n := &neighbour{mac: mac}
	n.lastUse.Store(int64(l.now))
	table[addr] = n
	l.neighbours.Store(&table)
	for _, sh := range l.stack.shards {
		sh.post(func(sh *shard) {
			if out := sh.knownLink(l.Interface); out != nil {
				out.resolved(addr, mac)
			}
		})
	}
}

// unpublish removes a neighbour from the published map.
func (l *ifaceLoop) unpublish(addr netip.Addr) {
	table := maps.Clone(*l.neighbours.Load())
	delete(table, addr)
	l.neighbours.Store(&table)
}

// dropWaiting makes the shards drop the packets waiting for a next hop. If another is
// true, there is a different path, and the senders get no error.
func (l *ifaceLoop) dropWaiting(addr netip.Addr, another bool) {
	for _, sh := range l.stack.shards {
		sh.post(func(sh *shard) {
			if out := sh.knownLink(l.Interface); out != nil {
				out.failed(addr, another)
			}
		})
	}
}

// sendARP sends the pending messages of the ARP machine.
func (l *ifaceLoop) sendARP() {
	var a wire.ARP
	var dst wire.MAC
	for l.arp.Poll(l.now, &a, &dst) {
		if l.medium != link.Ethernet {
			continue
		}
		f := link.NewFrame(wire.ARPLen)
		a.Put(f.Bytes())
		l.sendEthernet(dst, wire.TypeARP, f)
		l.stack.tally.count(ARPSent)
	}
}

// sendEthernet sends a frame of the interface itself, or drops it if there is no room.
func (l *ifaceLoop) sendEthernet(dst wire.MAC, t wire.EtherType, f *link.Frame) {
	h := wire.Ethernet{Dst: dst, Src: l.mac, Type: t}
	h.Put(f.Prepend(wire.EthernetLen))
	l.sendFrame(f)
}

// sendFrame passes a frame to the device, or drops and counts it if there is no room.
func (l *ifaceLoop) sendFrame(f *link.Frame) {
	if l.stack.linkConns.Load() != nil {
		l.stack.tapOutgoing(&l.stack.tally, l.Interface, f, nil)
	}
	if !l.ports[0].sendControl(f) {
		l.stack.tally.count(EthNoRoom)
	}
}

// arm sets the timer to the earliest deadline of everything that the interface loop runs. As in shard.arm, a timer set
// too early is not changed.
func (l *ifaceLoop) arm() {
	next := min(l.arp.Deadline(), l.ndp.Deadline(), l.dhcp.Deadline(), l.routersDeadline(), l.groupsDeadline(), l.redirects.Deadline(), l.thinning.Deadline())
	if next >= l.armed {
		return
	}
	l.armed = next
	l.timer.Reset(max(0, next-l.now))
}
