package ip

import (
	"net/netip"
	"time"

	"loam/internal/list"
	"loam/wire"
)

// assembly is a datagram of which fragments have come.
type assembly struct {
	key      Key
	source   *source
	deadline time.Duration
	refused  bool
	buffer   Buffer // nil before the first fragment is stored, and when refused
	cost     int    // as counted in the source and the Reassembler
	pieces   pieces
	total    int // length of the payload, or unknown
	ecn      ecnSet
	hasFirst bool
	header   wire.IPv4 // of the first fragment, if hasFirst
	options  [wire.IPv4MaxLen - wire.IPv4MinLen]byte

	age, use, ofSource list.Node[assembly]
}

// source is what is held for one sender. It exists while that is something.
type source struct {
	addr  netip.Addr
	cost  int
	byUse list.List[assembly]
}

// unknown is the length of a payload whose last fragment has not come.
const unknown = -1

// assemblyCost is what an assembly takes besides its buffer: the struct and its
// share of two maps, rounded up.
const assemblyCost = 1024

// find returns the assembly of a datagram, a new one if need be, as the most
// recently used one.
func (r *Reassembler) find(now time.Duration, key Key) *assembly {
	a := r.table[key]
	if a == nil {
		a = r.start(now, key)
	}
	r.byUse.PushBack(&a.use)
	a.source.byUse.PushBack(&a.ofSource)
	return a
}

func (r *Reassembler) start(now time.Duration, key Key) *assembly {
	s := r.sources[key.Src]
	if s == nil {
		s = &source{addr: key.Src}
		r.sources[key.Src] = s
	}
	a := &assembly{key: key, source: s, deadline: now + r.cfg.Timeout, total: unknown}
	a.age.Owner, a.use.Owner, a.ofSource.Owner = a, a, a
	r.table[key] = a
	r.byAge.PushBack(&a.age)
	r.byUse.PushBack(&a.use)
	s.byUse.PushBack(&a.ofSource)
	r.charge(a, assemblyCost)
	return a
}

// keepHeader stores the header of the first fragment, which aliases its frame.
func (a *assembly) keepHeader(h *wire.IPv4) {
	a.hasFirst = true
	a.header = *h
	if len(h.Options) > 0 {
		a.header.Options = a.options[:copy(a.options[:], h.Options)]
	}
}

// makeRoom provides a buffer for the first n bytes of a's payload: for all of it
// if the length is known, and else for twice as much as before.
func (r *Reassembler) makeRoom(a *assembly, n int) bool {
	old := a.buffer
	if old != nil && n <= old.Cap() {
		old.Resize(max(n, len(old.Bytes())))
		return true
	}
	size := n
	if a.total != unknown {
		size = a.total
	} else if old != nil {
		size = min(max(n, 2*old.Cap()), wire.MaxIPv4)
	}
	a.buffer = r.cfg.Alloc(size)
	if old != nil {
		if a.buffer != nil {
			copy(a.buffer.Bytes(), old.Bytes())
		}
		old.Free()
	}
	if a.buffer == nil {
		return false
	}
	return r.charge(a, assemblyCost+a.buffer.Cap())
}

// charge sets a's cost. Others give way if the limits demand it; it reports
// whether the limits hold then.
func (r *Reassembler) charge(a *assembly, cost int) bool {
	r.cost += cost - a.cost
	a.source.cost += cost - a.cost
	a.cost = cost
	for a.source.cost > r.cfg.Source && a.source.byUse.Front() != a {
		r.evict(a.source.byUse.Front())
	}
	for r.cost > r.cfg.Memory && r.byUse.Front() != a {
		r.evict(r.byUse.Front())
	}
	return a.source.cost <= r.cfg.Source && r.cost <= r.cfg.Memory
}

func (r *Reassembler) evict(a *assembly) {
	r.counters.Evicted++
	r.drop(a)
}

// refuse gives up a datagram and counts why. Its place stays taken until its time
// is up, so that no later fragment begins it anew.
func (r *Reassembler) refuse(a *assembly, reason *uint64) {
	*reason++
	a.refused, a.hasFirst = true, false
	r.freeBuffer(a)
	r.charge(a, assemblyCost)
}

func (r *Reassembler) freeBuffer(a *assembly) {
	if a.buffer != nil {
		a.buffer.Free()
		a.buffer = nil
	}
}

// drop forgets a datagram.
func (r *Reassembler) drop(a *assembly) {
	r.freeBuffer(a)
	r.cost -= a.cost
	a.source.cost -= a.cost
	a.age.Remove()
	a.use.Remove()
	a.ofSource.Remove()
	delete(r.table, a.key)
	if a.source.byUse.Len() == 0 {
		delete(r.sources, a.source.addr)
	}
}
