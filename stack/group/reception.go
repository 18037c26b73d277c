package group

import (
	"maps"
	"net/netip"
	"slices"
)

// Reception combines the source filters of an interface's sockets for one group (RFC 9776 section 3.2, RFC
// 9777 section 4.2). The zero value has no sockets.
type Reception struct {
	users   int // number of sockets that have joined the group
	exclude int // number of sockets whose filter has the mode EXCLUDE
	sources map[netip.Addr]Mentions
}

// Mentions counts the sockets whose filters contain a source, for each mode.
type Mentions struct{ Include, Exclude int }

// Enter adds a socket with the given filter.
func (r *Reception) Enter(f Filter) {
	r.users++
	r.count(f, 1)
}

// Leave removes a socket with the given filter, which Enter or Change has added.
func (r *Reception) Leave(f Filter) {
	r.users--
	r.count(f, -1)
}

// Change replaces the filter of one socket.
func (r *Reception) Change(from, to Filter) {
	r.count(from, -1)
	r.count(to, 1)
}

// count adds n sockets with filter f. A source that is repeated in the filter counts once. n may be negative.
func (r *Reception) count(f Filter, n int) {
	if f.Exclude {
		r.exclude += n
	}
	for i, source := range f.Sources {
		if slices.Contains(f.Sources[:i], source) {
			continue
		}
		m := r.sources[source]
		if f.Exclude {
			m.Exclude += n
		} else {
			m.Include += n
		}
		r.mention(source, m)
	}
}

// mention sets the counts of a source. It removes a source that no filter contains.
func (r *Reception) mention(source netip.Addr, m Mentions) {
	if m == (Mentions{}) {
		delete(r.sources, source)
		return
	}
	if r.sources == nil {
		r.sources = make(map[netip.Addr]Mentions)
	}
	r.sources[source] = m
}

// Users returns the number of sockets.
func (r *Reception) Users() int { return r.users }

// Sources returns a copy of the table of sources that filters contain, with their counts.
func (r *Reception) Sources() map[netip.Addr]Mentions { return maps.Clone(r.sources) }

// Accepts reports whether the filter of any socket accepts a source.
func (r *Reception) Accepts(source netip.Addr) bool {
	m := r.sources[source]
	return m.Include > 0 || m.Exclude < r.exclude
}

// Filter returns the combined filter of all sockets, with sorted sources. If a socket is in mode EXCLUDE, the result is
// EXCLUDE of the sources that no socket receives. Otherwise it is INCLUDE of all sources that a socket receives.
func (r *Reception) Filter() Filter {
	f := Filter{Exclude: r.exclude > 0}
	for source := range r.sources {
		if r.Accepts(source) != f.Exclude {
			f.Sources = append(f.Sources, source)
		}
	}
	slices.SortFunc(f.Sources, netip.Addr.Compare)
	return f
}
