package stack

import "loam/stack/tcp"

// arriving is a TCPConn in its role as tcp.Incoming: it stores the bytes that the TCP state machine (package tcp) receives
// in the connection's receive ring. A large payload is not copied; the ring keeps its frame until the program has read it.
type arriving TCPConn

// worthKeeping is the smallest payload whose frame is kept, in bytes. Every frame buffer has link.MaxFrame bytes, so a window
// of kept frames uses less than five times its size in memory. Smaller payloads are cheap to copy.
const worthKeeping = 16 << 10

// show passes a segment to the TCP machine (package tcp) of its connection. If the receive ring keeps the frame,
// p.frame is nil afterwards.
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
	if a.machine != nil { // the field machine is nil while tcp.Accept is creating the TCP state machine
		(*TCPConn)(a).noteUrgent()
	}
	a.received.Commit(off)
}

// Consumed implements tcp.Incoming.
func (a *arriving) Consumed() uint64 { return a.received.Consumed() }
