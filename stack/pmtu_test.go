package stack_test

import (
	"strings"
	"testing"

	"loam/stack"
	"loam/wire"
)

// Path MTU discovery (RFC 1191, RFC 5927 section 7).

func fragNeeded(mtu uint32) wire.ICMPv4 {
	return wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeFragNeeded, Rest: mtu}
}

func TestFragmentationNeeded(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		data := strings.Repeat("x", 1460)
		mustWrite(t, c, data)
		f := p.want("a full segment that must not be cut up", "A", data)
		if !f.ip.DontFragment {
			t.Error("DF is not set")
		}
		w.sendICMP(fragNeeded(1000), f.raw[:28])
		p.expect -= 1460
		p.want("a router says 1000: it is sent again in pieces of that", "A", data[:960])
		p.want("and the rest", "A", data[:500])
		p.send(wire.ACK, "")
		w.sendICMP(fragNeeded(576), f.raw[:28])
		mustWrite(t, c, data)
		p.want("a message about what is acknowledged already is not believed", "A", data[:960])
		p.want("and the rest", "A", data[:500])
		p.send(wire.ACK, "")
		c.Abort()
		p.want("the end", "RA", "")
		d := startDial(w.s, "tcp", "10.0.0.2:81")
		q := w.tcp(81, 0)
		if syn := q.take("the next connection on this path"); syn.tcp.MSS != 960 {
			t.Errorf("begins with MSS %d, want 960", syn.tcp.MSS)
		}
		q.send(wire.RST|wire.ACK, "")
		d.returned()
	})
}

// Routers that are too old to say an MTU (RFC 1191 section 5), and liars.
func TestFragmentationNeededOdd(t *testing.T) {
	for _, test := range []struct {
		name string
		says uint32
		want int // payload of the first segment then
	}{
		{"says nothing: the next plateau below 1500", 0, 1492 - 40},
		{"says less than a host must take", 68, 536},
		{"says more than was sent", 9000, 1460},
	} {
		t.Run(test.name, func(t *testing.T) {
			openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
				data := strings.Repeat("x", 1460)
				mustWrite(t, c, data)
				f := p.want("a full segment", "A", data)
				w.sendICMP(fragNeeded(test.says), f.raw[:28])
				if test.want == 1460 {
					w.wantNone("nothing changes")
				} else {
					p.expect -= 1460
					again := p.want("it is sent again in pieces", "A", data[:test.want])
					if narrow := test.says == 68; again.ip.DontFragment == narrow {
						t.Errorf("DF is %v: where the path is narrower than the least segment, routers must fragment", !narrow)
					}
				}
				w.forget()
				c.Abort()
			})
		})
	}
}

// UDP leaves fragmentation to routers: DF is not set. Connected or not, a socket
// gets no error of it.
func TestFragmentationNeededUDP(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustConnect(t, c, "10.0.0.2:53")
		mustWriteTo(t, c, "hello", "10.0.0.2:53")
		f := w.want("a datagram", `udp 10.0.0.1:1000 > 10.0.0.2:53 "hello"`)
		if f.ip.DontFragment {
			t.Error("DF is set")
		}
		w.sendICMP(fragNeeded(1000), f.raw[:28])
		if err := c.Err(); err != nil {
			t.Errorf("the socket hears %v", err)
		}
	})
}
