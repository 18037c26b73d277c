package stack_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/stack"
	"loam/wire"
)

// SO_BINDTODEVICE: a socket sends on its interface, whatever the routes say, and receives
// packets that arrive there.
func TestDevice(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		other := w.station("eth1", "192.0.2.1/24")
		other.ifc.SetNeighbour(address("192.0.2.2"), macB)
		other.ifc.SetNeighbour(address("198.51.100.1"), macB)
		w.mustRoute(stack.Route{Dst: prefix("0.0.0.0/0"), Gateway: addrB})
		w.advance(5e9)
		w.forget()
		other.forget()
		c := mustListenUDP(t, w.s, "0.0.0.0:53", stack.UDPOptions{})
		mustWriteTo(t, c, "by the routes", "198.51.100.1:9")
		w.want("without an interface", `udp 10.0.0.1:53 > 198.51.100.1:9 "by the routes"`)
		c.SetDevice(other.ifc)
		mustWriteTo(t, c, "by the link", "198.51.100.1:9")
		other.want("with one", `udp 192.0.2.1:53 > 198.51.100.1:9 "by the link"`)
		w.mustRoute(stack.Route{Dst: prefix("0.0.0.0/0"), Gateway: address("192.0.2.2"), Interface: "eth1", Metric: 9})
		mustWriteTo(t, c, "by the gateway", "203.0.113.1:9")
		other.want("by a route of the interface", `udp 192.0.2.1:53 > 203.0.113.1:9 "by the gateway"`)
		w.sendUDP(1000, 53, "here")
		w.want("nobody listens there", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 3")
		there := address("192.0.2.1")
		other.sendIP(wire.IPv4{Protocol: wire.ProtoUDP, Src: address("192.0.2.2"), Dst: there},
			datagram(mustAddrPort("192.0.2.2:1000"), netip.AddrPortFrom(there, 53), "there"))
		synctest.Wait()
		b := make([]byte, 20)
		if n, _, err := c.TryReadFrom(b); string(b[:n]) != "there" || err != nil {
			t.Errorf("it hears %q, %v", b[:n], err)
		}
		if c.Device() != other.ifc {
			t.Errorf("it is bound to %v", c.Device())
		}
	})
}

// If two sockets share a port, the one bound to the interface receives the packets that arrive
// there, whichever is older (compute_score in Linux's udp.c).
func TestDeviceScore(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		other := w.station("eth1", "192.0.2.1/24")
		here := mustListenUDP(t, w.s, "0.0.0.0:53", stack.UDPOptions{Device: w.ifc})
		there := mustListenUDP(t, w.s, "0.0.0.0:53", stack.UDPOptions{Device: other.ifc})
		if _, err := w.s.ListenUDP(mustAddrPort("0.0.0.0:53"), stack.UDPOptions{}); err != stack.ErrInUse {
			t.Errorf("a third one, on all interfaces: %v", err)
		}
		gets := func(c *stack.UDPConn, want string) {
			t.Helper()
			synctest.Wait()
			b := make([]byte, 20)
			if n, _, err := c.TryReadFrom(b); string(b[:n]) != want || err != nil {
				t.Errorf("it hears %q, %v", b[:n], err)
			}
		}
		w.sendUDP(1000, 53, "here")
		gets(here, "here")
		there.Close()
		shared := stack.UDPOptions{ReuseAddr: true}
		any1 := mustListenUDP(t, w.s, "0.0.0.0:54", shared)
		bound := mustListenUDP(t, w.s, "0.0.0.0:54", shared)
		any2 := mustListenUDP(t, w.s, "0.0.0.0:54", shared)
		bound.SetDevice(w.ifc)
		for range 3 {
			w.sendUDP(1000, 54, "bound")
			gets(bound, "bound")
		}
		mustConnect(t, any2, "10.0.0.2:1000")
		w.sendUDP(1000, 54, "peer")
		gets(any2, "peer")
		mustConnect(t, bound, "10.0.0.2:1000")
		w.sendUDP(1000, 54, "both")
		gets(bound, "both")
		any1.Close()
		if bound.SetDevice(nil); bound.Device() != nil {
			t.Error("it is still bound")
		}
	})
}

// Listeners on the same port of two interfaces accept separately, and connections stay on
// their interface.
func TestDeviceTCP(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		other := w.station("eth1", "192.0.2.1/24")
		w.forget()
		listen := func(o stack.TCPOptions) *stack.TCPListener {
			t.Helper()
			l, err := w.s.ListenTCP(mustAddrPort("0.0.0.0:80"), 5, o)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		there := listen(stack.TCPOptions{Device: other.ifc})
		defer there.Close()
		syn := func(from uint16) *seen {
			t.Helper()
			w.tcp(from, 80).sendAs(wire.TCP{Seq: 1, Flags: wire.SYN}, "")
			f := w.next()
			if f == nil || f.tcp == nil {
				t.Fatal("no answer")
			}
			return f
		}
		if f := syn(1000); !f.tcp.Flags.Has(wire.RST) {
			t.Error("a listener of another interface answers")
		}
		here := listen(stack.TCPOptions{Device: w.ifc})
		defer here.Close()
		f := syn(1001)
		if !f.tcp.Flags.Has(wire.SYN) {
			t.Fatal("the listener of this interface does not answer")
		}
		ack := wire.TCP{Seq: 2, Ack: f.tcp.Seq + 1, Flags: wire.ACK}
		w.tcp(1001, 80).sendAs(ack, "")
		synctest.Wait()
		c, err := here.TryAccept()
		if err != nil {
			t.Fatal(err)
		}
		if c.Options().Device != w.ifc {
			t.Error("the connection is not bound as its listener was")
		}
		c.SetOptions(func(o *stack.TCPOptions) { o.Device = other.ifc })
		ack.Flags |= wire.PSH
		w.tcp(1001, 80).sendAs(ack, "data")
		if f := w.next(); f == nil || !f.tcp.Flags.Has(wire.RST) {
			t.Errorf("what comes to another interface is not refused: %v", f)
		}
		if _, err := c.TryRead(make([]byte, 9)); err != stack.ErrWouldBlock {
			t.Errorf("it is read: %v", err)
		}
		other.ifc.SetNeighbour(addrB, macB)
		c.Abort()
		w.forget()
		other.forget()
		d, err := w.s.DialTCP(netip.AddrPort{}, mustAddrPort("10.0.0.2:99"), stack.TCPOptions{Device: other.ifc})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if f := other.next(); f == nil || f.tcp == nil || f.ip.Src != address("192.0.2.1") {
			t.Errorf("a connection goes by its interface, whatever the routes say: %v", f)
		}
		d.Abort()
		other.forget()
	})
}

// SO_TIMESTAMP for TCP reports when the last byte read arrived.
func TestStampsTCP(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		c.SetOptions(func(o *stack.TCPOptions) { o.Stamps = true })
		synctest.Wait()
		begin := time.Now()
		p.send(wire.ACK|wire.PSH, "first")
		w.advance(time.Second)
		p.send(wire.ACK|wire.PSH, "second")
		w.advance(time.Second)
		for want, n := range map[int]time.Duration{5: 0, 6: time.Second} {
			if got := c.Arrived(want).Sub(begin).Round(time.Millisecond); got != n {
				t.Errorf("%d bytes on: after %v, want %v", want, got, n)
			}
		}
		b := make([]byte, 5)
		for _, want := range []time.Duration{0, time.Second, time.Second} {
			if _, err := c.TryRead(b); err != nil {
				t.Fatal(err)
			}
			if got := c.Arrived(0).Sub(begin).Round(time.Millisecond); got != want {
				t.Errorf("%q came after %v, want %v", b, got, want)
			}
		}
		w.forget()
		c.Abort()
	})
}
