package stack

import (
	"loam/link"
	"loam/wire"
)

// TCP segments between two connections of this host. Both directions of a flow belong to
// one shard, so the shard delivers such a segment itself, in the turn that sends it. The
// loopback device would pass the frame to a receiver, whose goroutine must be woken to
// pass it back to the same shard. With sockets that see all frames or IP packets of the
// host, segments do go through the device.

// maxLocal bounds the local segments that wait for delivery, as the queue of the loopback
// device does.
const maxLocal = 256

// maxExchanges bounds how often a turn delivers local segments and asks for output again.
// The rest waits for the next turn, so that the turn ends.
const maxExchanges = 8

// isLocal reports whether segments on a link are delivered by the shard itself.
func (l *txLink) isLocal() bool {
	s := l.shard.stack
	return l.ifc.local != nil && s.linkConns.Load() == nil && s.raws.Load() == nil
}

// sendLocal queues a segment for delivery in this turn. It takes ownership of f, which
// starts with the TCP header. No address of the packet needs the checks of a receiver:
// the route has shown that dst is an address of this host.
func (c *TCPConn) sendLocal(sh *shard, l *txLink, f *link.Frame, tos, ttl uint8) {
	src, dst := c.local.Addr().WithZone(""), c.remote.Addr().WithZone("")
	f.ChecksumValid = true
	bytes := f.Len() + wire.IPv4MinLen
	if dst.Is6() {
		bytes = f.Len() + wire.IPv6Len
	}
	sh.tally.countSent(dst, bytes)
	sh.tally.countBy(dst, IPReceived)
	l.ifc.local.Count(1, bytes)
	sh.local = append(sh.local, packet{
		frame: f, ifc: l.ifc, src: src, dst: dst, proto: wire.ProtoTCP, tos: tos, ttl: ttl,
	})
}

// exchange delivers local segments, and asks the connections for more output, until none
// is left.
func (sh *shard) exchange() {
	for range maxExchanges {
		if len(sh.local) == 0 {
			break
		}
		packets := sh.local
		sh.local = sh.spareLocal[:0]
		for i := range packets {
			sh.inputLocal(&packets[i])
		}
		clear(packets)
		sh.spareLocal = packets[:0]
		sh.output()
	}
	if len(sh.local)+len(sh.dirty) > 0 { // continue after the input
		sh.inbox.ring()
	}
}

// inputLocal processes a local segment.
func (sh *shard) inputLocal(p *packet) {
	sh.tally.countBy(p.src, IPDelivered)
	sh.inputTCP(p)
	if p.frame != nil {
		p.frame.Free()
	}
}

// dropLocal frees the segments that wait for delivery.
func (sh *shard) dropLocal() {
	for i := range sh.local {
		sh.local[i].frame.Free()
	}
	sh.local = nil
}
