package neigh

import (
	"net/netip"
	"time"

	"loam/wire"
)

// ARP is the neighbour Cache and the own addresses of an Ethernet interface for IPv4, with the protocol of
// RFC 826. After every call, the owner calls Event and then Poll until both return false.
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
	MAC    wire.MAC // MAC address of the interface
	Detect bool     // probe for an own address before it is used (RFC 5227 section 2.1)
	Any    bool     // answer for every address except the sender's own (proxy ARP, RFC 1027)
}

// ARPCounters count packets by result since the creation of the ARP.
type ARPCounters struct {
	Requests  uint64 // requests received
	Replies   uint64 // replies received
	BadSender uint64 // packets dropped because the sender's MAC or IP address cannot belong to a single host
	Own       uint64 // packets dropped because we have sent them ourselves
	Conflicts uint64 // packets of other hosts that claim an address of ours
	Defended  uint64 // announcements sent in response to a conflict
	Answered  uint64 // requests for our addresses that were answered
	Unsaid    uint64 // replies not sent because the queue was full
	NoSource  uint64 // requests not sent because the interface has no address for the sender field
}

// NewARP returns the ARP of an interface that has no addresses yet.
func NewARP(cfg ARPConfig) *ARP {
	return &ARP{Cache: NewCache(cfg.Config), mac: cfg.MAC, detect: cfg.Detect, any: cfg.Any}
}

// ARPCounters returns the packet counters. Counters returns the counters of the table.
func (a *ARP) ARPCounters() ARPCounters { return a.packets }

// Deadline returns when Advance must be called, or Never.
func (a *ARP) Deadline() time.Duration {
	return min(a.Cache.Deadline(), a.addressDeadline())
}

// Advance runs the timers that have expired.
func (a *ARP) Advance(now time.Duration) {
	a.Cache.Advance(now)
	a.advanceAddresses(now)
}

// Receive processes a packet in the order of RFC 826, "Packet reception", after the checks of RFC 5227.
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
	if !p.SenderIP.IsUnspecified() { // an unspecified sender address means a probe, which does not map an address
		a.Learn(now, p.SenderIP, p.SenderMAC, a.evidence(p, forUs))
	}
	if forUs && p.Op == wire.ARPRequest {
		a.answer(p)
	}
}

// oneHost reports whether a host can have the address ip and the MAC mac. ip may be unspecified, as in a probe.
func oneHost(mac wire.MAC, ip netip.Addr) bool {
	limited := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return !mac.IsZero() && !mac.IsMulticast() && !ip.IsMulticast() && !ip.IsLoopback() && ip != limited
}

// speaksFor reports whether we answer for the target address of p. A proxy does not answer probes and announcements, whose
// target is the sender's own address.
func (a *ARP) speaksFor(p wire.ARP) bool {
	if a.usable(p.TargetIP) != nil {
		return true
	}
	return a.any && !p.SenderIP.IsUnspecified() && p.TargetIP != p.SenderIP
}

// evidence returns how reliably p shows the MAC of its sender. A request from another subnet counts only as overheard.
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

// answer queues a reply to the request p.
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

// Poll writes the next packet to p and its destination to dst. It returns false if there is none. The packet
// counts as sent now.
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

// replyQueue holds replies until Poll returns them. Its size limits the number of replies between two calls of Poll.
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

// MulticastMAC returns the Ethernet address of an IPv4 multicast group: 01:00:5e followed by the lower 23 bits of the group
// (RFC 1112 section 6.4). Groups need no resolution.
func MulticastMAC(group netip.Addr) wire.MAC {
	g := group.As4()
	return wire.MAC{0x01, 0x00, 0x5e, g[1] & 0x7f, g[2], g[3]}
}
