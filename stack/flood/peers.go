package flood

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/link"
)

// Peers are the IPv4 hosts that have completed a handshake most recently. The zero value is empty.
type Peers struct {
	mu    sync.Mutex // guards addrs
	addrs [link.MaxKnown]netip.Addr
	added atomic.Uint64 // number of addresses ever added, changed under mu
}

// holds reports whether the list still holds the address for which add returned place.
func (p *Peers) holds(place uint64) bool {
	return place != 0 && p.added.Load()-place < uint64(len(p.addrs))
}

// add stores an address instead of the oldest one, unless the list already holds it. It
// returns the address's place, a number that the method holds accepts.
func (p *Peers) add(addr netip.Addr) (place uint64) {
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

// List returns the addresses.
func (p *Peers) List() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]netip.Addr(nil), p.addrs[:min(p.added.Load(), uint64(len(p.addrs)))]...)
}
