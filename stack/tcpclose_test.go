package stack_test

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// Closing connections (RFC 9293 section 3.6), observed on the wire and by the program.

// openByHand runs a script with one open connection.
func openByHand(t *testing.T, script func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn)) {
	t.Helper()
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p, c := w.accepted(l, 5000)
		script(t, w, p, c)
	})
}

func TestCloseFirst(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		mustWrite(t, c, "bye")
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		p.want("what was written is sent", "A", "bye")
		p.want("and then the end", "FA", "")
		p.send(wire.ACK, "")
		p.send(wire.FIN|wire.ACK, "")
		p.want("the peer's end is acknowledged", "A", "")
		w.advance(59 * time.Second)
		p.next--
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.FIN | wire.ACK}, "")
		p.next++
		p.want("and again, when the acknowledgment was lost (TIME-WAIT)", "A", "")
		w.advance(61 * time.Second)
		p.sendAs(wire.TCP{Seq: p.next - 1, Ack: p.expect, Flags: wire.FIN | wire.ACK}, "")
		w.want("after two segment lifetimes nobody remembers", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
	})
}

func TestCloseSecond(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.send(wire.ACK, "last words")
		p.send(wire.FIN|wire.ACK, "")
		w.forget()
		wantRead(t, c, "data in front of the end", "last words", nil)
		wantRead(t, c, "the end", "", io.EOF)
		mustWrite(t, c, "I heard you")
		p.want("this side may go on (half close)", "A", "I heard you")
		c.Close()
		p.want("its own end", "FA", "")
		p.send(wire.ACK, "")
		w.wantNone("it is over")
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.ACK}, "")
		w.want("without TIME-WAIT at this side", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
	})
}

func TestHalfClose(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		if err := c.CloseWrite(); err != nil {
			t.Errorf("CloseWrite: %v", err)
		}
		p.want("the end of one direction", "FA", "")
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("writing after it: %v, want EPIPE", err)
		}
		p.send(wire.ACK, "")
		w.advance(time.Hour)
		p.send(wire.ACK, "the answer")
		wantRead(t, c, "the other goes on, however long", "the answer", nil)
		p.send(wire.FIN|wire.ACK, "")
		wantRead(t, c, "until it ends too", "", io.EOF)
		c.Close()
	})
}

// RFC 9293 section 3.6.1: the peer is informed with a reset if its data is discarded.
func TestCloseWithUnreadData(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.send(wire.ACK, "unread")
		w.forget()
		c.Close()
		p.want("a reset instead of a FIN", "RA", "")
	})
}

// A program closes a connection without reading all data. The peer first gets the data that the program wrote before,
// such as a server's reply to a request that it has not read completely.
func TestCloseWithUnreadDataAndAnAnswer(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.send(wire.ACK, "unread")
		w.forget()
		if _, err := c.Write([]byte("too long")); err != nil {
			t.Fatal(err)
		}
		c.Close()
		p.want("the answer", "A", "too long")
		p.want("and a reset", "RA", "")
	})
}

func TestDataAfterClose(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		c.Close()
		p.want("the end", "FA", "")
		p.send(wire.ACK, "are you there?")
		w.want("nobody is: a reset", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
	})
}

func TestLingerZero(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		if err := c.SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.Close()
		p.want("linger 0 resets", "RA", "")
		w.wantNone("and that is all")
	})
}

// A reset after the end of the peer's stream: the program can only write, and gets EPIPE as on Linux.
func TestResetAfterTheEnd(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.send(wire.ACK, "before")
		p.send(wire.FIN|wire.ACK, "")
		w.forget()
		p.send(wire.RST, "")
		w.advance(0)
		if err := c.Err(); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the error is %v, want EPIPE", err)
		}
		wantRead(t, c, "data in front of the end", "before", nil)
		wantRead(t, c, "the end", "", io.EOF)
		w.wantCount("a reset", stack.TCPResets, 1)
		c.Close()
	})
}

// A connection counts as over when it was reset, or when both sides have ended their stream.
func TestOver(t *testing.T) {
	want := func(t *testing.T, c *stack.TCPConn, want bool, when string) {
		t.Helper()
		if c.Over() != want {
			t.Errorf("%s: over is %v", when, !want)
		}
	}
	for name, script := range map[string]func(*testing.T, *peer, *tcpPeer, *stack.TCPConn){
		"reset": func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
			p.send(wire.ACK, "unread")
			w.forget()
			want(t, c, false, "open")
			p.send(wire.RST, "")
			w.advance(0)
			want(t, c, true, "after a reset")
			c.Close()
		},
		"closed first": func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
			c.CloseWrite()
			p.want("the end", "FA", "")
			p.send(wire.ACK, "")
			want(t, c, false, "in FIN-WAIT-2")
			p.send(wire.FIN|wire.ACK, "")
			p.want("the peer's end is acknowledged", "A", "")
			want(t, c, true, "in TIME-WAIT")
			c.Close()
		},
		"closed second": func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
			p.send(wire.FIN|wire.ACK, "")
			w.forget()
			c.CloseWrite()
			p.want("the end", "FA", "")
			want(t, c, false, "in LAST-ACK")
			p.send(wire.ACK, "")
			w.advance(0)
			want(t, c, true, "after the last acknowledgment")
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) { openByHand(t, script) })
	}
}

// A reset by the peer: the error is returned once, after the data; then end of file.
func TestResetByPeer(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.send(wire.ACK, "before")
		w.forget()
		p.send(wire.RST, "")
		wantRead(t, c, "what came before the reset", "before", nil)
		_, err := c.Read(make([]byte, 1))
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("then %v, want ECONNRESET", err)
		}
		wantRead(t, c, "then the end", "", io.EOF)
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("writing: %v, want EPIPE", err)
		}
		w.wantCount("a reset", stack.TCPResets, 1)
		c.Close()
	})
}

// Data to a peer that has gone is retransmitted with doubling intervals; then the program
// gets an error.
func TestPeerGone(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		mustWrite(t, c, "hello?")
		w.advance(time.Hour)
		_, err := c.Read(make([]byte, 1))
		if !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("read: %v, want ETIMEDOUT", err)
		}
		n := 0
		for w.next() != nil {
			n++
		}
		if n < 10 || n > 20 {
			t.Errorf("the data was sent %d times", n)
		}
		w.wantCount("it is counted", stack.TCPTimeouts, 1)
		c.Close()
	})
}

// A peer that keeps its window closed does not keep a connection alive that the program
// has closed.
func TestClosedWindowAfterClose(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		mustWrite(t, c, "more than fits")
		p.want("data", "A", "more than fits")
		c.Close()
		p.expect -= 14
		for range 2000 {
			w.advance(time.Second)
			if w.next() != nil {
				p.sendZeroWindow()
			}
		}
		w.forget()
		p.sendZeroWindow()
		w.want("half an hour later nobody remembers", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
	})
}

// sendZeroWindow acknowledges the expected data and closes the window.
func (p *tcpPeer) sendZeroWindow() {
	h := wire.TCP{SrcPort: p.local.Port(), DstPort: p.remote.Port(), Seq: p.next, Ack: p.expect, Flags: wire.ACK}
	p.w.sendIP(wire.IPv4{Protocol: wire.ProtoTCP}, segment(h, p.local.Addr(), p.remote.Addr(), ""))
}

// After CloseRead, received data is discarded, and the peer is not blocked.
func TestCloseRead(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.send(wire.ACK, "unread")
		if err := c.CloseRead(); err != nil {
			t.Errorf("CloseRead: %v", err)
		}
		wantRead(t, c, "reading ends", "", io.EOF)
		big := string(make([]byte, 1400))
		for range 200 {
			p.send(wire.ACK, big)
		}
		w.advance(time.Second)
		last := p.lastAck()
		if last.Ack != p.next || last.Window == 0 {
			t.Errorf("280 kB later the peer is told of window %d and that %d bytes are missing", last.Window, p.next-last.Ack)
		}
		mustWrite(t, c, "still writing")
		p.want("the other direction is open", "A", "still writing")
		c.Close()
		p.want("and the end is an end, not a reset", "FA", "")
	})
}

// lastAck returns the last segment on the wire.
func (p *tcpPeer) lastAck() (last wire.TCP) {
	p.w.t.Helper()
	for f := p.w.next(); f != nil; f = p.w.next() {
		last = *f.tcp
	}
	return last
}

func TestCloseWriteBeforeConnected(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c, err := w.s.DialTCP(unspecified, mustAddrPort("10.0.0.2:80"), stack.TCPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CloseWrite(); !errors.Is(err, syscall.ENOTCONN) {
			t.Errorf("CloseWrite: %v, want ENOTCONN", err)
		}
		p := w.tcp(80, 0)
		p.take("a SYN")
		p.send(wire.SYN|wire.ACK, "")
		p.want("the handshake goes on", "A", "")
		mustWrite(t, c, "hello")
		p.want("and writing is still possible", "A", "hello")
		c.Abort()
	})
}

// A connection that is opened, used and reset before the shard serves it belongs to no
// program. Its data is freed, which the cleanup checks.
func TestOpenedAndResetAtOnce(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p := w.tcp(5000, 80)
		p.send(wire.SYN, "")
		p.want("the SYN is answered", "SA", "")
		w.hold()
		p.send(wire.ACK, "hello")
		p.send(wire.RST, "")
		w.release()
		w.wantNone("it is over")
		if _, err := l.TryAccept(); err != stack.ErrWouldBlock {
			t.Errorf("accept: %v, want %v", err, stack.ErrWouldBlock)
		}
	})
}
