package stack_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"

	"loam/stack"
	"loam/wire"
)

// tcpPeer is the peer's end of a TCP connection, played by hand. It tracks both sequence
// numbers, so that a script states only what matters:
//
//	p.send(wire.SYN, "")                          the next segment of the peer
//	p.want("the SYN is answered", "SA", "")       the next segment of the stack
//
// want also checks the sequence number, the ports and the acknowledgment number. PSH is
// not compared. The only option that the peer offers is MSS, so windows are not scaled.
type tcpPeer struct {
	w      *peer
	local  netip.AddrPort // the peer's address and port
	remote netip.AddrPort // the stack's address and port
	next   uint32         // sequence number of the peer's next segment
	expect uint32         // sequence number expected from the stack
	window uint16         // window that the peer offers, in bytes
	mss    uint16         // maximum segment size in the peer's SYN
}

// tcp returns a connection from a port of the peer to a port of the stack.
func (w *peer) tcp(from, to uint16) *tcpPeer {
	return &tcpPeer{
		w: w, local: netip.AddrPortFrom(addrB, from), remote: netip.AddrPortFrom(addrA, to),
		next: 1_000_000, window: 60000, mss: 1460,
	}
}

// send sends the next segment. With the ACK flag it acknowledges everything received.
func (p *tcpPeer) send(flags wire.TCPFlags, data string) {
	p.w.t.Helper()
	h := wire.TCP{Flags: flags, Seq: p.next}
	if flags.Has(wire.ACK) {
		h.Ack = p.expect
	}
	p.sendAs(h, data)
	p.next += segmentLen(flags, data)
}

// segmentLen returns SEG.LEN.
func segmentLen(flags wire.TCPFlags, data string) uint32 {
	n := uint32(len(data))
	if flags.Has(wire.SYN) {
		n++
	}
	if flags.Has(wire.FIN) {
		n++
	}
	return n
}

// sendAs sends a segment out of sequence.
func (p *tcpPeer) sendAs(h wire.TCP, data string) {
	p.w.t.Helper()
	h.SrcPort, h.DstPort = p.local.Port(), p.remote.Port()
	if h.Window == 0 {
		h.Window = p.window
	}
	if h.Flags.Has(wire.SYN) {
		h.MSS = p.mss
	}
	p.w.sendIP(wire.IPv4{Protocol: wire.ProtoTCP, Src: p.local.Addr(), Dst: p.remote.Addr()}, segment(h, p.local.Addr(), p.remote.Addr(), data))
}

// segment returns a TCP segment with its checksum.
func segment(h wire.TCP, src, dst netip.Addr, data string) []byte {
	b := make([]byte, h.Len(), h.Len()+len(data))
	h.Put(b)
	b = append(b, data...)
	wire.PutTCPChecksum(b, src, dst)
	return b
}

// want checks that the next frame is the next segment of this connection, has these flags
// and this data, and acknowledges everything the peer has sent.
func (p *tcpPeer) want(sentence, flags, data string) *seen {
	p.w.t.Helper()
	f := p.w.next()
	switch {
	case f == nil:
		p.w.t.Fatalf("%s: there is nothing on the wire, want %s %q", sentence, flags, data)
	case f.tcp == nil || f.tcp.SrcPort != p.remote.Port() || f.tcp.DstPort != p.local.Port():
		p.w.t.Fatalf("%s: there is %s on the wire, want %s %q", sentence, f, flags, data)
	case (f.tcp.Flags&^wire.PSH).String() != flags || string(f.data) != data:
		p.w.t.Fatalf("%s:\n got %s\nwant %s %.100q", sentence, f, flags, data)
	case f.tcp.Flags.Has(wire.SYN) && p.expect == 0:
		p.expect = f.tcp.Seq
	case f.tcp.Seq != p.expect:
		p.w.t.Fatalf("%s: %s has number %d, want %d", sentence, f, int32(f.tcp.Seq-p.expect), 0)
	}
	if f.tcp.Flags.Has(wire.ACK) && f.tcp.Ack != p.next {
		p.w.t.Fatalf("%s: %s acknowledges %d, want %d", sentence, f, int32(f.tcp.Ack-p.next), 0)
	}
	p.expect += segmentLen(f.tcp.Flags, data)
	return f
}

// connect opens the connection from the peer's side.
func (p *tcpPeer) connect() {
	p.w.t.Helper()
	p.send(wire.SYN, "")
	p.want("a SYN is answered", "SA", "")
	p.send(wire.ACK, "")
}

// take accepts the SYN of a connection that the stack opens.
func (p *tcpPeer) take(sentence string) *seen {
	p.w.t.Helper()
	f := p.w.next()
	if f == nil || f.tcp == nil || f.tcp.Flags != wire.SYN || f.tcp.DstPort != p.local.Port() {
		p.w.t.Fatalf("%s: there is %v on the wire, want a SYN", sentence, f)
	}
	p.remote = netip.AddrPortFrom(f.ip.Src, f.tcp.SrcPort)
	p.expect = f.tcp.Seq + 1
	return f
}

func portText(a netip.AddrPort) string { return strconv.Itoa(int(a.Port())) }

// mustListen listens on a port of the stack.
func mustListen(t testing.TB, s *stack.Stack, port uint16, backlog int) *stack.TCPListener {
	t.Helper()
	l, err := s.ListenTCP(netip.AddrPortFrom(netip.Addr{}, port), backlog, stack.TCPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// accepted opens a connection from the peer and returns both ends.
func (w *peer) accepted(l *stack.TCPListener, from uint16) (*tcpPeer, *stack.TCPConn) {
	w.t.Helper()
	p := w.tcp(from, l.LocalAddrPort().Port())
	p.connect()
	c, err := l.TryAccept()
	if err != nil {
		w.t.Fatalf("accept after the handshake: %v", err)
	}
	return p, c
}

// wantRead checks the result of a read from a connection.
func wantRead(t testing.TB, c *stack.TCPConn, sentence, data string, want error) {
	t.Helper()
	synctest.Wait()
	b := make([]byte, 1<<20)
	n, err := c.TryRead(b)
	if string(b[:n]) != data || err != want {
		t.Errorf("%s: read %q, %v; want %q, %v", sentence, b[:n], err, data, want)
	}
}

func mustWrite(t testing.TB, c io.Writer, data string) {
	t.Helper()
	if n, err := c.Write([]byte(data)); n != len(data) || err != nil {
		t.Fatalf("wrote %d of %d bytes, %v", n, len(data), err)
	}
}

// dialing is a call of Dial in progress.
type dialing struct {
	done chan struct{} // closed by the goroutine that dials
	conn net.Conn
	err  error
}

func startDial(s *stack.Stack, network, address string) *dialing {
	d := &dialing{done: make(chan struct{})}
	go func() {
		defer close(d.done)
		d.conn, d.err = s.Dial(network, address)
	}()
	synctest.Wait()
	return d
}

// returned reports whether Dial has returned.
func (d *dialing) returned() bool {
	synctest.Wait()
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) }
