package stack

import (
	"net/netip"
	"sync"

	"loam/link"
	"loam/wire"
)

// packet is an IP packet that a receiver has accepted: the header is valid and the packet is for this host. The frame starts
// at the IP header. The fields are those that protocols need, for both versions of IP.
type packet struct {
	frame     *link.Frame
	ifc       *Interface
	src, dst  netip.Addr
	headerLen uint16 // IP header including options or extension headers, in bytes
	proto     wire.Protocol
	tos       uint8
	ttl       uint8
	fragment  bool
	broadcast bool   // dst, the destination, is a broadcast or multicast address
	group     bool   // the destination of the frame was a group address
	problem   uint8  // IPv6: 1 + the code of the "parameter problem" to answer with; 0: none
	toMany    bool   // used with problem: an answer is sent even if dst is a multicast address
	problemAt uint16 // IPv6: offset of the problem or, if problem is 0, of the field that names proto
}

// payload returns the payload of the IP packet.
func (p *packet) payload() []byte { return p.frame.Bytes()[p.headerLen:] }

// ce reports whether the packet has the ECN mark "congestion experienced" (RFC 3168 section 5).
func (p *packet) ce() bool { return p.tos&3 == 3 }

// batch is a pooled group of up to link.BatchSize packets, passed from a receiver to a
// shard. Its owner must pass on or free the frames and then call recycle.
type batch struct {
	n       int
	packets [link.BatchSize]packet
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch { return batches.Get().(*batch) }

// recycle returns the batch to the pool. Its frames must have been passed on or freed.
func (b *batch) recycle() {
	clear(b.packets[:b.n])
	b.n = 0
	batches.Put(b)
}

// freeAll frees all frames and returns the batch to the pool.
func (b *batch) freeAll() {
	for i := range b.packets[:b.n] {
		b.packets[i].frame.Free()
	}
	b.recycle()
}
