package ip

import (
	"net/netip"
	"time"

	"loam/internal/list"
)

// Path MTU discovery (RFC 1191, RFC 8201). The table keeps what routers have reported about the path to a
// destination, for ten minutes each. Then the MTU of the interface is tried again (RFC 1191 section 6.3).
//
// The owner must first decide whether to trust a message: it must quote a packet that is in flight (RFC
// 5927). This file only limits the damage of false messages: no message raises an MTU or lowers it below
// MinPathMTU, and the table is bounded.

// MinPathMTU is the smallest path MTU accepted from a router. Every host accepts packets of this size, which
// corresponds to TCP's default segment size of 536 bytes (RFC 9293 section 3.7.1). A narrower path needs
// fragmentation: see PathMTU.Narrow.
const MinPathMTU = 576

const (
	pathMTULifetime = 10 * time.Minute // time after which a larger MTU is tried again (RFC 1191 section 6.3)
	maxPathMTUs     = 4096             // maximum number of destinations; the least recently used one is evicted
)

// MinPathMTU6 is the smallest MTU of a link that carries IPv6 (RFC 8200 section 5). A message with a smaller
// MTU is ignored (RFC 8201 section 4).
const MinPathMTU6 = 1280

// PathMTU describes a path.
type PathMTU struct {
	MTU    int  // size of the largest packet in bytes
	Narrow bool // the path is narrower than MTU, so routers must be allowed to fragment
}

// PathMTUCounters count messages by result, since the creation of the table.
type PathMTUCounters struct {
	Learned     uint64 // messages that lowered the MTU of a path
	Implausible uint64 // messages ignored because the packet fits the reported MTU, or because no link has such a small MTU
	Higher      uint64 // messages ignored because a lower MTU is already known
	Evicted     uint64 // destinations evicted to make room
}

// PathMTUs is a table of path MTUs by destination. The zero value is empty.
type PathMTUs struct {
	table    map[netip.Addr]*pathEntry
	byUse    list.List[pathEntry]
	counters PathMTUCounters
}

type pathEntry struct {
	dst     netip.Addr
	path    PathMTU
	expires time.Duration
	use     list.Node[pathEntry]
}

// Counters returns the counters.
func (p *PathMTUs) Counters() PathMTUCounters { return p.counters }

// Lookup returns the entry for dst. ok is false if there is none.
func (p *PathMTUs) Lookup(now time.Duration, dst netip.Addr) (path PathMTU, ok bool) {
	e := p.table[dst]
	if e == nil {
		return path, false
	}
	if now >= e.expires {
		p.drop(e)
		return path, false
	}
	p.byUse.PushBack(&e.use)
	return e.path, true
}

// Learn records that a packet of length bytes to dst, including its header, exceeded the next-hop MTU of a
// router. mtu is 0 if an old router did not report it (RFC 1191 section 5). Learn reports whether it lowered
// the MTU of the path.
func (p *PathMTUs) Learn(now time.Duration, dst netip.Addr, mtu, length int) bool {
	if mtu == 0 {
		mtu = Plateau(length)
	}
	if mtu >= length || dst.Is6() && mtu < MinPathMTU6 {
		p.counters.Implausible++
		return false
	}
	path := PathMTU{MTU: mtu}
	if mtu < MinPathMTU {
		path = PathMTU{MinPathMTU, true}
	}
	old, known := p.Lookup(now, dst)
	if known && (old.MTU < path.MTU || old == path) {
		p.counters.Higher++
		return false
	}
	p.counters.Learned++
	p.store(now, dst, path)
	return true
}

// Expire removes expired entries.
func (p *PathMTUs) Expire(now time.Duration) {
	for _, e := range p.table {
		if now >= e.expires {
			p.drop(e)
		}
	}
}

// Next returns the time at which the next entry expires. ok is false if the table is empty.
func (p *PathMTUs) Next() (at time.Duration, ok bool) {
	for _, e := range p.table {
		if !ok || e.expires < at {
			at, ok = e.expires, true
		}
	}
	return at, ok
}

// store sets the entry for dst and restarts its lifetime. It evicts the least recently used entry if the
// table is full.
func (p *PathMTUs) store(now time.Duration, dst netip.Addr, path PathMTU) {
	e := p.table[dst]
	if e == nil {
		if len(p.table) >= maxPathMTUs {
			p.counters.Evicted++
			p.drop(p.byUse.Front())
		}
		e = &pathEntry{dst: dst}
		e.use.Owner = e
		if p.table == nil {
			p.table = make(map[netip.Addr]*pathEntry)
		}
		p.table[dst] = e
	}
	e.path, e.expires = path, now+pathMTULifetime
	p.byUse.PushBack(&e.use)
}

func (p *PathMTUs) drop(e *pathEntry) {
	e.use.Remove()
	delete(p.table, e.dst)
}

// plateaus are the MTUs of existing or historic link types: RFC 1191 table 7-1.
var plateaus = [...]int{32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68}

// Plateau guesses the MTU that a packet of length bytes exceeded: the next lower common MTU.
func Plateau(length int) int {
	for _, mtu := range plateaus {
		if mtu < length {
			return mtu
		}
	}
	return plateaus[len(plateaus)-1]
}
