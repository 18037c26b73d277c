package neigh

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// NDP is the Cache of an Ethernet interface together with the addresses of its own,
// spoken for by Neighbor Discovery (RFC 4861 section 7), the IPv6 counterpart of ARP.
// Like the Cache in it, it is polled after every call: Event, then Poll.
//
// A new address is tentative until a solicitation for it has gone unanswered
// (duplicate address detection, RFC 4862 section 5.4):
//
//	Add --> tentative --- RetransTimer after the solicitation ---> Ready
//	            |
//	   somebody has it, or is looking for it, too
//	            |
//	      gone, Conflict
//
// A tentative address answers nothing, and nothing is asked from it. One that is optimistic
// meanwhile (RFC 4429) answers, in words that change nobody's mind, and nothing is asked from
// it either: questions wait until there is an address to ask from. Once an address is ours,
// whoever else claims it is reported, and we stay.
type NDP struct {
	*Cache
	mac     wire.MAC
	router  bool // we are one, and say so
	own     []ownAddress
	answers messageQueue
	packets NDPCounters
}

// NDPConfig configures an NDP.
type NDPConfig struct {
	Config
	MAC wire.MAC // of the interface
}

// NDPCounters count messages by what became of them, since the beginning.
type NDPCounters struct {
	Solicitations  uint64 // received
	Advertisements uint64 // received
	Bad            uint64 // dropped: addresses that do not go together
	Conflicts      uint64 // messages of others that claim an address of ours
	Answered       uint64 // solicitations for our addresses, answered
	Unsaid         uint64 // answers not sent: too many at once
	NoSource       uint64 // questions not sent: no address of our own to ask from
}

// Message is a message of Neighbor Discovery with what is around it.
type Message struct {
	wire.Neighbor
	Src, Dst netip.Addr // of the IP packet
	MAC      wire.MAC   // received: the station that it came from; sent: the one that it goes to
}

// ownAddress is an address of ours.
type ownAddress struct {
	prefix netip.Prefix  // the address with the length of its subnet
	trial  Trial         // Untried: it is ours
	asked  bool          // on trial: the solicitation has gone out
	due    bool          // on trial: it is to go out
	next   time.Duration // on trial: when it does, or when the address is ours

	contested bool // another host has claimed it, at lastTime
	lastTime  time.Duration
}

// Trial says what an address may do before it is known that no other host has it.
type Trial uint8

// Trials.
const (
	Untried    Trial = iota // everything: nobody is asked
	Tentative               // nothing (RFC 4862)
	Optimistic              // what changes no entry of a neighbour's (RFC 4429)
)

var (
	allNodes = netip.IPv6LinkLocalAllNodes()
	nobody   = netip.IPv6Unspecified()
)

// maxDetectDelay is MAX_RTR_SOLICITATION_DELAY, the most that the first message of an
// interface is put off by (RFC 4862 section 5.4.2).
const maxDetectDelay = time.Second

// NewNDP returns the machine of an interface that has no address yet.
func NewNDP(cfg NDPConfig) *NDP {
	if cfg.Lock == 0 {
		cfg.Lock = 1 // the Override flag says what is to be believed
	}
	return &NDP{Cache: NewCache(cfg.Config), mac: cfg.MAC}
}

// NDPCounters returns the counters of messages; those of the table are Counters.
func (n *NDP) NDPCounters() NDPCounters { return n.packets }

// SetRouter has advertisements say that we are a router.
func (n *NDP) SetRouter() { n.router = true }

// Add begins to use the address of p, whose length is that of the subnet. A Ready
// event says when it is ours: at once, or after its trial, a second when it is optimistic
// (RFC 4429 section 3.3: the question is not put off), else up to two, unless there is a
// Conflict. Adding what is there changes nothing.
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

// Deadline is when Advance has to be called, Never if not.
func (n *NDP) Deadline() time.Duration {
	next := n.Cache.Deadline()
	for i := range n.own {
		next = min(next, n.own[i].next)
	}
	return next
}

// Advance does what is due.
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

// Receive takes in a message, which was sent with a hop limit of 255 and a right
// checksum.
func (n *NDP) Receive(now time.Duration, m *Message) {
	if m.Advertisement {
		n.packets.Advertisements++
		n.advertised(now, m)
		return
	}
	n.packets.Solicitations++
	n.solicited(now, m)
}

// solicited takes in a solicitation (section 7.2.3).
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

// answer sends an advertisement (section 7.2.4), which overrides what others say if the
// address is ours for sure. Who asks without saying where it is is answered to where the
// question came from.
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

// duplicate gives an address on trial up.
func (n *NDP) duplicate(a *ownAddress, by wire.MAC) {
	n.packets.Conflicts++
	addr := a.prefix.Addr()
	n.Delete(addr)
	n.emit(Conflict, addr, by)
}

// advertised takes in an advertisement (section 7.2.5).
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
	if mac.IsZero() { // the answer to a question to one host may leave it out
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

// claimed is advertised for an address of ours. Who goes on claiming it is reported once: claims
// within defendInterval of one another are one conflict, as with ARP.
func (n *NDP) claimed(now time.Duration, a *ownAddress, m *Message) {
	switch {
	case m.MAC == n.mac: // our own message came back
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

// Poll writes the next message to send to m; it returns false when there is none.
// What it returns counts as sent now.
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

// question is a solicitation for target: to mac, or to all that may be it if mac is
// zero (section 7.2.2).
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

// hopeful reports whether there is no address to ask from but will be, when a trial ends
// well: packets wait for that (RFC 4429 section 3.2).
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

// source is the address to ask for target from: one of its subnet, else any.
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

// messageQueue holds answers until they are polled, as many as may come in between.
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
