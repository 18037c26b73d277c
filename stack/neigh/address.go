package neigh

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// Our own addresses: IPv4 address conflict detection (RFC 5227).
//
//	Add --> probing --> announcing --> settled
//	           |            |             |
//	        conflict     conflict: announce once more;
//	           |         another within 10 s: report
//	           v
//	        removed, reported
//
// Only in probing, the address is not ours yet: it answers nothing and is not used as a source. Without
// detection, an address begins in announcing. After a reported conflict, the owner decides whether to Delete
// the address or keep it (RFC 5227 section 2.4 allows either).

// Constants of RFC 5227 section 1.1.
const (
	probeWait        = 1 * time.Second // maximum delay of the first probe
	probeCount       = 3
	probeMin         = 1 * time.Second
	probeMax         = 2 * time.Second
	announceWait     = 2 * time.Second // time between the last probe and the first announcement
	announceCount    = 2
	announceInterval = 2 * time.Second
	defendInterval   = 10 * time.Second
)

type phase uint8

const (
	probing phase = iota
	announcing
	settled
)

// address is one of our own addresses.
type address struct {
	prefix    netip.Prefix // own address with the prefix length of its subnet
	phase     phase
	left      int           // number of packets still to send in this phase
	next      time.Duration // time at which the next packet is due, or at which the phase ends
	pending   bool          // a packet must be sent now
	contested bool          // another host has used the address, last at lastTime
	lastTime  time.Duration
	reported  bool // the conflict at lastTime was reported to the owner
}

// Add starts to use the address of p, which includes the prefix length of the subnet. A Ready event reports
// when the address can be used: at once, or with detection after about six seconds, unless a Conflict occurs.
// Adding an existing address has no effect.
func (a *ARP) Add(now time.Duration, p netip.Prefix) {
	if a.find(p.Addr()) != nil {
		return
	}
	own := address{prefix: p, phase: probing, left: probeCount, next: now + a.between(0, probeWait)}
	if !a.detect {
		own = address{prefix: p, phase: announcing, left: announceCount, next: now}
		a.emit(Ready, p.Addr(), a.mac)
	}
	a.own = append(a.own, own)
	a.advanceAddresses(now)
}

// Delete stops using an address.
func (a *ARP) Delete(addr netip.Addr) {
	a.own = slices.DeleteFunc(a.own, func(own address) bool { return own.prefix.Addr() == addr })
}

func (a *ARP) find(addr netip.Addr) *address {
	for i := range a.own {
		if a.own[i].prefix.Addr() == addr {
			return &a.own[i]
		}
	}
	return nil
}

// usable returns the address if it exists and is not being probed.
func (a *ARP) usable(addr netip.Addr) *address {
	if own := a.find(addr); own != nil && own.phase != probing {
		return own
	}
	return nil
}

// onLink reports whether addr is in the subnet of one of our addresses.
func (a *ARP) onLink(addr netip.Addr) bool {
	return slices.ContainsFunc(a.own, func(own address) bool {
		return own.phase != probing && own.prefix.Contains(addr)
	})
}

// source returns the sender address for a request for target: an own address in the same subnet, or else any own address.
func (a *ARP) source(target netip.Addr) (source netip.Addr, ok bool) {
	for _, own := range a.own {
		if own.phase == probing {
			continue
		}
		if own.prefix.Contains(target) {
			return own.prefix.Addr(), true
		}
		if !ok {
			source, ok = own.prefix.Addr(), true
		}
	}
	return source, ok
}

// addressDeadline returns when advanceAddresses must be called, or Never.
func (a *ARP) addressDeadline() time.Duration {
	next := Never
	for _, own := range a.own {
		if !own.pending {
			next = min(next, own.next)
		}
	}
	return next
}

// advanceAddresses marks the packets that are due, and emits Ready for addresses that have passed their
// probes.
func (a *ARP) advanceAddresses(now time.Duration) {
	for i := range a.own {
		own := &a.own[i]
		if own.pending || now < own.next {
			continue
		}
		if own.phase == probing && own.left == 0 {
			own.phase, own.left = announcing, announceCount
			a.emit(Ready, own.prefix.Addr(), a.mac)
		}
		own.pending = true
	}
}

// pollAddresses stores a due probe or announcement in p. Each is an ARP request for the address itself. A probe has no
// sender address, so that it does not change the caches of other hosts.
func (a *ARP) pollAddresses(now time.Duration, p *wire.ARP) bool {
	for i := range a.own {
		own := &a.own[i]
		if !own.pending {
			continue
		}
		own.pending = false
		addr := own.prefix.Addr()
		*p = wire.ARP{Op: wire.ARPRequest, SenderMAC: a.mac, SenderIP: addr, TargetIP: addr}
		if own.phase == probing {
			p.SenderIP = netip.IPv4Unspecified()
		}
		a.sent(now, own)
		return true
	}
	return false
}

// sent schedules the next packet or phase of an own address after one of its packets has
// been sent.
func (a *ARP) sent(now time.Duration, own *address) {
	own.left = max(0, own.left-1)
	switch {
	case own.phase == probing && own.left > 0:
		own.next = now + a.between(probeMin, probeMax)
	case own.phase == probing:
		own.next = now + announceWait
	case own.left > 0:
		own.next = now + announceInterval
	default:
		own.phase, own.next = settled, Never
	}
}

// contested processes a packet whose sender uses or probes an address of ours. It returns true for such a packet. The caller
// must then not update the cache from the packet.
func (a *ARP) contested(now time.Duration, p wire.ARP) bool {
	own := a.find(p.SenderIP)
	if own == nil && p.SenderIP.IsUnspecified() && p.Op == wire.ARPRequest {
		// Both hosts probe for the same address at the same time (RFC 5227 section 2.1.1).
		if own = a.find(p.TargetIP); own != nil && own.phase != probing {
			own = nil
		}
	}
	if own == nil {
		return false
	}
	a.packets.Conflicts++
	addr := own.prefix.Addr()
	if own.phase == probing {
		a.emit(Conflict, addr, p.SenderMAC)
		a.Delete(addr)
		return true
	}
	again := own.contested && now-own.lastTime < defendInterval
	own.contested, own.lastTime = true, now
	switch {
	case !again:
		own.reported = false
		own.pending = true
		a.packets.Defended++
	case !own.reported:
		own.reported = true
		a.emit(Conflict, addr, p.SenderMAC)
	}
	return true
}

// between returns a random time from lo to hi.
func (a *ARP) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(a.random.Int64N(int64(hi-lo)+1))
}
