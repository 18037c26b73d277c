package ip

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// The route table. A set of prefixes cuts the addresses of a family into spans,
// within each of which every address has the same longest match: the boundaries
// are the first address of each prefix and the address behind its last. So the
// table is a sorted list of spans, made once, and a lookup is a binary search. A
// large table is narrowed down by the first 16 bits of the address first.
//
// IPv4 and IPv6 differ in nothing but which of two lists they use. The value is
// immutable: a change of routes builds another one and publishes that, and
// readers need no lock.
//
// Rejected: a trie, which is faster to change and slower to look up (a cache miss
// a level); a hash table for each prefix length, which asks 33 or 129 of them.

// Route says where packets to an address in Dst go.
type Route struct {
	Dst       netip.Prefix
	Gateway   netip.Addr // zero: the destination is on the link
	Interface int        // index, as the owner counts
	Source    netip.Addr // to send from when the program does not say; zero: not decided here
	Metric    int        // the lowest wins among equal prefixes, the first of equal metrics
	MTU       int        // zero: the interface's
}

// Table is a set of routes, ready for lookups. The zero value is empty.
type Table struct {
	routes []Route
	v4, v6 spans
}

// NewTable makes a table. Prefixes are valid; host bits in them are ignored.
func NewTable(routes []Route) Table {
	t := Table{routes: slices.Clone(routes)}
	for i := range t.routes {
		t.routes[i].Dst = t.routes[i].Dst.Masked()
	}
	t.v4 = makeSpans(t.routes, true)
	t.v6 = makeSpans(t.routes, false)
	return t
}

// Lookup finds the route to addr: that of the longest prefix. The zone of addr is
// ignored; an IPv4-mapped address is IPv6.
func (t *Table) Lookup(addr netip.Addr) (Route, bool) {
	s := &t.v6
	if addr.Is4() {
		s = &t.v4
	}
	i := s.find(keyOf(addr))
	if i == noRoute {
		return Route{}, false
	}
	return t.routes[i], true
}

// key is an address as a number, IPv4 in the upper 32 bits.
type key struct{ hi, lo uint64 }

func keyOf(a netip.Addr) key {
	if a.Is4() {
		b := a.As4()
		return key{hi: uint64(binary.BigEndian.Uint32(b[:])) << 32}
	}
	b := a.As16()
	return key{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (k key) less(o key) bool { return k.hi < o.hi || k.hi == o.hi && k.lo < o.lo }

// behind is the first key after the prefix of the given number of bits that
// begins at k; ok is false if the prefix reaches to the end of the family.
func (k key) behind(bits int) (key, bool) {
	switch {
	case bits == 0:
		return key{}, false
	case bits <= 64:
		k.hi += 1 << (64 - bits)
		return k, k.hi != 0
	}
	step := uint64(1) << (128 - bits)
	if k.lo += step; k.lo == 0 {
		k.hi++
	}
	return k, k != key{}
}

// spans is the table of one family. Span i reaches from start[i] to start[i+1],
// and what begins at start[0] is the lowest address that has a route.
type spans struct {
	start []key
	route []int32 // an index of Table.routes, or noRoute
	index []int32 // by 16 bits: how many spans begin below these; nil for few
}

const (
	noRoute   = -1
	indexFrom = 1024 // spans; fewer are in the cache and found in ten steps
)

// find returns the route of the span that k lies in.
func (s *spans) find(k key) int32 {
	lo, hi := 0, len(s.start)
	if s.index != nil {
		top := k.hi >> 48
		lo, hi = int(s.index[top]), int(s.index[top+1])
	}
	// The number of spans that begin at or below k.
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if k.less(s.start[mid]) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == 0 {
		return noRoute
	}
	return s.route[lo-1]
}

// makeSpans walks the prefixes from the lowest address upwards, a prefix before
// those inside it.
func makeSpans(routes []Route, is4 bool) spans {
	var w walk
	for _, i := range sorted(routes, is4) {
		dst := routes[i].Dst
		start := keyOf(dst.Addr())
		for w.ends() && !start.less(w.top().end) {
			w.close()
		}
		w.spans.begin(start, i)
		end, ok := start.behind(dst.Bits())
		w.open = append(w.open, openPrefix{end, !ok, i})
	}
	for w.ends() {
		w.close()
	}
	w.spans.makeIndex()
	return w.spans
}

// walk keeps the prefixes that the present address is in. They are nested, the
// innermost on top of the stack.
type walk struct {
	spans spans
	open  []openPrefix
}

type openPrefix struct {
	end     key
	endless bool // reaches to the end of the family
	route   int32
}

func (w *walk) top() openPrefix { return w.open[len(w.open)-1] }

// ends reports whether there is an innermost prefix that ends somewhere.
func (w *walk) ends() bool { return len(w.open) > 0 && !w.top().endless }

// close ends the innermost prefix: what is around it goes on behind it.
func (w *walk) close() {
	end := w.top().end
	w.open = w.open[:len(w.open)-1]
	outer := int32(noRoute)
	if len(w.open) > 0 {
		outer = w.top().route
	}
	w.spans.begin(end, outer)
}

// sorted lists the best route of each prefix, in the order that makeSpans needs.
func sorted(routes []Route, is4 bool) []int32 {
	var order []int32
	for i, r := range routes {
		if r.Dst.Addr().Is4() == is4 {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(i, j int32) int {
		a, b := routes[i], routes[j]
		if c := a.Dst.Addr().Compare(b.Dst.Addr()); c != 0 {
			return c
		}
		if c := a.Dst.Bits() - b.Dst.Bits(); c != 0 {
			return c
		}
		return a.Metric - b.Metric
	})
	return slices.CompactFunc(order, func(i, j int32) bool { return routes[i].Dst == routes[j].Dst })
}

// begin starts a span at k. One that began there too was empty.
func (s *spans) begin(k key, route int32) {
	if n := len(s.start); n > 0 && s.start[n-1] == k {
		s.route[n-1] = route
		return
	}
	s.start, s.route = append(s.start, k), append(s.route, route)
}

// makeIndex counts, for each value of the first 16 bits, the spans below it.
func (s *spans) makeIndex() {
	if len(s.start) < indexFrom {
		return
	}
	s.index = make([]int32, 1<<16+1)
	for _, k := range s.start {
		s.index[k.hi>>48+1]++
	}
	for i := range 1 << 16 {
		s.index[i+1] += s.index[i]
	}
}
