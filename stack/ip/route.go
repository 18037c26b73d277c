package ip

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// The route table. A set of prefixes divides the addresses of a family into spans. All addresses of a span
// have the same longest match. Spans begin at the first address of a prefix, or after the last address of
// one. The table is a sorted list of spans, built once, and a lookup is a binary search. For a large table,
// the first 16 bits of the address narrow the search first.
//
// IPv4 and IPv6 differ only in the list that is used. A Table is immutable: to change a route, the owner
// builds and publishes a new Table. Readers need no lock.
//
// Rejected: a trie, which changes faster and looks up slower (a cache miss per level); one hash table per
// prefix length, which needs 33 or 129 lookups.

// Route is a route for packets to the addresses in Dst.
type Route struct {
	Dst       netip.Prefix
	Gateway   netip.Addr // address of the router; zero: the destination is on the link
	Interface int        // index of the interface, assigned by the owner of the table
	Source    netip.Addr // source address of packets if the program has not chosen one; zero: not set
	Metric    int        // among routes with equal prefixes, the lowest Metric wins, and then the first in the list
	MTU       int        // MTU of the path in bytes; zero: the MTU of the interface
}

// Table is an immutable set of routes. The zero value is empty.
type Table struct {
	routes []Route
	v4, v6 spans
}

// NewTable builds a table. The prefixes must be valid; host bits in them are ignored.
func NewTable(routes []Route) Table {
	t := Table{routes: slices.Clone(routes)}
	for i := range t.routes {
		t.routes[i].Dst = t.routes[i].Dst.Masked()
	}
	t.v4 = makeSpans(t.routes, true)
	t.v6 = makeSpans(t.routes, false)
	return t
}

// Lookup returns the route to addr with the longest prefix. It ignores the zone of addr and treats an
// IPv4-mapped address as IPv6.
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

// key is an address as a number. An IPv4 address is in the upper 32 bits.
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

// behind returns the first key after a prefix. The prefix begins at k and has the given number of bits. ok is false if the
// prefix ends at the highest address of the family.
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

// spans is the table of one family. Span i covers [start[i], start[i+1]). start[0] is the lowest address with
// a route.
type spans struct {
	start []key
	route []int32 // for each span, an index into Table.routes, or noRoute
	index []int32 // for each value of the top 16 bits of an address, the number of spans that begin below; nil for a small table
}

const (
	noRoute = -1
	// number of spans from which on a table has an index; a search of fewer spans takes ten steps, within the CPU's cache
	indexFrom = 1024
)

// find returns the route of the span that contains k.
func (s *spans) find(k key) int32 {
	lo, hi := 0, len(s.start)
	if s.index != nil {
		top := k.hi >> 48
		lo, hi = int(s.index[top]), int(s.index[top+1])
	}
	// Count the spans that begin at or below k.
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

// makeSpans visits the prefixes in order of address, each prefix before the prefixes inside it.
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

// walk is a stack of the nested prefixes that contain the current address, the innermost on top.
type walk struct {
	spans spans
	open  []openPrefix
}

type openPrefix struct {
	end     key
	endless bool // the prefix ends at the highest address of the family
	route   int32
}

func (w *walk) top() openPrefix { return w.open[len(w.open)-1] }

// ends reports whether a prefix is open and the innermost open prefix, w.top, ends before
// the highest address.
func (w *walk) ends() bool { return len(w.open) > 0 && !w.top().endless }

// close removes the innermost prefix. The prefix that encloses it continues after it.
func (w *walk) close() {
	end := w.top().end
	w.open = w.open[:len(w.open)-1]
	outer := int32(noRoute)
	if len(w.open) > 0 {
		outer = w.top().route
	}
	w.spans.begin(end, outer)
}

// sorted returns the best route of each prefix, in the order that makeSpans needs.
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

// begin starts a span at k. It replaces an empty span that began there.
func (s *spans) begin(k key, route int32) {
	if n := len(s.start); n > 0 && s.start[n-1] == k {
		s.route[n-1] = route
		return
	}
	s.start, s.route = append(s.start, k), append(s.route, route)
}

// makeIndex fills the index: for each value of the first 16 bits, the number of spans that begin below it.
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
