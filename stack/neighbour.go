package stack

import (
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/stack/ip"
	"loam/stack/neigh"
	"loam/stack/tcp"
	"loam/wire"
)

// The owner of an interface's neighbour cache, and how shards read it.
//
// A shard looks a next hop up in the published table, which costs it no message.
// What is not there it asks for (want), and keeps the packet; when the machine
// has an answer, the loop publishes a new table and tells every shard.

// neighbour is a next hop that is resolved. It is immutable but for lastUse.
type neighbour struct {
	mac     wire.MAC
	lastUse atomic.Int64 // tcp.Time when the loop was last told that it is used
}

// useEvery is how often at most the loop is told that a neighbour is used, from
// which it sees when to ask again whether it is still there.
const useEvery = int64(time.Second)

// neighMessage tells the loop about a next hop.
type neighMessage struct {
	kind neighKind
	addr netip.Addr
}

type neighKind uint8

const (
	neighWant    neighKind = iota // a packet waits for it
	neighUse                      // packets are sent to it
	neighConfirm                  // it has been heard to answer
)

// neighbour looks up a next hop.
func (i *Interface) neighbour(addr netip.Addr) (wire.MAC, bool) {
	n := (*i.neighbours.Load())[addr]
	if n == nil {
		return wire.MAC{}, false
	}
	now := int64(i.stack.now())
	if last := n.lastUse.Load(); now-last > useEvery && n.lastUse.CompareAndSwap(last, now) {
		i.hint(neighUse, addr)
	}
	return n.mac, true
}

// hint tells the loop something that it can do without.
func (i *Interface) hint(kind neighKind, addr netip.Addr) bool {
	select {
	case i.wanted <- neighMessage{kind, addr}:
		return true
	default:
		return false
	}
}

func (i *Interface) confirm(addr netip.Addr) { i.hint(neighConfirm, addr) }

// want asks for a next hop; an answer will come to all shards. If the loop is
// too busy even to be asked, the packets that wait are dropped.
func (i *Interface) want(sh *shard, addr netip.Addr) {
	if i.hint(neighWant, addr) {
		return
	}
	queue := sh.link(i).takeWaiting(addr)
	sh.tally.add(NeighOverflow, uint64(len(queue)))
	link.FreeAll(queue)
}

// announce begins to answer for an address of ours, and withdraw ends it.
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

// Neighbours lists what the interface knows of its link.
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

// SetNeighbour makes a permanent entry.
func (i *Interface) SetNeighbour(addr netip.Addr, mac wire.MAC) {
	i.post(func(l *ifaceLoop) {
		if addr.Is4() {
			l.arp.Set(addr, mac)
		} else {
			l.ndp.Set(addr.WithZone(""), mac)
		}
	})
}

// ifaceLoop is what the loop of an interface owns.
type ifaceLoop struct {
	*Interface
	now   tcp.Time
	arp   *neigh.ARP
	ndp   *neigh.NDP
	dhcp  *leaser // nil: no DHCP client
	dhcp6 dhcpv6
	timer *time.Timer
	armed tcp.Time

	groups    groupHosts
	redirects ip.Redirects

	auto       *autoconfigured // nil: routers are not listened to
	advertised *advertising    // nil: the interface is no router's
}

// loop owns the neighbour caches, the DHCP client, what routers say and what is said of groups. It
// ends when the interface is closed.
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
			l.takeRequests() // an address that the packet comes from may be among them
			l.hear(m)
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
		l.advanceLease() // behind what publish may have told it
		l.advanceRouters()
		l.advanceDHCPv6()
		l.sendARP()
		l.sendGroups() // first, since a switch may let nobody answer what comes next
		l.sendND()
		l.arm()
	}
}

// mostAtOnce is how many messages of each kind catchUp takes: the machines have room for as many answers.
const mostAtOnce = 32

// catchUp takes what has arrived from neighbours when something is due, so that an answer or an
// objection that came in time counts before time is over, however late the loop is.
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
	l.hearNoRouter(m)
}

func (l *ifaceLoop) takeRequests() {
	l.mu.Lock()
	requests := l.requests
	l.requests = nil
	l.mu.Unlock()
	for _, f := range requests {
		f(l)
	}
}

func (l *ifaceLoop) hear(m neighMessage) {
	if m.kind == neighConfirm {
		l.confirmed(m.addr)
		return
	}
	mac, answer := l.lookup(m.addr)
	if m.kind != neighWant {
		return
	}
	// What the machine knows already it will not report.
	switch answer {
	case neigh.Found:
		l.publishOne(m.addr, mac)
	case neigh.Unreachable:
		l.tellFailed(m.addr, l.detourFailed(m.addr))
	}
}

// publish takes the machine's events.
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
			l.tellFailed(e.Addr, l.detourFailed(e.Addr))
		case neigh.Gone:
			l.unpublish(e.Addr)
		case neigh.Ready:
			l.ready(e.Addr)
		case neigh.Conflict:
			l.stack.tally.count(conflictCounter(e.Addr))
			l.stack.config.Log.Warn("another host uses our address", "interface", l.name, "address", e.Addr, "mac", e.MAC)
			l.conflict(e.Addr)
			l.duplicate(e.Addr)
		}
	}
}

// publishOne enters a neighbour into the table and has the shards send what
// waited for it.
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

// unpublish takes a neighbour out of the table.
func (l *ifaceLoop) unpublish(addr netip.Addr) {
	table := maps.Clone(*l.neighbours.Load())
	delete(table, addr)
	l.neighbours.Store(&table)
}

// tellFailed has the shards give up what waited for a next hop; they do not tell those who
// sent it if there is another way.
func (l *ifaceLoop) tellFailed(addr netip.Addr, another bool) {
	for _, sh := range l.stack.shards {
		sh.post(func(sh *shard) {
			if out := sh.knownLink(l.Interface); out != nil {
				out.failed(addr, another)
			}
		})
	}
}

// sendARP sends what the machine has to say.
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

// sendEthernet sends a frame of the interface's own, or drops it.
func (l *ifaceLoop) sendEthernet(dst wire.MAC, t wire.EtherType, f *link.Frame) {
	h := wire.Ethernet{Dst: dst, Src: l.mac, Type: t}
	h.Put(f.Prepend(wire.EthernetLen))
	l.sendFrame(f)
}

func (l *ifaceLoop) sendFrame(f *link.Frame) {
	if l.stack.linkConns.Load() != nil {
		l.stack.tapOutgoing(&l.stack.tally, l.Interface, f, nil)
	}
	if !l.ports[0].sendControl(f) {
		l.stack.tally.count(EthNoRoom)
	}
}

func (l *ifaceLoop) arm() {
	next := min(l.arp.Deadline(), l.ndp.Deadline(), l.leaseDeadline(), l.dhcpv6Deadline(), l.routersDeadline(), l.groupsDeadline(), l.redirects.Deadline())
	if next >= l.armed {
		return
	}
	l.armed = next
	l.timer.Reset(max(0, next-l.now))
}
