package ip

import (
	"bytes"
	"net/netip"
	"time"

	"loam/internal/list"
	"loam/wire"
)

// Reassembly of fragments: RFC 791 section 3.2, RFC 8200 section 4.5 and RFC 815; of
// overlaps RFC 5722, which is about IPv6 and as wise for IPv4; ECN by RFC 3168 section
// 5.3.
//
//	Add --> collecting --> complete: handed out
//	            |  \
//	            |   overlap, too long, contradictory, no memory
//	            |                  \
//	      30 s after its first      refused: no buffer; absorbs what still comes
//	      fragment, or evicted      of the same datagram until its time is up
//
// The bytes of a datagram are copied into one buffer at their place, so that the
// frames they came in can be used again; piece.go keeps track of what is there.
//
// Everything that a stranger can make us hold is bounded. A datagram costs what
// its buffer takes plus a fixed sum for its place in the table; the costs have a
// limit for each source and one for all. Beyond these the least recently used
// datagram gives way, one of the same source first. A datagram may lie in a
// limited number of pieces. assembly.go keeps these accounts.
//
// Rejected: keeping the frames in a list until the end (a fragment of 8 bytes
// holds 2 kB); letting a later fragment overwrite an earlier one, or the other
// way round, which is how filters are passed (RFC 1858, RFC 3128).

// Never is the deadline of a machine that waits for nothing.
const Never = time.Duration(1<<63 - 1)

// Buffer is memory for a payload; a link.Frame is one. Whoever is given a Buffer
// frees it.
type Buffer interface {
	Bytes() []byte // the bytes in use
	Resize(n int)  // sets their number, at most Cap; what was there stays
	Cap() int      // the most that fits
	Free()
}

// ReassemblyConfig configures a Reassembler. Zero means the default.
type ReassemblyConfig struct {
	// Alloc returns a Buffer of n bytes, at most wire.MaxIPv4, or nil if there is
	// no memory. It has no default.
	Alloc   func(n int) Buffer
	Memory  int           // limit of all costs in bytes: 4 MiB, as Linux's ipfrag_high_thresh
	Source  int           // limit of the costs of one source: a quarter of Memory
	Timeout time.Duration // after the first fragment: 30 s, as Linux; RFC 791 says 15 s at least, RFC 8200 60 s
}

// ReassemblyCounters count fragments, and datagrams where they say so, by what
// became of them.
type ReassemblyCounters struct {
	Fragments  uint64 // taken in
	Complete   uint64 // datagrams put together
	Timeout    uint64 // datagrams that were not complete in time
	Evicted    uint64 // datagrams that gave way to others
	Duplicate  uint64 // fragments whose bytes were there already, the same ones
	Absorbed   uint64 // fragments of a datagram that had been refused
	Overlap    uint64 // datagrams refused: fragments overlap
	Oversize   uint64 // datagrams refused: longer than 65535 bytes
	Malformed  uint64 // datagrams refused: an empty fragment, two ends, bytes behind the end
	BadECN     uint64 // datagrams refused: some fragments ECN-capable, others not
	Scattered  uint64 // datagrams refused: too many pieces
	OutOfSpace uint64 // datagrams refused: no buffer
}

// Key says which datagram a fragment belongs to: RFC 791 section 3.2 for IPv4,
// RFC 8200 section 4.5 for IPv6, which leaves the protocol out.
type Key struct {
	Src, Dst netip.Addr
	Protocol wire.Protocol
	ID       uint32
}

// Datagram is a payload with its header. The Payload belongs to whoever is given
// the Datagram. Of IPv6, the header has the addresses, and what both versions have in
// the fields of IPv4: Protocol is what the fragment header says follows.
type Datagram struct {
	Header  wire.IPv4
	ID      uint32
	Payload Buffer
}

// Reassembler puts datagrams together.
type Reassembler struct {
	cfg      ReassemblyConfig
	table    map[Key]*assembly
	sources  map[netip.Addr]*source
	byAge    list.List[assembly] // the first to time out first
	byUse    list.List[assembly] // the least recently used first
	cost     int
	counters ReassemblyCounters
}

// NewReassembler returns one that holds nothing.
func NewReassembler(cfg ReassemblyConfig) *Reassembler {
	if cfg.Memory == 0 {
		cfg.Memory = 4 << 20
	}
	if cfg.Source == 0 {
		cfg.Source = cfg.Memory / 4
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	return &Reassembler{cfg: cfg, table: make(map[Key]*assembly), sources: make(map[netip.Addr]*source)}
}

// Counters returns the counters.
func (r *Reassembler) Counters() ReassemblyCounters { return r.counters }

// Cost is what is held now, in bytes.
func (r *Reassembler) Cost() int { return r.cost }

// Add takes in a packet that package wire has parsed, and copies its payload. It returns the datagram if that is complete now: with
// the header of its first fragment, made whole.
func (r *Reassembler) Add(now time.Duration, h *wire.IPv4, payload []byte) (Datagram, bool) {
	if !h.IsFragment() {
		r.counters.Fragments++
		return r.atomic(h, payload)
	}
	return r.add(now, Key{h.Src, h.Dst, h.Protocol, uint32(h.ID)}, h, payload)
}

// Add6 is Add for what stands behind the fragment header f of a packet of IPv6 with
// the header h, if that is no whole packet.
func (r *Reassembler) Add6(now time.Duration, h *wire.IPv6, f *wire.IPv6Fragment, payload []byte) (Datagram, bool) {
	common := wire.IPv4{
		Src: h.Src, Dst: h.Dst, TOS: h.TrafficClass, TTL: h.HopLimit, Protocol: f.Next,
		MoreFragment: f.More, FragOffset: f.Offset, PayloadLen: len(payload),
	}
	return r.add(now, Key{Src: h.Src, Dst: h.Dst, ID: f.ID}, &common, payload)
}

func (r *Reassembler) add(now time.Duration, key Key, h *wire.IPv4, payload []byte) (Datagram, bool) {
	r.counters.Fragments++
	a := r.find(now, key)
	if a.refused {
		r.counters.Absorbed++
		return Datagram{}, false
	}
	if reason := r.take(a, h, payload); reason != nil {
		r.refuse(a, reason)
		return Datagram{}, false
	}
	if !a.pieces.whole(a.total) {
		return Datagram{}, false
	}
	if reason := r.checkWhole(a); reason != nil {
		r.refuse(a, reason)
		return Datagram{}, false
	}
	r.counters.Complete++
	d := Datagram{a.header, key.ID, a.buffer}
	d.Header.MoreFragment, d.Header.PayloadLen = false, a.total
	d.Header.TOS = d.Header.TOS&^ecnMask | a.ecn.merged()
	d.Payload.Resize(a.total)
	a.buffer = nil
	r.drop(a)
	return d, true
}

// atomic hands out a fragment that is the whole datagram, whatever is held under
// the same key (RFC 6946).
func (r *Reassembler) atomic(h *wire.IPv4, payload []byte) (Datagram, bool) {
	b := r.cfg.Alloc(len(payload))
	if b == nil {
		r.counters.OutOfSpace++
		return Datagram{}, false
	}
	r.counters.Complete++
	copy(b.Bytes(), payload)
	var a assembly
	a.keepHeader(h)
	return Datagram{a.header, uint32(h.ID), b}, true
}

// take puts a fragment into its place. A reason to refuse the whole datagram is
// returned as the counter of it.
func (r *Reassembler) take(a *assembly, h *wire.IPv4, payload []byte) (reason *uint64) {
	from, to := h.FragOffset, h.FragOffset+len(payload)
	switch {
	case len(payload) == 0:
		return &r.counters.Malformed
	case to > longest(h):
		return &r.counters.Oversize
	case h.MoreFragment && a.total != unknown && to >= a.total,
		!h.MoreFragment && a.total != unknown && to != a.total,
		!h.MoreFragment && a.total == unknown && to <= a.pieces.end(): // what ends there has said that more follows
		return &r.counters.Malformed
	}
	switch a.pieces.add(from, to) {
	case overlap:
		return &r.counters.Overlap
	case scattered:
		return &r.counters.Scattered
	case contained:
		if !bytes.Equal(a.buffer.Bytes()[from:to], payload) {
			return &r.counters.Overlap
		}
		r.counters.Duplicate++
		return nil
	}
	if !h.MoreFragment {
		a.total = to
	}
	if !r.makeRoom(a, to) {
		return &r.counters.OutOfSpace
	}
	copy(a.buffer.Bytes()[from:], payload)
	a.ecn.add(h.TOS)
	if from == 0 {
		a.keepHeader(h)
	}
	return nil
}

// longest is the most that a payload can be, in bytes.
func longest(h *wire.IPv4) int {
	if h.Src.Is4() {
		return wire.MaxIPv4 - wire.IPv4MinLen
	}
	return wire.MaxIPv6Payload
}

// checkWhole looks at what only the whole datagram shows.
func (r *Reassembler) checkWhole(a *assembly) (reason *uint64) {
	switch {
	case a.header.Src.Is4() && a.header.Len()+a.total > wire.MaxIPv4:
		return &r.counters.Oversize
	case !a.ecn.consistent():
		return &r.counters.BadECN
	}
	return nil
}

// Deadline is when to call Expire, Never if not.
func (r *Reassembler) Deadline() time.Duration {
	if a := r.byAge.Front(); a != nil {
		return a.deadline
	}
	return Never
}

// Expire gives up the datagrams whose time is over. For those whose first
// fragment is there, it yields that fragment as it came, since its sender is to
// be told (RFC 792, "time exceeded", code 1). It has the shape of an
// iter.Seq[Datagram], once now is given: the consumer frees each payload, and
// does not call Add meanwhile.
func (r *Reassembler) Expire(now time.Duration) func(yield func(Datagram) bool) {
	return func(yield func(Datagram) bool) {
		for {
			a := r.byAge.Front()
			if a == nil || a.deadline > now {
				return
			}
			d := Datagram{Header: a.header, ID: a.key.ID}
			if !a.refused {
				r.counters.Timeout++
			}
			if a.hasFirst {
				d.Payload, a.buffer = a.buffer, nil
				d.Payload.Resize(a.header.PayloadLen)
			}
			r.drop(a)
			if d.Payload != nil && !yield(d) {
				return
			}
		}
	}
}

// ecnMask are the bits of TOS that RFC 3168 has taken.
const ecnMask = 3

// ecnSet is the set of ECN codepoints of a datagram's fragments: bit c for
// codepoint c.
type ecnSet uint8

const (
	notECT = 0
	ce     = 3
)

func (s *ecnSet) add(tos uint8) { *s |= 1 << (tos & ecnMask) }

// consistent reports whether all fragments are ECN-capable, or none is.
func (s ecnSet) consistent() bool { return s&(1<<notECT) == 0 || s == 1<<notECT }

// merged is the codepoint of the whole, if it is consistent: congestion that one
// fragment experienced was experienced.
func (s ecnSet) merged() uint8 {
	for c := uint8(ce); c > notECT; c-- {
		if s&(1<<c) != 0 {
			return c
		}
	}
	return notECT
}
