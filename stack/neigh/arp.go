package neigh

import (
	"net/netip"
	"time"

	"loam/wire"
)

// ARP is the Cache of an Ethernet interface together with the addresses of its
// own, spoken for by ARP (RFC 826). Like the Cache in it, it is polled after
// every call: Event, then Poll.
type ARP struct {
	*Cache
	mac     wire.MAC
	detect  bool
	any     bool
	own     []address
	replies replyQueue
	packets ARPCounters
}

// ARPConfig configures an ARP.
type ARPConfig struct {
	Config
	MAC    wire.MAC // of the interface
	Detect bool     // probe for an address before it is used (RFC 5227 section 2.1)
	Any    bool     // answer for every address that is not the asker's own (proxy ARP, RFC 1027)
}

// ARPCounters count packets by what became of them, since the beginning.
type ARPCounters struct {
	Requests  uint64 // received
	Replies   uint64 // received
	BadSender uint64 // dropped: the sender's MAC or IP address cannot be one host's
	Own       uint64 // dropped: our own packet came back
	Conflicts uint64 // packets of others that claim an address of ours
	Defended  uint64 // announcements that answered a conflict
	Answered  uint64 // requests for our addresses, answered
	Unsaid    uint64 // replies not sent: too many at once
	NoSource  uint64 // questions not sent: no address of our own to ask from
}

// NewARP returns the machine of an interface that has no address yet.
func NewARP(cfg ARPConfig) *ARP {
	return &ARP{Cache: NewCache(cfg.Config), mac: cfg.MAC, detect: cfg.Detect, any: cfg.Any}
}

// ARPCounters returns the counters of packets; those of the table are Counters.
func (a *ARP) ARPCounters() ARPCounters { return a.packets }

// Deadline is when Advance has to be called, Never if not.
func (a *ARP) Deadline() time.Duration {
	return min(a.Cache.Deadline(), a.addressDeadline())
}

// Advance does what is due.
func (a *ARP) Advance(now time.Duration) {
	a.Cache.Advance(now)
	a.advanceAddresses(now)
}

// Receive takes in a packet. The order is that of RFC 826, "Packet reception",
// with the checks of RFC 5227 in front.
func (a *ARP) Receive(now time.Duration, p wire.ARP) {
	if p.Op == wire.ARPRequest {
		a.packets.Requests++
	} else {
		a.packets.Replies++
	}
	switch {
	case p.SenderMAC == a.mac:
		a.packets.Own++
		return
	case !oneHost(p.SenderMAC, p.SenderIP):
		a.packets.BadSender++
		return
	case a.contested(now, p):
		return
	}
	forUs := a.speaksFor(p)
	if !p.SenderIP.IsUnspecified() { // unspecified: a probe, which claims nothing
		a.Learn(now, p.SenderIP, p.SenderMAC, a.evidence(p, forUs))
	}
	if forUs && p.Op == wire.ARPRequest {
		a.answer(p)
	}
}

// oneHost reports whether ip at mac can be a host, or a probe's empty sender.
func oneHost(mac wire.MAC, ip netip.Addr) bool {
	limited := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return !mac.IsZero() && !mac.IsMulticast() && !ip.IsMulticast() && !ip.IsLoopback() && ip != limited
}

// speaksFor reports whether we stand for the target of p. A probe and an
// announcement are about the sender's own address, which nobody else has.
func (a *ARP) speaksFor(p wire.ARP) bool {
	if a.usable(p.TargetIP) != nil {
		return true
	}
	return a.any && !p.SenderIP.IsUnspecified() && p.TargetIP != p.SenderIP
}

func (a *ARP) evidence(p wire.ARP, forUs bool) Evidence {
	switch {
	case !forUs:
		return Heard
	case p.Op == wire.ARPReply:
		return Answered
	case a.onLink(p.SenderIP):
		return Asked
	}
	return Heard
}

func (a *ARP) answer(p wire.ARP) {
	reply := wire.ARP{
		Op:        wire.ARPReply,
		SenderMAC: a.mac, SenderIP: p.TargetIP,
		TargetMAC: p.SenderMAC, TargetIP: p.SenderIP,
	}
	if !a.replies.push(reply) {
		a.packets.Unsaid++
	}
}

// Poll writes the next packet to send to p, and where to send it to dst; it
// returns false when there is none. What it returns counts as sent now.
func (a *ARP) Poll(now time.Duration, p *wire.ARP, dst *wire.MAC) bool {
	if reply, ok := a.replies.pop(); ok {
		a.packets.Answered++
		*p, *dst = reply, reply.TargetMAC
		return true
	}
	if a.pollAddresses(now, p) {
		*dst = wire.Broadcast
		return true
	}
	for {
		target, mac, ok := a.Solicit(now)
		if !ok {
			return false
		}
		source, ok := a.source(target)
		if !ok {
			a.packets.NoSource++
			continue
		}
		*p = wire.ARP{Op: wire.ARPRequest, SenderMAC: a.mac, SenderIP: source, TargetIP: target}
		if *dst = mac; mac.IsZero() {
			*dst = wire.Broadcast
		}
		return true
	}
}

// replyQueue holds replies until they are polled, as many as may come in between.
type replyQueue struct {
	reply        [64]wire.ARP
	first, count int
}

func (q *replyQueue) push(p wire.ARP) bool {
	if q.count == len(q.reply) {
		return false
	}
	q.reply[(q.first+q.count)%len(q.reply)] = p
	q.count++
	return true
}

func (q *replyQueue) pop() (p wire.ARP, ok bool) {
	if q.count == 0 {
		return p, false
	}
	p = q.reply[q.first]
	q.first = (q.first + 1) % len(q.reply)
	q.count--
	return p, true
}

// MulticastMAC is where an IPv4 multicast group is on Ethernet: its lower 23
// bits behind 01:00:5e (RFC 1112 section 6.4). It needs no asking.
func MulticastMAC(group netip.Addr) wire.MAC {
	g := group.As4()
	return wire.MAC{0x01, 0x00, 0x5e, g[1] & 0x7f, g[2], g[3]}
}
