package stack_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/stack"
	"loam/wire"
)

// Remote hosts that open more connections than the program accepts: SYN floods (RFC
// 4987), and programs that do not accept.

// flood sends n SYNs from n addresses that do not exist.
func (w *peer) flood(n int, port uint16) {
	for i := range n {
		src := netip.AddrFrom4([4]byte{10, 0, byte(1 + i/250), byte(1 + i%250)})
		h := wire.TCP{SrcPort: 4000, DstPort: port, Seq: uint32(i), Flags: wire.SYN, Window: 1000}
		h.MSS = 1460
		w.sendIP(wire.IPv4{Protocol: wire.ProtoTCP, Src: src}, segment(h, src, addrA, ""))
	}
}

// throughPeer routes everything through the peer, so that replies to a flood need no
// neighbours of their own.
func (w *peer) throughPeer() {
	w.t.Helper()
	if err := w.s.AddRoute(stack.Route{Dst: netip.MustParsePrefix("10.0.0.0/8"), Gateway: addrB, Interface: "eth0"}); err != nil {
		w.t.Fatal(err)
	}
}

func TestSYNFlood(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.throughPeer()
		l := mustListen(t, w.s, 80, 100)
		defer l.Close()
		old, established := w.accepted(l, 6000)
		w.flood(100, 80)
		w.wantCount("half-open connections are made as long as there is room for them", stack.TCPPassiveOpens, 1+100)
		w.wantCount("without cookies", stack.TCPCookiesSent, 0)
		w.forget()
		before := heapInUse()
		w.flood(5000, 80)
		if n := len(w.frames); n < 5000 {
			t.Errorf("%d of 5000 SYNs were answered", n)
		}
		w.forget()
		w.wantCount("beyond these hundred, a SYN is answered by a cookie", stack.TCPCookiesSent, 4900)
		w.wantCount("and nothing is kept", stack.TCPPassiveOpens, 1+100)
		if n := heapInUse() - before; n > 1<<20 {
			t.Errorf("5000 SYNs have left %d bytes", n)
		}
		old.send(wire.ACK, "still here?")
		wantRead(t, established, "a connection that is open is not disturbed", "still here?", nil)
		w.forget()
		_, c := w.accepted(l, 6001)
		w.wantCount("an honest client gets in by its cookie", stack.TCPEstablished, 2)
		c.Abort()
		established.Abort()
		w.advance(5 * time.Minute)
		w.forget()
		if _, c := w.accepted(l, 6002); c.RemoteAddrPort().Port() != 6002 {
			t.Error("the half-open connections have not gone away")
		}
		w.wantCount("once they have, a SYN is remembered again", stack.TCPPassiveOpens, 1+100+1+1)
	})
}

// Options of a SYN that do not fit into the cookie are returned in the timestamp.
func TestCookieKeepsOptions(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.throughPeer()
		l := mustListen(t, w.s, 80, 16)
		defer l.Close()
		w.flood(16, 80)
		w.forget()
		syn := wire.TCP{SrcPort: 5000, DstPort: 80, Seq: 99, Flags: wire.SYN, Window: 1000}
		syn.MSS, syn.HasTimestamps, syn.TSVal, syn.SACKPermitted, syn.HasWindowScale, syn.WindowScale = 1400, true, 7, true, true, 9
		w.sendIP(wire.IPv4{Protocol: wire.ProtoTCP}, segment(syn, addrB, addrA, ""))
		f := w.want("a cookie", "tcp 10.0.0.1:80 > 10.0.0.2:5000 SA")
		ack := wire.TCP{SrcPort: 5000, DstPort: 80, Seq: 100, Ack: f.tcp.Seq + 1, Flags: wire.ACK, Window: 100}
		ack.HasTimestamps, ack.TSVal, ack.TSEcr = true, 8, f.tcp.TSVal
		w.sendIP(wire.IPv4{Protocol: wire.ProtoTCP}, segment(ack, addrB, addrA, "first"))
		c, err := l.TryAccept()
		if err != nil {
			t.Fatal(err)
		}
		wantRead(t, c, "data may come with the cookie", "first", nil)
		if i := c.Info(); i.SndWScale != 9 || i.SndMSS != 1360-12 {
			t.Errorf("the connection has window scale %d and MSS %d", i.SndWScale, i.SndMSS)
		}
		c.Abort()
	})
}

func TestWrongCookies(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.throughPeer()
		l := mustListen(t, w.s, 80, 16)
		defer l.Close()
		p := w.tcp(5000, 80)
		before := w.s.Counters()
		p.sendAs(wire.TCP{Seq: 1, Ack: 12345, Flags: wire.ACK}, "")
		w.want("while no cookies are sent, an acknowledgment is no cookie", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
		w.wantRefused("it is counted", before, stack.TCPNoPort)
		w.wantCount("and not looked at as one", stack.TCPCookiesBad, 0)
		w.flood(17, 80)
		w.forget()
		for i := range uint32(1000) {
			p.sendAs(wire.TCP{Seq: 1, Ack: 12345 + i*77777, Flags: wire.ACK}, "")
			w.want("a guess is reset", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
		}
		w.wantCount("guesses are counted", stack.TCPCookiesBad, 1000)
		p.send(wire.SYN, "")
		p.want("a cookie", "SA", "")
		w.advance(5 * time.Minute)
		w.flood(17, 80)
		w.forget()
		p.send(wire.ACK, "")
		w.want("a cookie is good for two minutes at most", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
		if _, err := l.TryAccept(); err != stack.ErrWouldBlock {
			t.Errorf("accept: %v, want %v", err, stack.ErrWouldBlock)
		}
	})
}

// If a program does not accept, SYNs beyond its backlog are dropped, and the clients
// retransmit.
func TestAcceptQueueFull(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 3)
		defer l.Close()
		for port := range uint16(3) {
			w.tcp(5000+port, 80).connect()
		}
		before := w.s.Counters()
		late := w.tcp(6000, 80)
		late.send(wire.SYN, "")
		w.wantNone("a SYN beyond the backlog is dropped")
		w.wantRefused("it is counted", before, stack.TCPBacklogFull)
		first, err := l.TryAccept()
		if err != nil || first.RemoteAddrPort().Port() != 5000 {
			t.Fatalf("accept: %v, %v; want the oldest", first, err)
		}
		late.next--
		late.connect()
		for _, port := range []uint16{5001, 5002, 6000} {
			if c, err := l.TryAccept(); err != nil || c.RemoteAddrPort().Port() != port {
				t.Errorf("accept: %v, %v; want port %d", c, err, port)
			}
		}
	})
}

// However many handshakes complete at once, the accept queue is bounded by the backlog
// plus the connections that were half-open when it became full.
func TestAcceptQueueIsBounded(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 3)
		defer l.Close()
		var clients []*tcpPeer
		for port := range uint16(100) {
			p := w.tcp(5000+port, 80)
			p.send(wire.SYN, "")
			p.want("all SYNs come before the first acknowledgment", "SA", "")
			clients = append(clients, p)
		}
		for _, p := range clients {
			p.send(wire.ACK, "")
		}
		w.wantNone("acknowledgments are not answered")
		n := 0
		for {
			c, err := l.TryAccept()
			if err != nil {
				break
			}
			c.Abort()
			n++
		}
		if n != 16 {
			t.Errorf("%d connections wait, want the 16 that may be half open", n)
		}
		w.wantCount("the others, who had cookies, are dropped", stack.TCPBacklogFull, 100-16)
	})
}

// Closing a listener resets the connections that were not accepted.
func TestListenerClose(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 3)
		complete, half := w.tcp(5000, 80), w.tcp(5001, 80)
		complete.connect()
		half.send(wire.SYN, "")
		half.want("a handshake has begun", "SA", "")
		blocked := make(chan error, 1)
		other := mustListen(t, w.s, 81, 3)
		go func() {
			_, err := other.Accept()
			blocked <- err
		}()
		synctest.Wait()
		l.Close()
		other.Close()
		resets := map[string]bool{}
		for range 2 {
			f := w.next()
			if f == nil {
				break
			}
			resets[f.String()] = true
		}
		for _, text := range []string{"tcp 10.0.0.1:80 > 10.0.0.2:5000 RA", "tcp 10.0.0.1:80 > 10.0.0.2:5001 RA"} {
			if !resets[text] {
				t.Errorf("got %v, want %s", resets, text)
			}
		}
		if err := <-blocked; !isClosed(err) {
			t.Errorf("accept ends with %v, want %v", err, stack.ErrClosed)
		}
		if _, err := l.TryAccept(); err != stack.ErrClosed {
			t.Errorf("accept afterwards: %v, want %v", err, stack.ErrClosed)
		}
		late := w.tcp(5002, 80)
		late.send(wire.SYN, "")
		w.want("and nobody listens any more", "tcp 10.0.0.1:80 > 10.0.0.2:5002 RA")
	})
}
