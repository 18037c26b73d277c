package stack

import "loam/stack/tcp"

// arriving is where a connection's machine puts the bytes that arrive: the ring that
// the program reads from. Payload that came in a large frame is not copied there; the
// ring keeps the frame until the program has read it.
type arriving TCPConn

// worthKeeping is the payload in bytes from which a frame is kept. Its buffer is
// link.MaxFrame long whatever is in it, so what a window holds takes less than five
// times as much memory; below, a copy costs little.
const worthKeeping = 16 << 10

// show shows a segment to the machine of its connection. If the ring keeps the frame,
// the packet is left without it.
func (sh *shard) show(c *TCPConn, p *packet, seg *tcp.Segment) {
	if len(seg.Payload) < worthKeeping {
		c.machine.Receive(sh.now, seg)
		return
	}
	sh.shown = p.frame
	c.machine.Receive(sh.now, seg)
	p.frame, sh.shown = sh.shown, nil
}

// WriteAt implements tcp.Incoming.
func (a *arriving) WriteAt(p []byte, off uint64) {
	sh := a.shard
	if sh.shown != nil && len(p) >= worthKeeping && a.received.Lend(p, off, sh.shown) {
		sh.shown = nil
		return
	}
	a.received.WriteAt(p, off)
}

// Commit implements tcp.Incoming.
func (a *arriving) Commit(off uint64) {
	if a.machine != nil { // it is not while it is being made
		(*TCPConn)(a).noteUrgent()
	}
	a.received.Commit(off)
}

// Consumed implements tcp.Incoming.
func (a *arriving) Consumed() uint64 { return a.received.Consumed() }
