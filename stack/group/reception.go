package group

import (
	"maps"
	"net/netip"
	"slices"
)

// Reception is what the sockets of an interface want of one group, added up (RFC 9776 section
// 3.2, RFC 9777 section 4.2). The zero value is of no socket.
type Reception struct {
	users   int // sockets, whatever they hear
	exclude int // those of them in the mode EXCLUDE
	sources map[netip.Addr]Mentions
}

// Mentions is how many sockets name a source, by the modes of their filters.
type Mentions struct{ Include, Exclude int }

// Enter counts a socket that wants the group by a filter.
func (r *Reception) Enter(f Filter) {
	r.users++
	r.count(f, 1)
}

// Leave undoes Enter.
func (r *Reception) Leave(f Filter) {
	r.users--
	r.count(f, -1)
}

// Change is what a socket does whose filter becomes another one.
func (r *Reception) Change(from, to Filter) {
	r.count(from, -1)
	r.count(to, 1)
}

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

// Users is how many sockets there are.
func (r *Reception) Users() int { return r.users }

// Sources is who is named, and how often.
func (r *Reception) Sources() map[netip.Addr]Mentions { return maps.Clone(r.sources) }

// Hears reports whether any socket hears a source.
func (r *Reception) Hears(source netip.Addr) bool {
	m := r.sources[source]
	return m.Include > 0 || m.Exclude < r.exclude
}

// Filter is the interface's, its sources in order: EXCLUDE of those that nobody hears, if a
// socket is in that mode, else INCLUDE of all that one hears.
func (r *Reception) Filter() Filter {
	f := Filter{Exclude: r.exclude > 0}
	for source := range r.sources {
		if r.Hears(source) != f.Exclude {
			f.Sources = append(f.Sources, source)
		}
	}
	slices.SortFunc(f.Sources, netip.Addr.Compare)
	return f
}
