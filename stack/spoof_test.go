package stack_test

import (
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// An attacker who knows the addresses and ports of a connection, but not its sequence
// numbers, cannot disturb it (RFC 5961, RFC 5927).

// undisturbed runs an attack on an open connection and checks that it continues.
func undisturbed(t *testing.T, attack func(t *testing.T, w *peer, p *tcpPeer)) {
	t.Helper()
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p, c := w.accepted(l, 5000)
		attack(t, w, p)
		w.forget()
		p.send(wire.ACK, "still here?")
		wantRead(t, c, "data arrives", "still here?", nil)
		w.advance(time.Second)
		w.forget()
		mustWrite(t, c, "yes")
		p.want("and leaves", "A", "yes")
		c.Abort()
	})
}

func TestSpoofedReset(t *testing.T) {
	undisturbed(t, func(t *testing.T, w *peer, p *tcpPeer) {
		p.sendAs(wire.TCP{Seq: p.next + 1000, Flags: wire.RST}, "")
		p.want("a reset elsewhere in the window is challenged (RFC 5961 section 3.2)", "A", "")
		p.sendAs(wire.TCP{Seq: p.next + 1<<30, Flags: wire.RST}, "")
		p.sendAs(wire.TCP{Seq: p.next - 1, Flags: wire.RST}, "")
		w.wantNone("a reset outside of the window is dropped")
	})
}

func TestSpoofedSYN(t *testing.T) {
	undisturbed(t, func(t *testing.T, w *peer, p *tcpPeer) {
		p.sendAs(wire.TCP{Seq: p.next + 1000, Flags: wire.SYN}, "")
		p.want("a SYN is challenged (RFC 5961 section 4.2)", "A", "")
		p.sendAs(wire.TCP{Seq: p.next - 1, Flags: wire.SYN}, "")
		p.want("wherever it is", "A", "")
		for range 100 {
			p.sendAs(wire.TCP{Seq: p.next + 1000, Flags: wire.SYN}, "")
		}
		n := 0
		for w.next() != nil {
			n++
		}
		if n > 10 {
			t.Errorf("100 SYNs got %d challenges, want 10 at most in 5 s (RFC 5961 section 7)", n)
		}
	})
}

func TestSpoofedData(t *testing.T) {
	undisturbed(t, func(t *testing.T, w *peer, p *tcpPeer) {
		p.sendAs(wire.TCP{Seq: p.next + 1<<30, Ack: p.expect, Flags: wire.ACK}, "evil")
		p.want("data outside of the window is dropped, and the sender told where we are", "A", "")
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect + 1000, Flags: wire.ACK}, "evil")
		p.want("data that acknowledges what was not sent is dropped (RFC 5961 section 5.2)", "A", "")
		p.sendAs(wire.TCP{Seq: p.next, Flags: 0}, "evil")
		p.sendAs(wire.TCP{Seq: p.next, Flags: wire.FIN}, "")
		w.wantNone("without ACK nothing is taken")
	})
}

func TestSpoofedICMP(t *testing.T) {
	undisturbed(t, func(t *testing.T, w *peer, p *tcpPeer) {
		quote := packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: addrA, Dst: addrB},
			segment(wire.TCP{SrcPort: 80, DstPort: 5000, Seq: p.expect}, addrA, addrB, ""))
		for code := range uint8(16) {
			w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: code, Rest: 68}, quote)
		}
		w.wantNone("errors about what is not in flight are not believed (RFC 5927 section 4.1)")
		w.wantCount("and counted", stack.ICMPIgnored, 16)
	})
}

// An error about data in flight may be genuine, but does not end an established
// connection (RFC 5927 section 5.2).
func TestICMPIsSoftWhenEstablished(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p, c := w.accepted(l, 5000)
		mustWrite(t, c, "data")
		f := p.want("data", "A", "data")
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodePortUnreachable}, f.raw[:28])
		p.send(wire.ACK, "answer")
		wantRead(t, c, "the connection goes on", "answer", nil)
		c.Abort()
	})
}

// The LAND attack is a SYN whose source is the address and port to which it is sent.
func TestLand(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		h := wire.TCP{SrcPort: 80, DstPort: 80, Seq: 1, Flags: wire.SYN, Window: 1000}
		w.sendIP(wire.IPv4{Protocol: wire.ProtoTCP, Src: addrA}, segment(h, addrA, addrA, ""))
		w.wantCount("a packet from our own address does not come from a link", stack.IPMartian, 1)
		w.wantCount("nothing is opened", stack.TCPPassiveOpens, 0)
	})
}
