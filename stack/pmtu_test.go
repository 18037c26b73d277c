package stack_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
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

// Old routers that do not report an MTU (RFC 1191 section 5), and false reports.
func TestFragmentationNeededOdd(t *testing.T) {
	for _, test := range []struct {
		name string
		says uint32
		want int // payload length of the first segment after the message
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

// Path MTU discovery modes of a datagram socket (ip(7), IP_MTU_DISCOVER).
func TestDiscovery(t *testing.T) {
	for name, c := range map[string]struct {
		how  stack.Discovery
		df   bool // DF is set on datagrams that fit
		long bool // datagrams too long for the link are fragmented; otherwise an error
		told bool // a router's report is returned to the program as an error
		path int  // payload length of the packet afterwards, of the 1472 bytes sent; 0: the send fails
	}{
		"want":      {stack.DiscoverWant, true, true, true, 976},
		"dont":      {stack.DiscoverDont, false, true, false, 976},
		"do":        {stack.DiscoverDo, true, false, true, 0},
		"probe":     {stack.DiscoverProbe, true, false, true, 1472},
		"interface": {stack.DiscoverInterface, false, false, true, 1472},
		"omit":      {stack.DiscoverOmit, false, true, true, 1472},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				u := mustUDP(t, w.s, 1000)
				defer u.Close()
				mustConnect(t, u, "10.0.0.2:53")
				u.SetOptions(func(o *stack.UDPOptions) { o.Discovery = c.how })
				write := func(n int) error {
					_, err := u.TryWriteTo(make([]byte, n), netip.AddrPort{})
					return err
				}
				if err := write(1472); err != nil {
					t.Fatal(err)
				}
				f := w.next()
				if f == nil || f.ip.DontFragment != c.df {
					t.Fatalf("what fits does not come with DF %v", c.df)
				}
				if err := write(1473); (err == nil) != c.long || err != nil && !errors.Is(err, stack.ErrMessageTooLong) {
					t.Errorf("what is too long for the link: %v", err)
				}
				w.forget()
				w.sendICMP(fragNeeded(1000), f.raw[:28])
				if err := u.Err(); (err != nil) != c.told || err != nil && !errors.Is(err, stack.ErrMessageTooLong) {
					t.Errorf("the program hears %v", err)
				}
				err := write(1472)
				if c.path == 0 {
					if !errors.Is(err, stack.ErrMessageTooLong) {
						t.Errorf("what is too long for the path: %v", err)
					}
					if got, err := w.s.PathMTU(addrB); got != 1000 || err != nil {
						t.Errorf("MTU %d, %v, want 1000", got, err)
					}
					return
				}
				if f := w.next(); f == nil || len(f.data) != c.path || f.ip.DontFragment != (c.df && c.path == 1472) {
					t.Errorf("on the path: not %d bytes first, or DF is wrong; %v", c.path, err)
				}
				w.forget()
			})
		})
	}
}

// IPv6: a socket that ignores reports of routers gets no error from them either.
func TestDiscovery6(t *testing.T) {
	for how, told := range map[stack.Discovery]bool{
		stack.DiscoverWant: true, stack.DiscoverDont: false, stack.DiscoverDo: true,
		stack.DiscoverProbe: true, stack.DiscoverInterface: false, stack.DiscoverOmit: false,
	} {
		byHand6(t, func(t *testing.T, w *peer) {
			u, err := w.s.ListenUDP(mustAddrPort("[::]:1000"), stack.UDPOptions{Discovery6: how})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			mustConnect(t, u, "[2001:db8::2]:9")
			if _, err := u.TryWriteTo(make([]byte, 1452), netip.AddrPort{}); err != nil {
				t.Fatal(err)
			}
			f := w.next()
			w.sendICMP6(wire.ICMPv6{Type: wire.ICMPv6PacketTooBig, Rest: 1300}, f.raw[:1232])
			if err := u.Err(); (err != nil) != told {
				t.Errorf("%d: the program hears %v", how, err)
			}
			w.forget()
		})
	}
}

// Segments of UDP_SEGMENT are not fragmented (udp(7)).
func TestSegmentsTooLong(t *testing.T) {
	for how := range stack.DiscoverOmit + 1 {
		byHand(t, func(t *testing.T, w *peer) {
			u := mustUDP(t, w.s, 1000)
			defer u.Close()
			mustConnect(t, u, "10.0.0.2:53")
			u.SetOptions(func(o *stack.UDPOptions) { o.Discovery = how })
			for _, c := range []struct{ length, segment int }{{3000, 1473}, {1473, 1473}, {1473, 2000}} {
				_, err := u.TryWriteBy(make([]byte, c.length), netip.AddrPort{}, stack.UDPSend{Segment: c.segment})
				if !errors.Is(err, stack.ErrMessageTooLong) {
					t.Errorf("%d: %+v: %v", how, c, err)
				}
			}
			w.wantNone("nothing is sent")
			if _, err := u.TryWriteBy(make([]byte, 3000), netip.AddrPort{}, stack.UDPSend{Segment: 1472}); err != nil {
				t.Errorf("%d: what fits: %v", how, err)
			}
			w.forget()
		})
	}
}

// If a path is reported narrower than the minimum MTU of every host, DF is not set.
func TestDiscoveryNarrow(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		u := mustUDP(t, w.s, 1000)
		defer u.Close()
		mustWriteTo(t, u, strings.Repeat("x", 1000), "10.0.0.2:53")
		f := w.next()
		w.sendICMP(fragNeeded(300), f.raw[:28])
		if err := u.Err(); err != nil {
			t.Errorf("a socket without a peer hears %v", err)
		}
		mustWriteTo(t, u, "x", "10.0.0.2:53")
		if f := w.want("a datagram", `udp 10.0.0.1:1000 > 10.0.0.2:53 "x"`); f.ip.DontFragment {
			t.Error("DF is set")
		}
	})
}

// RFC 1191 section 6.3: ten minutes after a path MTU was lowered, the path is probed
// again, also by open connections.
func TestOpenConnectionForgetsAPathMTU(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		data := strings.Repeat("x", 1460)
		mustWrite(t, c, data)
		f := p.want("a full segment", "A", data)
		w.sendICMP(fragNeeded(1000), f.raw[:28])
		p.expect -= 1460
		p.want("a router says 1000", "A", data[:960])
		p.want("and the rest", "A", data[:500])
		p.send(wire.ACK, "")
		w.advance(9 * time.Minute)
		mustWrite(t, c, data)
		p.want("nine minutes later that holds", "A", data[:960])
		p.want("and the rest", "A", data[:500])
		p.send(wire.ACK, "")
		w.advance(time.Minute)
		mustWrite(t, c, data)
		f = p.want("ten minutes later it is tried again", "A", data)
		w.sendICMP(fragNeeded(1100), f.raw[:28])
		p.expect -= 1460
		p.want("it is still narrow, but less so", "A", data[:1060])
		p.want("and the rest", "A", data[:400])
		p.send(wire.ACK, "")
		w.forget()
		c.Abort()
	})
}

// A path MTU learned by one connection applies to all, whichever shard they are on.
func TestPathMTUIsLearntForAllConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const conns = 8
		w := newPeer(t, stack.Config{Shards: 4}, pipe.Config{})
		l := mustListen(t, w.s, 80, conns)
		defer l.Close()
		var peers [conns]*tcpPeer
		var opened [conns]*stack.TCPConn
		for i := range conns {
			peers[i], opened[i] = w.accepted(l, uint16(5000+i))
		}
		data := strings.Repeat("x", 1460)
		mustWrite(t, opened[0], data)
		f := peers[0].want("a full segment", "A", data)
		w.sendICMP(fragNeeded(1000), f.raw[:28])
		w.forget()
		for i := 1; i < conns; i++ {
			mustWrite(t, opened[i], data)
			peers[i].want("another connection has heard", "A", data[:960])
			peers[i].want("and the rest", "A", data[:500])
		}
		w.forget()
		for _, c := range opened {
			c.Abort()
		}
		w.forget()
	})
}

// RFC 6864 section 4.3: every packet that routers may fragment has a unique
// identification, whichever connection between the two hosts sends it.
func TestSegmentsOfANarrowPathDiffer(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		const conns, turns = 64, 64
		l := mustListen(t, w.s, 80, conns)
		defer l.Close()
		var peers [conns]*tcpPeer
		var opened [conns]*stack.TCPConn
		for i := range conns {
			peers[i], opened[i] = w.accepted(l, uint16(5000+i))
		}
		mustWrite(t, opened[0], strings.Repeat("x", 536))
		f := peers[0].want("a segment that does not fit", "A", strings.Repeat("x", 536))
		w.sendICMP(fragNeeded(68), f.raw[:28])
		w.forget()
		ids := map[uint16]bool{}
		for range turns {
			for i := 1; i < conns; i++ {
				mustWrite(t, opened[i], "x")
				f := peers[i].want("a segment that may be cut up", "A", "x")
				if f.ip.DontFragment {
					t.Fatal("DF is set")
				}
				ids[f.ip.ID] = true
				peers[i].send(wire.ACK, "")
			}
		}
		if len(ids) != (conns-1)*turns {
			t.Errorf("%d segments have %d identifications", (conns-1)*turns, len(ids))
		}
		w.forget()
		for _, c := range opened {
			c.Abort()
		}
		w.forget()
	})
}
