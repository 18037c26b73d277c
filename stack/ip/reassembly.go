package ip

import (
	"bytes"
	"net/netip"
	"time"

	"loam/internal/list"
	"loam/wire"
)

// Reassembly of fragments: RFC 791 section 3.2, RFC 8200 section 4.5 and RFC 815. Overlaps are rejected as in
// RFC 5722, which is written for IPv6 and equally useful for IPv4. ECN follows RFC 3168 section 5.3.
//
//	Add --> collecting --> complete: handed out
//	            |  \
//	            |   overlap, too long, contradictory, no memory
//	            |                  \
//	      30 s after its first      refused: no buffer; later fragments of
//	      fragment, or evicted      the datagram are ignored until its deadline
//
// The bytes of a datagram are copied into one buffer at their offset, so that their frames can be reused.
// piece.go records which bytes are present.
//
// All memory that a stranger can make us hold is bounded. A datagram costs the size of its buffer plus a
// fixed amount for its table entry. The costs are limited for each source and in total. Beyond a limit, the
// least recently used datagram is evicted, one of the same source first. The number of pieces of a datagram
// is also limited. assembly.go keeps these accounts.
//
// Rejected: keeping the frames in a list until the end, because a fragment of 8 bytes would hold 2 kB.
// Rejected: letting a later fragment overwrite an earlier one, or the reverse, because attackers use it to
// bypass filters (RFC 1858, RFC 3128).

// Never is the deadline of a Reassembler without a timer.
const Never = time.Duration(1<<63 - 1)

// Buffer is memory for a payload, such as a link.Frame. The receiver of a Buffer must free it.
type Buffer interface {
	Bytes() []byte // returns the bytes in use
	Resize(n int)  // sets the number of bytes in use, at most Cap, and keeps their contents
	Cap() int      // returns the capacity in bytes
	Free()
}

// ReassemblyConfig configures a Reassembler. Zero values select the defaults.
type ReassemblyConfig struct {
	// Alloc returns a Buffer of n bytes, at most wire.MaxIPv4, or nil without memory. It has no default.
	Alloc  func(n int) Buffer
	Memory int // limit of all costs in bytes; default 4 MiB, like Linux's ipfrag_high_thresh
	Source int // limit of the costs of one source in bytes; default a quarter of Memory
	// Timeout is the time from the first fragment until an incomplete datagram is dropped; default 30 s, as on Linux
	// (RFC 791 requires at least 15 s, RFC 8200 60 s).
	Timeout time.Duration
}

// ReassemblyCounters count fragments, or datagrams where stated, by result.
type ReassemblyCounters struct {
	Fragments  uint64 // fragments that Add has accepted
	Complete   uint64 // datagrams completed
	Timeout    uint64 // datagrams that were incomplete at their deadline
	Evicted    uint64 // datagrams evicted to make room
	Duplicate  uint64 // fragments whose bytes had already arrived
	Absorbed   uint64 // fragments of a datagram that was already refused
	Overlap    uint64 // datagrams refused: fragments overlap
	Oversize   uint64 // datagrams refused: longer than 65535 bytes
	Malformed  uint64 // datagrams refused: an empty fragment, two different ends, or bytes after the end
	BadECN     uint64 // datagrams refused: some fragments ECN-capable, others not
	Scattered  uint64 // datagrams refused: more than maxPieces pieces
	OutOfSpace uint64 // datagrams refused: no memory for a buffer
}

// Key identifies the datagram of a fragment: RFC 791 section 3.2 for IPv4; RFC 8200 section 4.5 for IPv6,
// where the protocol is not part of the key.
type Key struct {
	Src, Dst netip.Addr
	Protocol wire.Protocol
	ID       uint32
}

// Datagram is a payload with its header. The receiver of a Datagram owns the Payload. For IPv6, Header holds
// the addresses and the fields that both versions share; Protocol is the next header of the fragment header.
type Datagram struct {
	Header  wire.IPv4
	ID      uint32
	Payload Buffer
}

// Reassembler reassembles datagrams. It belongs to one goroutine.
type Reassembler struct {
	cfg      ReassemblyConfig
	table    map[Key]*assembly
	sources  map[netip.Addr]*source
	byAge    list.List[assembly] // sorted by deadline
	byUse    list.List[assembly] // sorted by last use, the least recent first
	cost     int
	counters ReassemblyCounters
}

// NewReassembler returns an empty Reassembler.
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

// Cost returns the number of bytes of memory that are held now.
func (r *Reassembler) Cost() int { return r.cost }

// Add processes a fragment that package wire has parsed and copies its payload. If the datagram is complete,
// Add returns it with the header of its first fragment, adjusted for the whole datagram.
func (r *Reassembler) Add(now time.Duration, h *wire.IPv4, payload []byte) (Datagram, bool) {
	if !h.IsFragment() {
		r.counters.Fragments++
		return r.atomic(h, payload)
	}
	return r.add(now, Key{h.Src, h.Dst, h.Protocol, uint32(h.ID)}, h, payload)
}

// Add6 is like Add for IPv6: payload is the data after the fragment header f of a packet with header h. The
// fragment must not be a whole packet.
func (r *Reassembler) Add6(now time.Duration, h *wire.IPv6, f *wire.IPv6Fragment, payload []byte) (Datagram, bool) {
	common := wire.IPv4{
		Src: h.Src, Dst: h.Dst, TOS: h.TrafficClass, TTL: h.HopLimit, Protocol: f.Next,
		MoreFragment: f.More, FragOffset: f.Offset, PayloadLen: len(payload),
	}
	return r.add(now, Key{Src: h.Src, Dst: h.Dst, ID: f.ID}, &common, payload)
}

// add processes a fragment for Add and Add6. h contains the fields that both IP versions share.
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

// atomic returns the datagram of a fragment that contains all of it. An assembly with the same key is ignored (RFC 6946).
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

// take stores a fragment. If the datagram must be refused, it returns the counter of the reason, otherwise nil.
func (r *Reassembler) take(a *assembly, h *wire.IPv4, payload []byte) (reason *uint64) {
	from, to := h.FragOffset, h.FragOffset+len(payload)
	switch {
	case len(payload) == 0:
		return &r.counters.Malformed
	case to > longest(h):
		return &r.counters.Oversize
	case h.MoreFragment && a.total != unknown && to >= a.total,
		!h.MoreFragment && a.total != unknown && to != a.total,
		// the length is unknown, but an earlier fragment that ends here or later had MoreFragment set
		!h.MoreFragment && a.total == unknown && to <= a.pieces.end():
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

// longest returns the maximum size of a payload in bytes.
func longest(h *wire.IPv4) int {
	if h.Src.Is4() {
		return wire.MaxIPv4 - wire.IPv4MinLen
	}
	return wire.MaxIPv6Payload
}

// checkWhole performs the checks that need the whole datagram.
func (r *Reassembler) checkWhole(a *assembly) (reason *uint64) {
	switch {
	case a.header.Src.Is4() && a.header.Len()+a.total > wire.MaxIPv4:
		return &r.counters.Oversize
	case !a.ecn.consistent():
		return &r.counters.BadECN
	}
	return nil
}

// Deadline returns when Expire must be called, or Never.
func (r *Reassembler) Deadline() time.Duration {
	if a := r.byAge.Front(); a != nil {
		return a.deadline
	}
	return Never
}

// Expire drops the datagrams whose deadline has passed. If the first fragment of one has arrived, Expire
// yields that fragment as received, for an ICMP error to its sender (RFC 792, "time exceeded", code 1). The
// result is an iter.Seq[Datagram]. The consumer must free each payload and must not call Add during the
// iteration.
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

// ecnMask selects the ECN bits of TOS (RFC 3168).
const ecnMask = 3

// ecnSet is the set of ECN codepoints of a datagram's fragments: bit c for codepoint c.
type ecnSet uint8

const (
	notECT = 0
	ce     = 3
)

func (s *ecnSet) add(tos uint8) { *s |= 1 << (tos & ecnMask) }

// consistent reports whether all fragments are ECN-capable or none is.
func (s ecnSet) consistent() bool { return s&(1<<notECT) == 0 || s == 1<<notECT }

// merged returns the codepoint of the whole datagram, for a consistent set. If one fragment experienced
// congestion, so did the datagram.
func (s ecnSet) merged() uint8 {
	for c := uint8(ce); c > notECT; c-- {
		if s&(1<<c) != 0 {
			return c
		}
	}
	return notECT
}
