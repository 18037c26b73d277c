package stack_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// The tests of this file check TIME-WAIT (RFC 9293 section 3.6.1) as remote hosts see it, and its cost.

// closed takes a connection to TIME-WAIT at the stack.
func (w *peer) closed(l *stack.TCPListener, from uint16) *tcpPeer {
	w.t.Helper()
	p := w.ending(l, from)
	p.send(wire.FIN|wire.ACK, "")
	p.want("the peer's end is acknowledged", "A", "")
	return p
}

// ending makes a program close a connection and lets the peer receive the FIN.
func (w *peer) ending(l *stack.TCPListener, from uint16) *tcpPeer {
	w.t.Helper()
	p, c := w.accepted(l, from)
	c.Close()
	p.want("the end", "FA", "")
	return p
}

func TestTimeWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeer(t, stack.Config{Shards: 1, MaxTimeWait: 10}, pipe.Config{})
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		var peers []*tcpPeer
		for port := range uint16(15) {
			peers = append(peers, w.closed(l, 5000+port))
			w.advance(time.Second)
		}
		w.wantCount("beyond ten, one gives way for each", stack.TCPTimeWaitOverflow, 5)
		for i, p := range peers {
			p.next--
			p.send(wire.FIN|wire.ACK, "")
			if i < 5 {
				w.want("the oldest are forgotten", "tcp 10.0.0.1:80 > 10.0.0.2:"+portText(p.local)+" R")
			} else {
				p.want("the others answer", "A", "")
			}
		}
		w.advance(59 * time.Second)
		peers[14].next--
		peers[14].send(wire.FIN|wire.ACK, "")
		peers[14].want("an answer begins the wait anew", "A", "")
		w.advance(59 * time.Second)
		peers[14].sendAs(wire.TCP{Seq: peers[14].next - 1, Ack: peers[14].expect, Flags: wire.FIN | wire.ACK}, "")
		peers[14].want("so it is still there", "A", "")
		w.advance(61 * time.Second)
		peers[14].sendAs(wire.TCP{Seq: peers[14].next - 1, Ack: peers[14].expect, Flags: wire.FIN | wire.ACK}, "")
		w.want("until its time is over", "tcp 10.0.0.1:80 > 10.0.0.2:5014 R")
	})
}

// A SYN newer than the old connection starts a new one (RFC 9293 section 3.10.7.4, RFC
// 6191); any other SYN is answered with an acknowledgment.
func TestTimeWaitReuse(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p := w.closed(l, 5000)
		p.sendAs(wire.TCP{Seq: p.next - 100, Flags: wire.SYN}, "")
		p.want("an old SYN is challenged", "A", "")
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.RST}, "")
		p.next += 1000
		p.expect = 0
		p.connect()
		c, err := l.TryAccept()
		if err != nil {
			t.Fatalf("a new SYN begins a connection: %v", err)
		}
		p.send(wire.ACK, "hello")
		wantRead(t, c, "which works", "hello", nil)
		c.Abort()
	})
}

// The port of a connection in TIME-WAIT is not reused with the same peer, and is free
// afterwards.
func TestTimeWaitHoldsPort(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		local, remote := mustAddrPort("10.0.0.1:3000"), netip.AddrPortFrom(addrB, 80)
		dial := func() (*stack.TCPConn, error) { return w.s.DialTCP(local, remote, stack.TCPOptions{}) }
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		p := w.tcp(80, 0)
		p.take("a SYN")
		p.send(wire.SYN|wire.ACK, "")
		p.want("the handshake", "A", "")
		c.Close()
		p.want("the end", "FA", "")
		p.send(wire.FIN|wire.ACK, "")
		p.want("TIME-WAIT", "A", "")
		if _, err := dial(); err == nil {
			t.Error("the same connection was opened again")
		}
		w.advance(61 * time.Second)
		if c, err = dial(); err != nil {
			t.Errorf("a minute later: %v", err)
		}
		c.Abort()
	})
}

// A program that keeps a connection in TIME-WAIT open can still query it.
func TestTimeWaitHeld(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		c.CloseWrite()
		p.want("the end", "FA", "")
		p.send(wire.ACK|wire.FIN, "")
		p.want("TIME-WAIT", "A", "")
		if s := c.Info().State.String(); s != "TIME-WAIT" {
			t.Errorf("the state is %s", s)
		}
		c.Close()
		if s := c.Info().State.String(); s != "TIME-WAIT" {
			t.Errorf("closed, the state is %s", s)
		}
		w.advance(61 * time.Second)
		if s := c.Info().State.String(); s != "CLOSED" {
			t.Errorf("a minute later the state is %s", s)
		}
	})
}

// The state kept for a connection in TIME-WAIT is small.
func TestTimeWaitMemory(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		w.closed(l, 4999)
		const n = 1000
		before := heapInUse()
		for port := range uint16(n) {
			w.closed(l, 5000+port)
		}
		if each := (heapInUse() - before) / n; each > 1500 {
			t.Errorf("a connection in TIME-WAIT takes %d bytes", each)
		} else {
			t.Logf("a connection in TIME-WAIT takes %d bytes", each)
		}
	})
}

func TestIdleMemory(t *testing.T) {
	if n := idleConnections(t, 500); n > 2*4096 {
		t.Errorf("an idle connection takes %d bytes, both ends together", n)
	}
}
