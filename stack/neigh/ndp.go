package neigh

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// NDP is the neighbour Cache and the own addresses of an Ethernet interface for IPv6, with Neighbour
// Discovery (RFC 4861 section 7). It is the counterpart of ARP. After every call, the owner calls Event and
// then Poll until both return false.
//
// A new address is tentative until a solicitation for it has gone unanswered (duplicate address detection,
// RFC 4862 section 5.4):
//
//	Add --> tentative --- RetransTimer after the solicitation ---> Ready
//	            |
//	   another host has it, or is testing it, too
//	            |
//	      removed, Conflict
//
// A tentative address answers no solicitations and is not used as a source of solicitations. An optimistic
// address (RFC 4429) answers, but its answers do not override the caches of neighbours. It is not used as a
// source either: solicitations wait until an address is usable. Once an address is ours, a conflicting claim
// is reported, and we keep the address.
type NDP struct {
	*Cache
	mac     wire.MAC
	router  bool // we are a router, and our advertisements have the flag R
	own     []ownAddress
	answers messageQueue
	packets NDPCounters
}

// NDPConfig configures an NDP.
type NDPConfig struct {
	Config
	MAC wire.MAC // MAC address of the interface
}

// NDPCounters count messages by result since the creation of the NDP.
type NDPCounters struct {
	Solicitations  uint64 // solicitations received
	Advertisements uint64 // advertisements received
	Bad            uint64 // messages dropped because their addresses are inconsistent
	Conflicts      uint64 // messages of other hosts that claim an address of ours
	Answered       uint64 // solicitations for our addresses that were answered
	Unsaid         uint64 // answers not sent because the queue was full
	NoSource       uint64 // solicitations not sent because no own address could be the source
}

// Message is a Neighbour Discovery message with its addresses.
type Message struct {
	wire.Neighbor
	Src, Dst netip.Addr // source and destination addresses of the IP packet
	MAC      wire.MAC   // link-layer address: of the sender for a received message, of the destination for a sent one
}

// ownAddress is one of our own addresses.
type ownAddress struct {
	prefix netip.Prefix  // own address with the prefix length of its subnet
	trial  Trial         // state of duplicate address detection; Untried: the address is in use
	asked  bool          // during the trial: the solicitation was sent
	due    bool          // during the trial: the solicitation is due now
	next   time.Duration // during the trial: time of the solicitation, and then time at which the address becomes ours

	contested bool // another host has claimed the address, last at lastTime
	lastTime  time.Duration
}

// Trial restricts the use of an address until it is known to be unique.
type Trial uint8

// Values of Trial.
const (
	Untried    Trial = iota // the address is used without restriction and without a test
	Tentative               // the address is not used at all during the test (RFC 4862)
	Optimistic              // the address is used during the test, but without changing the caches of neighbours (RFC 4429)
)

var (
	allNodes = netip.IPv6LinkLocalAllNodes()
	nobody   = netip.IPv6Unspecified()
)

// maxDetectDelay is MAX_RTR_SOLICITATION_DELAY, the maximum delay of the first message of an interface (RFC
// 4862 section 5.4.2).
const maxDetectDelay = time.Second

// NewNDP returns the NDP of an interface that has no addresses yet.
func NewNDP(cfg NDPConfig) *NDP {
	if cfg.Lock == 0 {
		cfg.Lock = 1 // practically no lock: the Override flag of a message decides
	}
	return &NDP{Cache: NewCache(cfg.Config), mac: cfg.MAC}
}

// NDPCounters returns the message counters. Counters returns the counters of the table.
func (n *NDP) NDPCounters() NDPCounters { return n.packets }

// SetRouter sets the flag R (router) in our advertisements.
func (n *NDP) SetRouter() { n.router = true }

// Add starts to use the address of p, which includes the prefix length of the subnet. A Ready event reports
// when it is ours, unless there is a Conflict. That is at once for Untried, after one second for Optimistic
// (RFC 4429 section 3.3: the solicitation is not delayed), and after up to two seconds for Tentative. Adding
// an existing address has no effect.
func (n *NDP) Add(now time.Duration, p netip.Prefix, trial Trial) {
	if n.find(p.Addr()) != nil {
		return
	}
	a := ownAddress{prefix: p, trial: trial, next: Never}
	switch trial {
	case Untried:
		n.emit(Ready, p.Addr(), n.mac)
	case Tentative:
		a.next = now + time.Duration(n.random.Int64N(int64(maxDetectDelay)))
	case Optimistic:
		a.due = true
	}
	n.own = append(n.own, a)
}

// Delete stops using an address.
func (n *NDP) Delete(addr netip.Addr) {
	n.own = slices.DeleteFunc(n.own, func(a ownAddress) bool { return a.prefix.Addr() == addr })
}

func (n *NDP) find(addr netip.Addr) *ownAddress {
	for i := range n.own {
		if n.own[i].prefix.Addr() == addr {
			return &n.own[i]
		}
	}
	return nil
}

// Deadline returns when Advance must be called, or Never.
func (n *NDP) Deadline() time.Duration {
	next := n.Cache.Deadline()
	for i := range n.own {
		next = min(next, n.own[i].next)
	}
	return next
}

// Advance runs the timers that have expired.
func (n *NDP) Advance(now time.Duration) {
	n.Cache.Advance(now)
	for i := range n.own {
		a := &n.own[i]
		switch {
		case now < a.next:
		case a.asked:
			a.trial, a.next = Untried, Never
			n.emit(Ready, a.prefix.Addr(), n.mac)
		default:
			a.due, a.next = true, Never
		}
	}
}

// Receive processes a message. The caller has verified the hop limit of 255 and the checksum.
func (n *NDP) Receive(now time.Duration, m *Message) {
	if m.Advertisement {
		n.packets.Advertisements++
		n.advertised(now, m)
		return
	}
	n.packets.Solicitations++
	n.solicited(now, m)
}

// solicited processes a solicitation (RFC 4861 section 7.2.3).
func (n *NDP) solicited(now time.Duration, m *Message) {
	detecting := m.Src.IsUnspecified()
	if m.Src.IsMulticast() || detecting && (!m.LinkAddr.IsZero() || m.Dst != wire.SolicitedNode(m.Target)) {
		n.packets.Bad++
		return
	}
	a := n.find(m.Target)
	switch {
	case a == nil:
		return
	case a.trial != Untried && detecting && m.MAC != n.mac:
		n.duplicate(a, m.MAC)
		return
	case a.trial == Tentative || detecting && m.MAC == n.mac:
		return
	}
	if !detecting && !m.LinkAddr.IsZero() {
		n.Learn(now, m.Src, m.LinkAddr, Asked)
	}
	n.answer(m, a.trial == Untried)
}

// answer queues an advertisement (RFC 4861 section 7.2.4). override sets the Override flag, for an address that is
// certainly ours. If the solicitation has no link-layer option, the answer goes to the station that sent it.
func (n *NDP) answer(m *Message, override bool) {
	reply := Message{Neighbor: wire.Neighbor{Advertisement: true, Target: m.Target, LinkAddr: n.mac, Router: n.router, Solicited: true, Override: override}, Src: m.Target, Dst: m.Src, MAC: m.LinkAddr}
	switch {
	case m.Src.IsUnspecified():
		reply.Solicited, reply.Dst, reply.MAC = false, allNodes, wire.MulticastMAC6(allNodes)
	case m.LinkAddr.IsZero():
		reply.MAC = m.MAC
	}
	if !n.answers.push(reply) {
		n.packets.Unsaid++
	}
}

// duplicate removes an address on trial that another host has.
func (n *NDP) duplicate(a *ownAddress, by wire.MAC) {
	n.packets.Conflicts++
	addr := a.prefix.Addr()
	n.Delete(addr)
	n.emit(Conflict, addr, by)
}

// advertised processes an advertisement (RFC 4861 section 7.2.5).
func (n *NDP) advertised(now time.Duration, m *Message) {
	if m.Dst.IsMulticast() && m.Solicited {
		n.packets.Bad++
		return
	}
	if a := n.find(m.Target); a != nil {
		n.claimed(now, a, m)
		return
	}
	e := n.table[m.Target]
	mac := m.LinkAddr
	if mac.IsZero() { // a neighbour may omit its link-layer address in the answer to a unicast solicitation
		if e == nil || e.mac.IsZero() {
			return
		}
		mac = e.mac
	}
	if e != nil && !m.Override && e.mac != mac && !e.mac.IsZero() {
		if e.state == Reachable {
			n.enter(now, e, Stale)
		}
		return
	}
	evidence := Heard
	if m.Solicited {
		evidence = Answered
	}
	n.Learn(now, m.Target, mac, evidence)
}

// claimed processes an advertisement for an address of ours. A persistent claim is reported once: claims
// within defendInterval of one another count as one conflict, as with ARP.
func (n *NDP) claimed(now time.Duration, a *ownAddress, m *Message) {
	switch {
	case m.MAC == n.mac: // we have sent this message ourselves
	case a.trial != Untried:
		n.duplicate(a, m.MAC)
	default:
		n.packets.Conflicts++
		again := a.contested && now-a.lastTime < defendInterval
		a.contested, a.lastTime = true, now
		if !again {
			n.emit(Conflict, a.prefix.Addr(), m.MAC)
		}
	}
}

// Poll writes the next message to m. It returns false if there is none. The message counts as sent now.
func (n *NDP) Poll(now time.Duration, m *Message) bool {
	if reply, ok := n.answers.pop(); ok {
		n.packets.Answered++
		*m = reply
		return true
	}
	for i := range n.own {
		if a := &n.own[i]; a.due {
			a.due, a.asked, a.next = false, true, now+n.cfg.Retransmit
			*m = n.question(a.prefix.Addr(), nobody, wire.MAC{})
			return true
		}
	}
	if n.hopeful() {
		return false
	}
	for {
		target, mac, ok := n.Solicit(now)
		if !ok {
			return false
		}
		if source, ok := n.source(target); ok {
			*m = n.question(target, source, mac)
			return true
		}
		n.packets.NoSource++
	}
}

// question returns a solicitation for target. It is addressed to mac, or to the solicited-node group if mac is zero
// (RFC 4861 section 7.2.2).
func (n *NDP) question(target, source netip.Addr, mac wire.MAC) Message {
	m := Message{Neighbor: wire.Neighbor{Target: target, LinkAddr: n.mac}, Src: source, Dst: target, MAC: mac}
	if mac.IsZero() {
		m.Dst = wire.SolicitedNode(target)
		m.MAC = wire.MulticastMAC6(m.Dst)
	}
	if source == nobody {
		m.LinkAddr = wire.MAC{}
	}
	return m
}

// hopeful reports whether no own address can be a source yet, but an optimistic address may become usable. Packets wait for
// it (RFC 4429 section 3.2).
func (n *NDP) hopeful() bool {
	hopeful := false
	for i := range n.own {
		switch n.own[i].trial {
		case Untried:
			return false
		case Optimistic:
			hopeful = true
		}
	}
	return hopeful
}

// source returns the source address for a solicitation for target: an own address in the same subnet, or else any own
// address.
func (n *NDP) source(target netip.Addr) (source netip.Addr, ok bool) {
	for i := range n.own {
		a := &n.own[i]
		if a.trial != Untried {
			continue
		}
		if a.prefix.Contains(target) {
			return a.prefix.Addr(), true
		}
		if !ok {
			source, ok = a.prefix.Addr(), true
		}
	}
	return source, ok
}

// messageQueue holds answers until Poll returns them. Its size limits the number of answers between two calls of Poll.
type messageQueue struct {
	message      [64]Message
	first, count int
}

func (q *messageQueue) push(m Message) bool {
	if q.count == len(q.message) {
		return false
	}
	q.message[(q.first+q.count)%len(q.message)] = m
	q.count++
	return true
}

func (q *messageQueue) pop() (m Message, ok bool) {
	if q.count == 0 {
		return m, false
	}
	m = q.message[q.first]
	q.first = (q.first + 1) % len(q.message)
	q.count--
	return m, true
}
