package stack

import (
	"net/netip"
	"sync/atomic"

	"loam/link"
)

// How datagrams leave: a program builds one on its own goroutine and leaves it to
// the shard of its flow (submit), which sends it when the device has room. What
// is on the way counts against the send buffer of its socket, so a device that
// is stuck makes programs wait instead of filling the memory.

// outgoing is a datagram on its way: a whole IP packet and where it goes.
type outgoing struct {
	frame *link.Frame
	path  path
	owner datagramOwner
	size  int            // bytes that owner.sent is told of
	local netip.AddrPort // for choosing the shard
	loops bool           // it is to many, and this host may be one of them: see shard.loopBack
}

// datagramOwner is the socket that sends a datagram.
type datagramOwner interface {
	// sent tells that size bytes are not on the way any more: the device has
	// them, or they were dropped. It is called by a shard.
	sent(size int)
}

// sendBuffer counts what a socket has on the way.
type sendBuffer struct {
	pending atomic.Int64 // bytes of buffers
	starved atomic.Bool  // somebody found no room
}

// defaultSendBuffer is how many bytes of buffers a socket may have on their way to
// the device.
const defaultSendBuffer = 1 << 20

// room reports whether a datagram may be sent now, and otherwise arranges that
// give will say when.
func (b *sendBuffer) room(limit int) bool {
	if b.pending.Load() < int64(limit) {
		return true
	}
	b.starved.Store(true)
	return b.pending.Load() < int64(limit)
}

func (b *sendBuffer) take(size int) { b.pending.Add(int64(size)) }

// give undoes take and reports whether somebody waits for that.
func (b *sendBuffer) give(size int) bool {
	b.pending.Add(int64(-size))
	return b.starved.Load() && b.starved.Swap(false)
}

// submit leaves a datagram to the shard.
func (sh *shard) submit(o *outgoing) {
	sh.inbox.mu.Lock()
	ended := sh.inbox.ended
	if !ended {
		sh.inbox.in.sends = append(sh.inbox.in.sends, *o)
	}
	sh.inbox.mu.Unlock()
	if ended {
		o.drop()
		return
	}
	sh.inbox.ring()
}

// sendDatagram sends now or, when the device is full, once it is not.
func (sh *shard) sendDatagram(o *outgoing) {
	if o.path.tables != sh.tables && sh.tables.byIndex(o.path.ifc.index) == nil {
		o.drop() // the interface was detached meanwhile
		return
	}
	l := sh.link(o.path.ifc)
	if len(l.datagrams) > 0 || !l.room() {
		l.datagrams = append(l.datagrams, *o)
		return
	}
	sh.sendNow(o)
}

func (sh *shard) sendNow(o *outgoing) {
	if o.loops {
		sh.loopBack(o)
	}
	sh.sendIP(&o.path, o.frame)
	o.owner.sent(o.size)
}

// drop gives up a datagram.
func (o *outgoing) drop() {
	o.frame.Free()
	o.owner.sent(o.size)
}

// resumeDatagrams sends what programs have written while the device was full.
func (l *txLink) resumeDatagrams() {
	for i := range l.datagrams {
		if !l.room() {
			rest := copy(l.datagrams, l.datagrams[i:])
			clear(l.datagrams[rest:])
			l.datagrams = l.datagrams[:rest]
			return
		}
		l.shard.sendNow(&l.datagrams[i])
	}
	clear(l.datagrams)
	l.datagrams = l.datagrams[:0]
}
