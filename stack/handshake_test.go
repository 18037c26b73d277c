package stack_test

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// Opening connections (RFC 9293 sections 3.5 and 3.10.7), observed on the wire.

func TestPassiveOpen(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p := w.tcp(5000, 80)
		p.send(wire.SYN, "")
		p.want("a SYN is answered", "SA", "")
		if _, err := l.TryAccept(); err != stack.ErrWouldBlock {
			t.Errorf("accept in the middle of the handshake: %v, want %v", err, stack.ErrWouldBlock)
		}
		p.send(wire.ACK, "")
		w.wantNone("the handshake is complete")
		c, err := l.TryAccept()
		if err != nil {
			t.Fatal(err)
		}
		if c.LocalAddr().String() != "10.0.0.1:80" || c.RemoteAddr().String() != "10.0.0.2:5000" {
			t.Errorf("the connection is between %v and %v", c.LocalAddr(), c.RemoteAddr())
		}
		p.send(wire.ACK|wire.PSH, "hello")
		p.want("data is acknowledged at once, at the start", "A", "")
		wantRead(t, c, "data goes up", "hello", nil)
		mustWrite(t, c, "hi")
		p.want("and down", "A", "hi")
		c.Abort()
		p.want("a connection that is aborted is reset", "RA", "")
	})
}

func TestActiveOpen(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		d := startDial(w.s, "tcp", "10.0.0.2:80")
		p := w.tcp(80, 0)
		f := p.take("a SYN goes out")
		if f.tcp.MSS != 1460 || !f.ip.DontFragment || f.ip.TTL != 64 {
			t.Errorf("it has MSS %d, DF %v, TTL %d", f.tcp.MSS, f.ip.DontFragment, f.ip.TTL)
		}
		p.send(wire.SYN|wire.ACK, "")
		p.want("its answer is acknowledged", "A", "")
		if !d.returned() || d.err != nil {
			t.Fatalf("Dial: returned %v, %v", d.returned(), d.err)
		}
		c := d.conn.(*stack.TCPConn)
		if c.LocalAddr().(*net.TCPAddr).IP.String() != "10.0.0.1" {
			t.Errorf("the local address is %v", c.LocalAddr())
		}
		c.Abort()
	})
}

// RFC 9293 figure 8: both ends send a SYN, and one connection results.
func TestSimultaneousOpen(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		d := startDial(w.s, "tcp", "10.0.0.2:80")
		p := w.tcp(80, 0)
		p.take("a SYN goes out")
		p.send(wire.SYN, "")
		p.expect--
		p.want("the other SYN is answered", "SA", "")
		p.next--
		p.send(wire.SYN|wire.ACK, "")
		p.want("then both are open", "A", "")
		if !d.returned() || d.err != nil {
			t.Fatalf("Dial: returned %v, %v", d.returned(), d.err)
		}
		c := d.conn.(*stack.TCPConn)
		p.send(wire.ACK, "hello")
		wantRead(t, c, "data arrives", "hello", nil)
		c.Abort()
	})
}

func TestRefused(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		d := startDial(w.s, "tcp", "10.0.0.2:80")
		p := w.tcp(80, 0)
		p.take("a SYN goes out")
		p.send(wire.RST|wire.ACK, "")
		if !d.returned() {
			t.Fatal("Dial goes on after a reset")
		}
		var op *net.OpError
		if !errors.Is(d.err, syscall.ECONNREFUSED) || !errors.As(d.err, &op) || op.Op != "dial" || op.Net != "tcp" || op.Addr.String() != "10.0.0.2:80" {
			t.Errorf("Dial: %#v, want ECONNREFUSED", d.err)
		}
		w.wantCount("a reset of the peer's", stack.TCPResets, 1)
	})
}

// RFC 9293 section 3.10.7.1: a segment to a port without a listener is answered with a reset, unless it is a reset
// itself.
func TestClosedPort(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		before := w.s.Counters()
		p := w.tcp(5000, 9)
		p.send(wire.SYN, "")
		f := w.want("a SYN is reset", "tcp 10.0.0.1:9 > 10.0.0.2:5000 RA")
		if f.tcp.Seq != 0 || f.tcp.Ack != p.next {
			t.Errorf("the reset has number %d and acknowledges %d, want 0 and %d", f.tcp.Seq, f.tcp.Ack, p.next)
		}
		w.wantRefused("it is counted", before, stack.TCPNoPort)
		p.sendAs(wire.TCP{Seq: 77, Ack: 99, Flags: wire.ACK}, "data")
		f = w.want("a segment with ACK is reset", "tcp 10.0.0.1:9 > 10.0.0.2:5000 R")
		if f.tcp.Seq != 99 {
			t.Errorf("the reset has number %d, want that of the acknowledgment, 99", f.tcp.Seq)
		}
		p.sendAs(wire.TCP{Seq: 77, Flags: wire.RST}, "")
		w.wantNone("a reset is never answered")
		w.wantCount("resets", stack.TCPResetsSent, 2)
	})
}

// A listener accepts only SYNs (RFC 9293 section 3.10.7.2).
func TestListenerRefuses(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p := w.tcp(5000, 80)
		p.sendAs(wire.TCP{Seq: 5, Flags: wire.RST}, "")
		w.wantNone("a reset is ignored")
		p.sendAs(wire.TCP{Seq: 5, Ack: 7, Flags: wire.ACK}, "")
		w.want("an acknowledgment is reset", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
		p.sendAs(wire.TCP{Seq: 5, Ack: 7, Flags: wire.SYN | wire.ACK}, "")
		w.want("a SYN that acknowledges is reset", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
		p.sendAs(wire.TCP{Seq: 5, Flags: wire.FIN}, "")
		w.wantNone("what is neither is ignored")
		p.sendAs(wire.TCP{Seq: 5, Flags: wire.SYN | wire.FIN}, "")
		w.wantNone("nobody begins a connection by ending it")
		w.wantCount("and that is counted", stack.TCPMalformed, 1)
		p.send(wire.SYN, "")
		p.want("and a SYN is answered", "SA", "")
		p.send(wire.RST, "")
		p.send(wire.ACK, "")
		w.want("a reset undoes it", "tcp 10.0.0.1:80 > 10.0.0.2:5000 R")
		if _, err := l.TryAccept(); err != stack.ErrWouldBlock {
			t.Errorf("accept: %v", err)
		}
	})
}

func TestSegmentsRefused(t *testing.T) {
	good := segment(wire.TCP{SrcPort: 5000, DstPort: 80, Flags: wire.SYN, Window: 1000}, addrB, addrA, "")
	damaged := append([]byte(nil), good...)
	damaged[6] ^= 1
	all := netip.MustParseAddr("10.0.0.255")
	for _, c := range []struct {
		name string
		h    wire.IPv4
		b    []byte
		want stack.Counter
	}{
		{"half a header", wire.IPv4{}, good[:10], stack.TCPMalformed},
		{"a damaged segment", wire.IPv4{}, damaged, stack.TCPChecksum},
		{"a segment to all (RFC 9293 section 3.9.2.3)", wire.IPv4{Dst: all},
			segment(wire.TCP{SrcPort: 5000, DstPort: 80, Flags: wire.SYN, Window: 1000}, addrB, all, ""), stack.TCPMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				l := mustListen(t, w.s, 80, 10)
				defer l.Close()
				before := w.s.Counters()
				c.h.Protocol = wire.ProtoTCP
				w.sendIP(c.h, c.b)
				w.wantRefused(c.name, before, c.want)
				w.wantNone("nothing is said to it")
			})
		})
	}
}

// SYNs are retransmitted with doubling intervals; finally there is an error.
func TestConnectTimeout(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		d := startDial(w.s, "tcp", "10.0.0.2:80")
		p := w.tcp(80, 0)
		p.take("the first SYN")
		for wait := time.Second; wait <= 32*time.Second; wait *= 2 {
			w.advance(wait - 5*time.Millisecond)
			w.wantNone("too early")
			w.advance(5 * time.Millisecond)
			p.take("a SYN again")
		}
		w.advance(time.Hour)
		if !d.returned() {
			t.Fatal("Dial waits for ever")
		}
		var netErr net.Error
		if !errors.Is(d.err, syscall.ETIMEDOUT) || !errors.As(d.err, &netErr) || !netErr.Timeout() {
			t.Errorf("Dial: %v, want ETIMEDOUT", d.err)
		}
		w.wantCount("it is counted", stack.TCPTimeouts, 1)
		w.forget()
		p.send(wire.SYN|wire.ACK, "")
		w.want("an answer that comes now is reset", "tcp 10.0.0.1:"+portText(p.remote)+" > 10.0.0.2:80 R")
	})
}

// TCP_SYNCNT limits the retransmissions of a SYN (tcp(7)).
func TestSynRetries(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c, err := w.s.DialTCP(netip.AddrPort{}, netip.AddrPortFrom(addrB, 80), stack.TCPOptions{SynRetries: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p := w.tcp(80, 0)
		p.take("the first SYN")
		w.advance(time.Second)
		p.take("a SYN again")
		w.advance(10 * time.Second)
		w.wantNone("it is not repeated more often")
		if err := c.Err(); !errors.Is(err, stack.ErrTimeout) {
			t.Errorf("the connection has ended with %v, want %v", err, stack.ErrTimeout)
		}
	})
}

// ICMP errors in reply to a SYN (RFC 1122 section 4.2.3.9).
func TestConnectICMP(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		d := startDial(w.s, "tcp", "10.0.0.2:80")
		p := w.tcp(80, 0)
		syn := p.take("a SYN")
		unreachable := wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeHostUnreachable}
		w.sendICMP(unreachable, syn.raw[:28])
		if d.returned() {
			t.Fatalf("Dial: %v: host unreachable is a soft error, the attempt goes on", d.err)
		}
		forged := append([]byte(nil), syn.raw[:28]...)
		forged[24]++ // changes the sequence number in the quoted segment
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodePortUnreachable}, forged)
		if d.returned() {
			t.Fatalf("Dial: %v: an error about a number that was not sent is forged (RFC 5927 section 4.1)", d.err)
		}
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodePortUnreachable}, syn.raw[:28])
		if !d.returned() || !errors.Is(d.err, syscall.ECONNREFUSED) {
			t.Errorf("Dial: %v, want ECONNREFUSED: port unreachable is a hard error", d.err)
		}
	})
}

// If an attempt fails, its error is the one reported by ICMP.
func TestConnectUnreachable(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		d := startDial(w.s, "tcp", "10.0.0.2:80")
		p := w.tcp(80, 0)
		syn := p.take("a SYN")
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeHostUnreachable}, syn.raw[:28])
		w.advance(time.Hour)
		if !d.returned() || !errors.Is(d.err, syscall.EHOSTUNREACH) {
			t.Errorf("Dial: %v, want EHOSTUNREACH", d.err)
		}
	})
}
