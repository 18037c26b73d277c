package ip

import (
	"net/netip"
	"time"

	"loam/internal/list"
	"loam/wire"
)

// assembly is a partly received datagram.
type assembly struct {
	key      Key
	source   *source
	deadline time.Duration
	refused  bool
	buffer   Buffer // nil before the first fragment is stored, and after the datagram was refused
	cost     int    // number of bytes by which this datagram increases the costs of its source and of the Reassembler
	pieces   pieces
	total    int // length of the payload in bytes; unknown until the last fragment arrives
	ecn      ecnSet
	hasFirst bool
	header   wire.IPv4 // header of the first fragment; valid if hasFirst is set
	options  [wire.IPv4MaxLen - wire.IPv4MinLen]byte

	age, use, ofSource list.Node[assembly]
}

// source records the memory that is held for datagrams of one sender. It exists while it holds any.
type source struct {
	addr  netip.Addr
	cost  int
	byUse list.List[assembly]
}

// unknown is the total of a payload whose last fragment has not arrived.
const unknown = -1

// assemblyCost is the cost of an assembly in bytes in addition to its buffer: the struct and its share of two maps, rounded
// up.
const assemblyCost = 1024

// find returns the assembly of a datagram and makes it the most recently used one. It creates the assembly if
// necessary.
func (r *Reassembler) find(now time.Duration, key Key) *assembly {
	a := r.table[key]
	if a == nil {
		a = r.start(now, key)
	}
	r.byUse.PushBack(&a.use)
	a.source.byUse.PushBack(&a.ofSource)
	return a
}

// start creates an assembly, and a source if this is the first assembly of its sender.
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

// keepHeader copies the header of the first fragment, because the header aliases its frame.
func (a *assembly) keepHeader(h *wire.IPv4) {
	a.hasFirst = true
	a.header = *h
	if len(h.Options) > 0 {
		a.header.Options = a.options[:copy(a.options[:], h.Options)]
	}
}

// makeRoom provides a buffer for at least the first n bytes of the payload of a. If the length of the payload is known, the
// buffer is large enough for all of it; otherwise it is twice as large as before.
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

// charge sets the cost of a and evicts other assemblies if a limit is exceeded. It reports whether the limits
// then hold.
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

// refuse rejects the datagram of a and increments the counter reason. The assembly stays in the table until its deadline, so
// that later fragments do not start a new one.
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

// drop removes an assembly.
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
