package stack_test

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
	"loam/wire"
)

// A gateway: packets to addresses that are not the stack's go to a forwarder.

// worldServer is an address beyond the gateway.
var worldServer = netip.MustParseAddr("203.0.113.5")

// forwardScript runs a script on a stack that accepts packets to any address.
func forwardScript(t *testing.T, f stack.Forwarder, script func(t *testing.T, w *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		link.Track(true)
		ring.Track(true)
		s := stack.New(stack.Config{Shards: 2})
		s.Forward(f)
		script(t, attachPeer(t, s, pipe.Config{}, stack.InterfaceConfig{AcceptAny: true, NoIPv6: true}).introduce())
	})
}

// toWorld returns a connection from the peer to a server beyond the gateway.
func (w *peer) toWorld(from, to uint16) *tcpPeer {
	p := w.tcp(from, to)
	p.remote = netip.AddrPortFrom(worldServer, to)
	return p
}

func TestForwardTCP(t *testing.T) {
	requests := make(chan *stack.TCPRequest, 10)
	decided := make(chan struct{})
	f := stack.Forwarder{TCP: func(r *stack.TCPRequest) {
		requests <- r
		<-decided
	}}
	forwardScript(t, f, func(t *testing.T, w *peer) {
		requests, decided = make(chan *stack.TCPRequest, 10), make(chan struct{})
		p := w.toWorld(5000, 80)
		p.send(wire.SYN, "")
		p.next--
		p.send(wire.SYN, "")
		w.wantNone("until it is decided there is no answer")
		if len(requests) != 1 {
			t.Fatalf("the forwarder was asked %d times, want once", len(requests))
		}
		r := <-requests
		if r.Local() != p.remote || r.Remote() != p.local {
			t.Errorf("asked for %v to %v", r.Remote(), r.Local())
		}
		c, err := r.Accept(stack.TCPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.want("then the handshake goes on, in the server's name", "SA", "")
		p.send(wire.ACK, "hello")
		p.want("data is acknowledged at once, at the start", "A", "")
		wantRead(t, c, "data arrives", "hello", nil)
		mustWrite(t, c, "hi")
		p.want("and leaves", "A", "hi")
		if _, err := r.Accept(stack.TCPOptions{}); err != stack.ErrClosed {
			t.Errorf("accepting twice: %v, want %v", err, stack.ErrClosed)
		}
		c.Abort()
		p.want("it is a connection like others", "RA", "")

		other := w.toWorld(5001, 80)
		other.send(wire.SYN, "")
		(<-requests).Reject()
		w.want("what is rejected is reset", "tcp 203.0.113.5:80 > 10.0.0.2:5001 RA")
		third := w.toWorld(5002, 80)
		third.send(wire.SYN, "")
		close(decided)
		w.want("and so is what nobody decides", "tcp 203.0.113.5:80 > 10.0.0.2:5002 RA")
		third.sendAs(wire.TCP{Seq: 1, Ack: 1, Flags: wire.ACK}, "x")
		w.want("a segment without a connection is reset", "tcp 203.0.113.5:80 > 10.0.0.2:5002 R")
	})
}

func TestForwardIsBounded(t *testing.T) {
	var release chan struct{}
	f := stack.Forwarder{TCP: func(*stack.TCPRequest) { <-release }}
	forwardScript(t, f, func(t *testing.T, w *peer) {
		release = make(chan struct{})
		for i := range uint16(1100) {
			w.toWorld(5000+i, 80).send(wire.SYN, "")
		}
		w.wantCount("beyond 1024 that are being decided, attempts are dropped", stack.ForwardOverflow, 1100-1024)
		w.wantNone("without an answer")
		close(release)
		w.forget()
		late := w.toWorld(8000, 80)
		late.send(wire.SYN, "")
		w.want("later ones are looked at again", "tcp 203.0.113.5:80 > 10.0.0.2:8000 RA")
	})
}

// Undecided attempts do not prevent a stack from closing.
func TestForwardClose(t *testing.T) {
	var late *stack.TCPRequest
	f := stack.Forwarder{TCP: func(r *stack.TCPRequest) { late = r; r.Accept(stack.TCPOptions{}) }}
	forwardScript(t, f, func(t *testing.T, w *peer) {
		p := w.toWorld(5000, 80)
		p.send(wire.SYN, "")
		p.want("accepted", "SA", "")
		w.s.Close()
		w.want("closed with the stack", "tcp 203.0.113.5:80 > 10.0.0.2:5000 RA")
		if _, err := late.Accept(stack.TCPOptions{}); err != stack.ErrClosed {
			t.Errorf("accepting afterwards: %v, want %v", err, stack.ErrClosed)
		}
		late.Reject()
	})
}

func TestForwardUDP(t *testing.T) {
	var flows []*stack.UDPConn
	f := stack.Forwarder{UDP: func(c *stack.UDPConn) { flows = append(flows, c) }}
	forwardScript(t, f, func(t *testing.T, w *peer) {
		flows = nil
		to := netip.AddrPortFrom(worldServer, 53)
		send := func(from uint16, data string) {
			w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP, Dst: worldServer}, datagram(netip.AddrPortFrom(addrB, from), to, data))
		}
		send(1000, "one")
		send(1000, "two")
		send(2000, "three")
		if len(flows) != 2 {
			t.Fatalf("there are %d flows, want 2", len(flows))
		}
		if flows[0].LocalAddrPort() != to || flows[0].RemoteAddrPort() != netip.AddrPortFrom(addrB, 1000) {
			t.Errorf("the first flow is between %v and %v", flows[0].RemoteAddrPort(), flows[0].LocalAddrPort())
		}
		wantDatagram(t, flows[0], "the first datagram of a flow is in its socket", "one")
		wantDatagram(t, flows[0], "and what follows", "two")
		wantDatagram(t, flows[1], "another port is another flow", "three")
		if _, err := flows[0].Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		w.want("answers come in the server's name", `udp 203.0.113.5:53 > 10.0.0.2:1000 "answer"`)
		flows[1].Refuse()
		w.want("a flow can be refused", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 3")
		flows[0].Close()
		send(1000, "anew")
		if len(flows) != 3 {
			t.Errorf("after the flow was closed there are %d, want a third", len(flows))
		}
	})
}

func TestForwardPing(t *testing.T) {
	var asked []*stack.PingRequest
	f := stack.Forwarder{Ping: func(r *stack.PingRequest) { asked = append(asked, r) }}
	forwardScript(t, f, func(t *testing.T, w *peer) {
		asked = nil
		w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Dst: worldServer}, message(wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: 5}, []byte("data")))
		w.wantNone("the forwarder is asked first")
		if len(asked) != 1 || asked[0].Src != addrB || asked[0].Dst != worldServer || asked[0].Seq() != 5 || string(asked[0].Data) != "data" {
			t.Fatalf("it was asked %+v", asked)
		}
		asked[0].Reply()
		f := w.want("its answer comes in the server's name", "icmp 203.0.113.5 > 10.0.0.2 type 0 code 0")
		if string(f.data) != "data" {
			t.Errorf("it carries %q", f.data)
		}
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil)
		w.want("our own address answers by itself", "icmp 10.0.0.1 > 10.0.0.2 type 0 code 0")
	})
}

// Without a forwarder, all connections are rejected.
func TestForwardNobody(t *testing.T) {
	forwardScript(t, stack.Forwarder{}, func(t *testing.T, w *peer) {
		w.toWorld(5000, 80).send(wire.SYN, "")
		w.want("TCP is reset", "tcp 203.0.113.5:80 > 10.0.0.2:5000 RA")
		w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP, Dst: worldServer},
			datagram(netip.AddrPortFrom(addrB, 1000), netip.AddrPortFrom(worldServer, 53), "x"))
		w.want("UDP is refused", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 3")
		before := w.s.Counters()
		w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Dst: worldServer}, message(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil))
		w.wantRefused("a ping is ignored", before, stack.ICMPIgnored)
		w.wantNone("a ping is ignored")
	})
}
