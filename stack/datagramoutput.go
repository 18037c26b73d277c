package stack

import (
	"net/netip"

	"loam/link"
)

// Output of datagrams. A program's goroutine builds a datagram and queues it for the shard of its flow (submit). The
// shard sends it when the device has room. A queued datagram counts against its socket's send buffer, so a stuck device
// blocks programs instead of filling memory.

// outgoing is a datagram being sent: a complete IP packet and its path.
type outgoing struct {
	frame *link.Frame
	path  path
	owner datagramOwner
	size  int            // number of bytes to report to owner.sent
	local netip.AddrPort // local address and port, which select the shard
	loops bool           // broadcast or multicast that this host may receive too: see shard.loopBack
}

// datagramOwner is the socket that sent a datagram.
type datagramOwner interface {
	// sent reports that size bytes are no longer queued: the device has them, or they were dropped. It is called by a shard.
	sent(size int)
}

// defaultSendBuffer is the default limit of queued data per socket, in bytes of frame buffers.
const defaultSendBuffer = 1 << 20

// submit queues a datagram for the shard. If the datagram goes to this host, the calling goroutine does the shard's
// work if it can, because waking the shard's loop costs more than the work. A datagram to another host is left to the
// loop, which sends several datagrams with one call to the device.
func (sh *shard) submit(o *outgoing) {
	// the frame belongs to the shard after it is queued, so it is examined before
	here := o.path.ifc.loopback && o.frame.Len() <= lightBytes
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
	if !here || !sh.turnNow() {
		sh.inbox.ring()
	}
}

// sendDatagram sends a datagram now, or queues it until the device has room.
func (sh *shard) sendDatagram(o *outgoing) {
	if o.path.tables != sh.tables && sh.tables.byIndex(o.path.ifc.index) == nil {
		o.drop() // the interface was detached
		return
	}
	l := sh.link(o.path.ifc)
	if l.datagrams.Len() > 0 || !l.room() {
		l.datagrams.Push(*o)
		return
	}
	sh.sendNow(o)
}

// sendNow sends a datagram. The caller has checked for room.
func (sh *shard) sendNow(o *outgoing) {
	if o.loops {
		sh.loopBack(o)
	}
	sh.sendIP(&o.path, o.frame)
	o.owner.sent(o.size)
}

// drop frees a datagram without sending it, and informs its owner.
func (o *outgoing) drop() {
	o.frame.Free()
	o.owner.sent(o.size)
}

// resumeDatagrams sends datagrams that were queued while the device was full.
func (l *txLink) resumeDatagrams() {
	for l.datagrams.Len() > 0 && l.room() {
		o := l.datagrams.Pop()
		l.shard.sendNow(&o)
	}
}
