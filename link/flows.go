package link

import (
	"net/netip"
	"sync/atomic"
)

// Flow identifies a TCP connection over IPv4, as in a segment that arrives. Addresses and ports are numbers, not in
// network byte order.
type Flow struct {
	Src, Dst         uint32
	SrcPort, DstPort uint16
}

// FlowOf returns the flow of segments from src to dst. ok is false unless both addresses are IPv4.
func FlowOf(src, dst netip.AddrPort) (f Flow, ok bool) {
	if !src.Addr().Is4() || !dst.Addr().Is4() {
		return f, false
	}
	return Flow{word(src.Addr()), word(dst.Addr()), src.Port(), dst.Port()}, true
}

func word(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// Flows is a set of flows in memory that a device reads while frames arrive: a counting Bloom filter with one hash
// function. Has may report a flow that is not in the set, but never misses one that is. With 100,000 flows, it reports
// one foreign flow in 11; with a million, three in five.
//
// Goroutines may add and remove flows concurrently. This needs no lock and no system call.
type Flows struct {
	counts []atomic.Uint32 // four counters of 8 bits in each word
	keys   FlowKeys
}

// FlowKeys are the keys of the hash of flows. They are random, so that a remote host cannot choose flows that collide.
type FlowKeys [4]uint64

// FlowBits is the number of bits of a bucket number.
const FlowBits = 20

// FlowWords is the number of words of memory that a set needs: there is a counter of 8 bits for each bucket.
const FlowWords = 1 << FlowBits / 4

// fullCount is the largest value of a counter. A counter that reaches it never changes again.
const fullCount = 255

// NewFlows returns an empty set. counts are FlowWords words of zeros. In each word, bucket 4n is in the lowest 8 bits.
func NewFlows(counts []atomic.Uint32, keys FlowKeys) *Flows {
	return &Flows{counts[:FlowWords:FlowWords], keys}
}

// Bucket returns the number of the counter of a flow, less than 1<<FlowBits. It is a multilinear hash (D. Lemire and
// O. Kaser, Strongly universal string hashing is fast, 2014), which an eBPF program computes with few instructions.
func (k *FlowKeys) Bucket(f Flow) uint32 {
	ports := uint64(f.SrcPort)<<16 | uint64(f.DstPort)
	return uint32((k[0] + k[1]*uint64(f.Src) + k[2]*uint64(f.Dst) + k[3]*ports) >> (64 - FlowBits))
}

// Add adds a flow. A flow that was added twice must be removed twice.
func (s *Flows) Add(f Flow) { s.change(f, 1) }

// Remove removes a flow, which must have been added.
func (s *Flows) Remove(f Flow) { s.change(f, -1) }

// change adds n to the counter of a flow. A counter stays between 0 and fullCount, because it shares its word.
func (s *Flows) change(f Flow, n int) {
	word, shift := s.find(f)
	for {
		old := word.Load()
		count := int(old >> shift & fullCount)
		if count == fullCount || count+n < 0 {
			return
		}
		if word.CompareAndSwap(old, old&^(fullCount<<shift)|uint32(count+n)<<shift) {
			return
		}
	}
}

// Has reports whether a flow may be in the set.
func (s *Flows) Has(f Flow) bool {
	word, shift := s.find(f)
	return word.Load()>>shift&fullCount != 0
}

// find returns the position of the counter of a flow.
func (s *Flows) find(f Flow) (word *atomic.Uint32, shift uint32) {
	b := s.keys.Bucket(f)
	return &s.counts[b/4], b % 4 * 8
}
