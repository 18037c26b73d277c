package demux

import (
	"iter"
	"net/netip"
	"slices"

	"loam/stack/shared"
)

// Socket is a socket that receives packets.
type Socket interface {
	comparable
	// Fit reports how well the socket's peer and interface match a packet. from is the sender, and on is the index of the
	// interface on which the packet arrived; 0: unknown.
	Fit(from netip.AddrPort, on int) Fit
}

// Fit is the degree to which a socket matches a packet: the sum of Fits, Bound and Connected, or 0 if the socket does
// not receive the packet.
type Fit uint8

const (
	Fits      Fit = 1 << iota // the socket receives the packet
	Bound                     // the socket is bound to the interface
	Connected                 // the socket is connected to the sender
)

// Place describes how a socket is bound.
type Place struct {
	Local     netip.AddrPort // local address; unspecified: all addresses
	Six       bool           // the socket is an IPv6 socket, even if Local is an IPv4 address
	V6Only    bool           // the unspecified IPv6 address excludes IPv4
	ReusePort bool           // the socket belongs to the group of the sockets that are bound alike
}

// keys returns the addresses under which a socket is entered. A socket bound to :: is also entered for all IPv4 addresses
// unless V6Only is set (RFC 3493 section 5.3).
func (p *Place) keys() []netip.AddrPort {
	at := []netip.AddrPort{bare(p.Local)}
	if p.Local.Addr().Is6() && p.Local.Addr().IsUnspecified() && !p.V6Only {
		at = append(at, netip.AddrPortFrom(netip.IPv4Unspecified(), p.Local.Port()))
	}
	return at
}

// entry is a socket and its Place.
type entry[S Socket] struct {
	socket S
	group  uint32 // equal for sockets with SO_REUSEPORT whose places are equal; 0: the socket is in no group
	place  Place
}

// Table holds the sockets of a protocol. S is a pointer type.
type Table[S Socket] struct {
	seed   uint64
	groups uint32                        // the last group
	at     map[netip.AddrPort][]entry[S] // in the order of the search
}

// NewTable returns an empty table. seed is random, so that a remote host cannot direct all flows to one socket of a group.
func NewTable[S Socket](seed uint64) Table[S] {
	return Table[S]{seed: seed, at: make(map[netip.AddrPort][]entry[S])}
}

// Add adds a socket.
func (t *Table[S]) Add(s S, p Place) {
	for _, at := range p.keys() {
		list := t.at[at]
		first := 0
		if p.Six && p.ReusePort {
			first = len(list)
		}
		t.at[at] = slices.Insert(list, first, entry[S]{s, t.group(list, p), p})
	}
}

// group returns the group of a new socket in list.
func (t *Table[S]) group(list []entry[S], p Place) uint32 {
	if !p.ReusePort {
		return 0
	}
	if i := slices.IndexFunc(list, func(e entry[S]) bool { return e.place == p }); i >= 0 {
		return list[i].group
	}
	t.groups++
	return t.groups
}

// Remove removes a socket that was added with the Place p.
func (t *Table[S]) Remove(s S, p Place) {
	for _, at := range p.keys() {
		list := slices.DeleteFunc(slices.Clone(t.at[at]), func(e entry[S]) bool { return e.socket == s }) // a loop may use the old list
		if t.at[at] = list; len(list) == 0 {
			delete(t.at, at)
		}
	}
}

// All returns every socket at least once. The loop may remove sockets.
func (t *Table[S]) All() iter.Seq[S] {
	return func(yield func(S) bool) {
		for _, list := range t.at {
			for i := range list {
				if !yield(list[i].socket) {
					return
				}
			}
		}
	}
}

// At returns the sockets that receive packets to an address: those bound to it, and those bound to all addresses. The loop
// may remove sockets, and then may still get them.
func (t *Table[S]) At(to netip.AddrPort) iter.Seq[S] {
	return func(yield func(S) bool) {
		for _, at := range [...]netip.AddrPort{bare(to), unspecified(to)} {
			list := t.at[at]
			for i := range list {
				if !yield(list[i].socket) {
					return
				}
			}
		}
	}
}

// Find returns the socket that receives a packet, or nil. on is the index of the interface on which the packet arrived; 0:
// unknown.
func (t *Table[S]) Find(from, to netip.AddrPort, on int) (found S) {
	list := t.at[bare(to)]
	b := find(list, from, on)
	if b.fit < Connected {
		others := t.at[unspecified(to)]
		if other := find(others, from, on); b.fit == 0 || other.fit >= Connected {
			list, b = others, other
		}
	}
	switch {
	case b.fit == 0:
		return found
	case b.members == 0:
		return list[b.index].socket
	}
	n := shared.ShardOf(from.Addr(), to.Addr(), from.Port(), to.Port(), t.seed, b.members)
	return member(list[b.index:], n, b.fit, from, on)
}

// best is the result of a search in a list.
type best struct {
	index   int // index of the socket, which is the first one of its group
	fit     Fit // 0: no socket receives the packet
	members int // size of the socket's group; 0: it receives the packet alone
}

// find returns the first of the best sockets in list.
func find[S Socket](list []entry[S], from netip.AddrPort, on int) (b best) {
	top := 0
	for i := range list {
		e := &list[i]
		f := e.socket.Fit(from, on)
		if b.members > 0 && f < Connected {
			if f == b.fit && e.group == list[b.index].group {
				b.members++
			}
			continue
		}
		score := int(f) << 1
		if !e.place.Six {
			score |= 1
		}
		if f == 0 || score <= top {
			continue
		}
		top, b = score, best{index: i, fit: f}
		if e.group != 0 && f < Connected {
			b.members = 1
		}
	}
	return b
}

// member returns the n-th socket of the group of list[0], whose Fit is fit.
func member[S Socket](list []entry[S], n int, fit Fit, from netip.AddrPort, on int) S {
	last := 0
	for i := 0; n > 0 && i < len(list)-1; {
		if i++; list[i].group == list[0].group && list[i].socket.Fit(from, on) == fit {
			last = i
			n--
		}
	}
	return list[last].socket
}

// bare returns an address without its zone.
func bare(a netip.AddrPort) netip.AddrPort {
	if a.Addr().Zone() == "" {
		return a
	}
	return netip.AddrPortFrom(a.Addr().WithZone(""), a.Port())
}

// unspecified returns the unspecified address of the same IP version, with the port of a.
func unspecified(a netip.AddrPort) netip.AddrPort {
	if a.Addr().Is4() {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), a.Port())
}
