package stack

import (
	"net/netip"
	"sync"

	"loam/link"
	"loam/wire"
)

// packet is an IP packet that a receiver has accepted: its header is sound and
// it is meant for this host. The frame's first byte is that of the IP header.
// The fields hold what the protocols need of the header, for both IP versions.
type packet struct {
	frame     *link.Frame
	ifc       *Interface
	src, dst  netip.Addr
	headerLen uint16 // of the IP header with its options, or extension headers
	proto     wire.Protocol
	tos       uint8
	ttl       uint8
	fragment  bool
	broadcast bool   // dst is a broadcast or multicast address
	group     bool   // the link's destination was one
	problem   uint8  // IPv6: 1 + the code of the "parameter problem" that it is to be answered with; 0: none
	toMany    bool   // with problem: even if dst is a group
	problemAt uint16 // IPv6: where that is, else where the field is that names proto
}

// payload is what the IP packet carries.
func (p *packet) payload() []byte { return p.frame.Bytes()[p.headerLen:] }

// ce reports the ECN mark "congestion experienced" (RFC 3168 section 5).
func (p *packet) ce() bool { return p.tos&3 == 3 }

// batch is what goes through a channel: up to link.BatchSize packets, pooled.
// Who receives it owns it, frees the frames and gives it back.
type batch struct {
	n       int
	packets [link.BatchSize]packet
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch { return batches.Get().(*batch) }

// recycle gives the batch back; its frames must have been passed on or freed.
func (b *batch) recycle() {
	clear(b.packets[:b.n])
	b.n = 0
	batches.Put(b)
}

// freeAll frees all frames and gives the batch back.
func (b *batch) freeAll() {
	for i := range b.packets[:b.n] {
		b.packets[i].frame.Free()
	}
	b.recycle()
}
