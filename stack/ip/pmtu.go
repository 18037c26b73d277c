package ip

import (
	"net/netip"
	"time"

	"loam/internal/list"
)

// Path MTU discovery (RFC 1191, RFC 8201): what routers have said about the way to a
// destination, for ten minutes each. Then the destination is tried with the
// interface's MTU again (section 6.3).
//
// Whether a message is to be believed is for the owner to find out first: it must
// quote a packet that we have in flight (RFC 5927). Here it is only made sure
// that no message makes things worse than they can be: none raises an MTU, none
// lowers it below MinPathMTU, and the table is bounded.

// MinPathMTU is the least that is believed: what every host takes, which gives the
// segments of 536 bytes that TCP begins with where it knows nothing (RFC 9293 section
// 3.7.1). A path that is narrower needs fragments: see PathMTU.Narrow.
const MinPathMTU = 576

const (
	pathMTULifetime = 10 * time.Minute // RFC 1191 section 6.3
	maxPathMTUs     = 4096             // destinations; the least recently used gives way
)

// MinPathMTU6 is the least MTU of a link that carries IPv6 (RFC 8200 section 5). A
// message that speaks of less is ignored (RFC 8201 section 4).
const MinPathMTU6 = 1280

// PathMTU is what is known of a path.
type PathMTU struct {
	MTU    int  // largest packet in bytes
	Narrow bool // the path is narrower than MTU: do not forbid routers to fragment
}

// PathMTUCounters count messages by what became of them, since the beginning.
type PathMTUCounters struct {
	Learned     uint64 // lowered the MTU of a path
	Implausible uint64 // ignored: the packet was not longer than the MTU that it is said to exceed, or no link is so narrow
	Higher      uint64 // ignored: a lower MTU is known
	Evicted     uint64 // destinations that gave way to others
}

// PathMTUs is a table of paths by destination. The zero value is empty.
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

// Lookup returns what is known of the path to dst; ok is false if that is nothing.
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

// Learn takes in that a packet of length bytes to dst, header included, was too
// long for a router whose next link has the given MTU; 0 if it did not say (an old
// one: RFC 1191 section 5). It reports whether the MTU of the path is lower now.
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

// Expire forgets what is older than its time.
func (p *PathMTUs) Expire(now time.Duration) {
	for _, e := range p.table {
		if now >= e.expires {
			p.drop(e)
		}
	}
}

// Next is when there will be something to forget; ok is false if nothing is known.
func (p *PathMTUs) Next() (at time.Duration, ok bool) {
	for _, e := range p.table {
		if !ok || e.expires < at {
			at, ok = e.expires, true
		}
	}
	return at, ok
}

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

// plateaus are the MTUs of links that there are, or were: RFC 1191 table 7-1.
var plateaus = [...]int{32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68}

// Plateau guesses the MTU that a packet of length bytes did not fit through: the
// next lower one that is common.
func Plateau(length int) int {
	for _, mtu := range plateaus {
		if mtu < length {
			return mtu
		}
	}
	return plateaus[len(plateaus)-1]
}
