package stack

import (
	"loam/link"
	"loam/wire"
)

// Which goroutine runs a shard's turn. Normally the shard's loop does. Then receiving, processing and the program run
// in parallel on several CPUs. For a single small message that is slow: each goroutine on its way must be woken, often
// on another thread, and waking costs more than the work. So a goroutine that has a small amount of work and finds the
// shard idle runs the turn itself.
//
// Such a turn is the same as one of loop. It never blocks, so a program's goroutine is delayed no longer than by a
// system call that sends. The functions that a shard calls back in a turn may run on a goroutine that is inside a
// method of a socket. They must not take a lock that is held while calling such a method.
//
// The order of packets is preserved. Batches sent to the loop are counted until they are processed; while there are
// any, later batches queue behind them. A loop that has been woken waits for the current turn to end.

// lightBytes is the largest batch or write, in bytes, for which a receiver or a program's goroutine runs the shard's
// turn. Above it, working in parallel is faster.
const lightBytes = 16 << 10

// turnNow runs a turn of the shard on the calling goroutine. It returns false if it cannot; the caller
// must then ring the shard's inbox so that loop processes the requests.
func (sh *shard) turnNow() bool {
	if !sh.owner.TryLock() {
		return false
	}
	defer sh.owner.Unlock()
	if sh.stopping {
		return false
	}
	sh.beginTurn()
	sh.turn()
	return true
}

// inputNow runs a turn of the shard with a batch of packets. It returns false, and leaves the batch to
// the caller, if the batch is large or the shard is busy.
func (sh *shard) inputNow(b *batch) bool {
	if !b.light() || !sh.owner.TryLock() {
		return false
	}
	defer sh.owner.Unlock()
	if sh.stopping || sh.queued.Load() > 0 {
		return false
	}
	sh.beginTurn()
	sh.input(b)
	sh.turn()
	return true
}

// enqueue passes a batch to loop. It blocks while rx is full.
func (sh *shard) enqueue(b *batch) {
	sh.queued.Add(1)
	sh.rx <- b
}

// light reports whether a batch has at most lightBytes bytes.
func (b *batch) light() bool {
	bytes := 0
	for i := range b.packets[:b.n] {
		bytes += b.packets[i].frame.Len()
	}
	return bytes <= lightBytes
}

// TCP segments between two connections of this host. Both directions of a flow belong to one shard, so the shard delivers
// such a segment itself, in the turn that sends it. The loopback device would wake a receiver to pass the frame back to the
// same shard. With sockets that see all frames or IP packets of the host, segments do go through the device.

// maxLocal bounds the local segments that wait for delivery, as the queue of the loopback device does. maxExchanges bounds
// how often a turn delivers local segments and asks for output again, so that the turn ends.
const maxLocal, maxExchanges = 256, 8

// isLocal reports whether segments on a link are delivered by the shard itself.
func (l *txLink) isLocal() bool {
	s := l.shard.stack
	return l.ifc.local != nil && s.linkConns.Load() == nil && s.raws.Load() == nil
}

// sendLocal queues a segment for delivery in this turn. It takes ownership of f, which starts with the TCP header. The
// addresses need no checks of a receiver: the route has shown that dst is an address of this host.
func (c *TCPConn) sendLocal(sh *shard, l *txLink, f *link.Frame, tos, ttl uint8) {
	src, dst := c.local.Addr().WithZone(""), c.remote.Addr().WithZone("")
	f.ChecksumValid = true
	bytes := f.Len() + wire.IPv4MinLen
	if dst.Is6() {
		bytes += wire.IPv6Len - wire.IPv4MinLen
	}
	sh.tally.countSent(dst, bytes)
	sh.tally.countBy(dst, IPReceived)
	l.ifc.local.Count(1, bytes)
	sh.local = append(sh.local, packet{frame: f, ifc: l.ifc, src: src, dst: dst, proto: wire.ProtoTCP, tos: tos, ttl: ttl})
}

// exchange delivers local segments, and asks the connections for more output, until none is left.
func (sh *shard) exchange() {
	for n := 0; n < maxExchanges && len(sh.local) > 0; n++ {
		packets := sh.local
		sh.local = sh.spareLocal[:0]
		for i := range packets {
			p := &packets[i]
			sh.tally.countBy(p.src, IPDelivered)
			if sh.inputTCP(p); p.frame != nil {
				p.frame.Free()
			}
		}
		clear(packets)
		sh.spareLocal = packets[:0]
		sh.output()
	}
	if len(sh.local)+len(sh.dirty) > 0 { // continue after the input
		sh.inbox.ring()
	}
}
