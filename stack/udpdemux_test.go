package stack_test

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Selection of the socket for a datagram.

// wantAt checks which of the sockets have received a datagram, and reads it.
func wantAt(t *testing.T, sentence string, sockets []*stack.UDPConn, want ...int) {
	t.Helper()
	synctest.Wait()
	for i, c := range sockets {
		n := 0
		for _, j := range want {
			if i == j {
				n = 1
			}
		}
		if got, _ := c.Waiting(); got != n {
			t.Errorf("%s: socket %d has %d datagrams, want %d", sentence, i, got, n)
		}
		c.TryReadFrom(nil)
	}
}

func mustListenUDP(t testing.TB, s *stack.Stack, local string, o stack.UDPOptions) *stack.UDPConn {
	t.Helper()
	c, err := s.ListenUDP(mustAddrPort(local), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mustConnect(t testing.TB, c *stack.UDPConn, remote string) {
	t.Helper()
	if err := c.Connect(mustAddrPort(remote)); err != nil {
		t.Fatal(err)
	}
}

func TestUDPDemux(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		if err := w.s.AddAddress("eth0", prefix("10.0.0.5/24")); err != nil {
			t.Fatal(err)
		}
		share := stack.UDPOptions{ReuseAddr: true}
		sockets := []*stack.UDPConn{
			mustListenUDP(t, w.s, "0.0.0.0:53", share),
			mustListenUDP(t, w.s, "10.0.0.1:53", share),
			mustListenUDP(t, w.s, "10.0.0.1:53", share),
			mustListenUDP(t, w.s, "0.0.0.0:53", share),
		}
		mustConnect(t, sockets[2], "10.0.0.2:1000")
		mustConnect(t, sockets[3], "10.0.0.2:2000")
		send := func(from uint16, to string) {
			dst := netip.MustParseAddr(to)
			w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP, Dst: dst}, datagram(netip.AddrPortFrom(addrB, from), netip.AddrPortFrom(dst, 53), "x"))
		}
		send(1000, "10.0.0.1")
		wantAt(t, "the socket connected to the sender goes first", sockets, 2)
		send(2000, "10.0.0.1")
		wantAt(t, "even if it is bound to all addresses", sockets, 3)
		send(3000, "10.0.0.1")
		wantAt(t, "then the one bound to the address", sockets, 1)
		send(3000, "10.0.0.5")
		wantAt(t, "then the one bound to all", sockets, 0)
		sockets[2].Close()
		send(1000, "10.0.0.1")
		wantAt(t, "a socket that is closed hears nothing", sockets, 1)
		if err := sockets[3].Connect(netip.AddrPort{}); err != nil {
			t.Errorf("undoing a connection: %v", err)
		}
		if got := sockets[3].RemoteAddr(); got != nil {
			t.Errorf("then it is connected to %v", got)
		}
	})
}

// SO_REUSEPORT: sockets that share a port divide the flows, and each flow stays at its
// socket.
func TestUDPReusePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeer(t, stack.Config{Shards: 4}, pipe.Config{})
		share := stack.UDPOptions{ReusePort: true}
		var sockets []*stack.UDPConn
		for range 4 {
			sockets = append(sockets, mustListenUDP(t, w.s, "0.0.0.0:53", share))
		}
		for round := range 3 {
			for from := range uint16(200) {
				w.sendUDP(1000+from, 53, "x")
			}
			synctest.Wait()
			for i, c := range sockets {
				n, _ := c.Waiting()
				if n < (round+1)*20 || n > (round+1)*100 || n%(round+1) != 0 {
					t.Errorf("socket %d has %d of %d datagrams", i, n, 200*(round+1))
				}
			}
		}
		if _, err := w.s.ListenUDP(mustAddrPort("0.0.0.0:53"), stack.UDPOptions{}); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a socket that does not share: %v, want EADDRINUSE", err)
		}
	})
}

// dualStack lists local addresses of sockets that share a port by SO_REUSEPORT, and the sockets that receive packets
// from 10.0.0.2 to 10.0.0.1: the IPv4 sockets, as on Linux.
var dualStack = []struct {
	locals []string
	want   []int
}{
	{[]string{"[::]:53", "0.0.0.0:53", "[::]:53", "0.0.0.0:53"}, []int{1, 3}},
	{[]string{"10.0.0.1:53", "[::]:53", "0.0.0.0:53"}, []int{0}},
	{[]string{"[::]:53", "10.0.0.5:53", "[::]:53"}, []int{0, 2}},
	{[]string{"[::ffff:10.0.0.1]:53", "10.0.0.1:53"}, []int{1}},
	{[]string{"[::ffff:10.0.0.1]:53", "0.0.0.0:53"}, []int{0}},
}

func TestUDPDualStack(t *testing.T) {
	for _, test := range dualStack {
		byHand(t, func(t *testing.T, w *peer) {
			if err := w.s.AddAddress("eth0", prefix("10.0.0.5/24")); err != nil {
				t.Fatal(err)
			}
			var sockets []*stack.UDPConn
			for _, local := range test.locals {
				sockets = append(sockets, mustListenUDP(t, w.s, local, stack.UDPOptions{ReusePort: true}))
			}
			for from := range uint16(60) {
				w.sendUDP(1000+from, 53, "x")
			}
			synctest.Wait()
			for i, c := range sockets {
				n, _ := c.Waiting()
				if want := slices.Contains(test.want, i); n > 0 != want {
					t.Errorf("%v: socket %d has %d datagrams", test.locals, i, n)
				}
			}
		})
	}
}

func TestTCPDualStack(t *testing.T) {
	for _, test := range dualStack {
		byHand(t, func(t *testing.T, w *peer) {
			if err := w.s.AddAddress("eth0", prefix("10.0.0.5/24")); err != nil {
				t.Fatal(err)
			}
			var listeners []*stack.TCPListener
			for _, local := range test.locals {
				l, err := w.s.ListenTCP(mustAddrPort(local), 100, stack.TCPOptions{ReusePort: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				listeners = append(listeners, l)
			}
			w.forget()
			for from := range uint16(60) {
				p := w.tcp(1000+from, 53)
				p.sendAs(wire.TCP{Seq: 1, Flags: wire.SYN}, "")
				if f := w.next(); f != nil && f.tcp != nil {
					p.sendAs(wire.TCP{Seq: 2, Ack: f.tcp.Seq + 1, Flags: wire.ACK}, "")
				}
			}
			synctest.Wait()
			for i, l := range listeners {
				n, _ := l.Waiting()
				if want := slices.Contains(test.want, i); n > 0 != want {
					t.Errorf("%v: listener %d has %d connections", test.locals, i, n)
				}
			}
		})
	}
}

// Without SO_REUSEPORT, the newest of the sockets that share a port receives all.
func TestUDPReuseAddr(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		share := stack.UDPOptions{ReuseAddr: true}
		sockets := []*stack.UDPConn{
			mustListenUDP(t, w.s, "0.0.0.0:53", share), mustListenUDP(t, w.s, "0.0.0.0:53", share), mustListenUDP(t, w.s, "[::]:53", share),
		}
		for from := range uint16(10) {
			w.sendUDP(1000+from, 53, "x")
			wantAt(t, "the newer IPv4 socket", sockets, 1)
		}
	})
}

func TestUDPBroadcast(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		share := stack.UDPOptions{ReuseAddr: true}
		sockets := []*stack.UDPConn{
			mustListenUDP(t, w.s, "0.0.0.0:53", share),
			mustListenUDP(t, w.s, "0.0.0.0:53", share),
			mustListenUDP(t, w.s, "10.0.0.1:53", share),
			mustListenUDP(t, w.s, "10.0.0.255:53", share),
		}
		sendAll := func(to string) {
			dst := netip.MustParseAddr(to)
			b := packet(wire.IPv4{Protocol: wire.ProtoUDP, Dst: dst}, datagram(netip.AddrPortFrom(addrB, 1000), netip.AddrPortFrom(dst, 53), "x"))
			w.send(ethernet(wire.Broadcast, wire.TypeIPv4, b))
		}
		sendAll("255.255.255.255")
		wantAt(t, "a datagram to all is for every socket on all addresses", sockets, 0, 1)
		sendAll("10.0.0.255")
		wantAt(t, "one to the subnet also for who asks for that", sockets, 0, 1, 3)
		mustConnect(t, sockets[1], "10.0.0.2:2000")
		sendAll("255.255.255.255")
		wantAt(t, "but not for who is connected to somebody else", sockets, 0)
		before := w.s.Counters()
		dst := netip.MustParseAddr("255.255.255.255")
		w.send(ethernet(wire.Broadcast, wire.TypeIPv4, packet(wire.IPv4{Protocol: wire.ProtoUDP, Dst: dst},
			datagram(netip.AddrPortFrom(addrB, 1000), netip.AddrPortFrom(dst, 9), "x"))))
		w.wantRefused("one that nobody wants is counted", before, stack.UDPNoPort)
		w.wantNone("and not answered (RFC 1122 section 3.2.2)")
	})
}

func TestUDPSendsBroadcast(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		for _, to := range []string{"10.0.0.255:9", "255.255.255.255:9"} {
			if _, err := c.TryWriteTo([]byte("x"), mustAddrPort(to)); !errors.Is(err, syscall.EACCES) {
				t.Errorf("to %s without SO_BROADCAST: %v, want EACCES", to, err)
			}
		}
		c.SetOptions(func(o *stack.UDPOptions) { o.Broadcast = true })
		for _, to := range []string{"10.0.0.255", "255.255.255.255"} {
			mustWriteTo(t, c, "x", to+":9")
			if f := w.want("with it", "udp 10.0.0.1:1000 > "+to+`:9 "x"`); f.eth.Dst != wire.Broadcast {
				t.Errorf("sent to %v, want all", f.eth.Dst)
			}
		}
		if _, err := w.s.Dial("tcp", "10.0.0.255:80"); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("TCP to all: %v, want ENETUNREACH", err)
		}
	})
}

// 127.255.255.255 is the broadcast address of the loopback interface (RFC 919): each socket of its port gets the datagram, from 127.0.0.1.
func TestUDPLoopbackBroadcast(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		share := stack.UDPOptions{ReuseAddr: true}
		a, b := mustListenUDP(t, w.s, "0.0.0.0:9", share), mustListenUDP(t, w.s, "127.255.255.255:9", share)
		all := mustAddrPort("127.255.255.255:9")
		if _, err := mustListenUDP(t, w.s, "0.0.0.0:1000", stack.UDPOptions{}).TryWriteTo([]byte("x"), all); !errors.Is(err, syscall.EACCES) {
			t.Errorf("without the option: %v, want EACCES", err)
		}
		mustWriteTo(t, mustListenUDP(t, w.s, "0.0.0.0:1001", stack.UDPOptions{Broadcast: true}), "to all", all.String())
		for _, c := range []*stack.UDPConn{a, b} {
			wantDatagram(t, c, "a broadcast", "to all")
		}
		if _, err := w.s.Dial("tcp", all.String()); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("TCP to all: %v, want ENETUNREACH", err)
		}
		mustWriteTo(t, mustListenUDP(t, w.s, "0.0.0.0:1002", stack.UDPOptions{}), "to one", "127.255.255.254:9")
		wantDatagram(t, a, "another address of the network", "to one")
	})
}

// Sockets made by Dial and ListenPacket may broadcast, as in Go on Linux.
func TestUDPNetMayBroadcast(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c, err := w.s.Dial("udp", "10.0.0.255:9")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("a socket that was dialled: %v", err)
		}
		p := mustListenPacket(t, w.s, ":1000")
		defer p.Close()
		if _, err := p.(*stack.UDPConn).WriteToUDPAddrPort([]byte("x"), mustAddrPort("255.255.255.255:9")); err != nil {
			t.Errorf("a socket that listens: %v", err)
		}
	})
}

// Multicast according to RFC 1112: a datagram is sent to the group's MAC address with TTL 1, and received by members
// of the group.
func TestUDPMulticast(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		group := netip.MustParseAddr("239.129.2.3")
		share := stack.UDPOptions{ReuseAddr: true}
		sockets := []*stack.UDPConn{
			mustListenUDP(t, w.s, "0.0.0.0:53", share),
			mustListenUDP(t, w.s, "0.0.0.0:53", share),
			mustListenUDP(t, w.s, "239.129.2.3:53", share),
		}
		for _, i := range []int{0, 2} {
			if err := sockets[i].JoinGroup(group, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := sockets[0].JoinGroup(group, nil); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("joining twice: %v, want EADDRINUSE", err)
		}
		if err := sockets[0].JoinGroup(addrB, nil); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("joining what is no group: %v, want EINVAL", err)
		}
		mac := wire.MAC{1, 0, 0x5e, 1, 2, 3}
		send := func() {
			w.send(ethernet(mac, wire.TypeIPv4, packet(wire.IPv4{Protocol: wire.ProtoUDP, Dst: group},
				datagram(netip.AddrPortFrom(addrB, 1000), netip.AddrPortFrom(group, 53), "x"))))
		}
		send()
		wantAt(t, "a datagram to a group is for its members", sockets, 0, 2)
		if err := sockets[0].LeaveGroup(group, nil); err != nil {
			t.Errorf("leaving: %v", err)
		}
		if err := sockets[0].LeaveGroup(group, nil); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("leaving twice: %v, want EADDRNOTAVAIL", err)
		}
		send()
		wantAt(t, "who has left is none", sockets, 2)
		eth := w.s.Interfaces()[1]
		if got := users(eth); len(got) != 1 || got[group] != 1 {
			t.Errorf("members: %v, want one of %v", got, group)
		}
		lo := w.s.Interfaces()[0]
		if err := sockets[2].LeaveGroup(group, lo); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("leaving on another interface: %v, want EADDRNOTAVAIL", err)
		}
		sockets[2].LeaveGroup(group, eth)
		if err := sockets[2].JoinGroup(group, lo); err != nil || users(lo)[group] != 1 {
			t.Errorf("joining on the loopback: %v", err)
		}
		before := w.s.Counters()
		send()
		w.wantRefused("without members on its interface it is counted", before, stack.IPNotMember)
		mustWriteTo(t, sockets[0], "y", "239.129.2.3:9")
		f := w.want("sending needs no membership", `udp 10.0.0.1:53 > 239.129.2.3:9 "y"`)
		if f.eth.Dst != mac || f.ip.TTL != 1 {
			t.Errorf("sent to %v with TTL %d, want %v with 1", f.eth.Dst, f.ip.TTL, mac)
		}
	})
}

// A datagram may override the source, interface, TTL and TOS of its socket.
func TestUDPSend(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		if err := w.s.AddAddress("eth0", prefix("10.0.0.5/24")); err != nil {
			t.Fatal(err)
		}
		c := mustListenUDP(t, w.s, "0.0.0.0:53", stack.UDPOptions{})
		lo, eth := w.s.Interfaces()[0], w.s.Interfaces()[1]
		send := func(to string, by stack.UDPSend) error {
			_, err := c.TryWriteBy([]byte("x"), mustAddrPort(to), by)
			return err
		}
		source := netip.MustParseAddr("10.0.0.5")
		if err := send("239.1.2.3:9", stack.UDPSend{Source: source, On: eth, TTL: 7, TOS: 2, HasTOS: true}); err != nil {
			t.Fatal(err)
		}
		f := w.want("the source that is asked for", `udp 10.0.0.5:53 > 239.1.2.3:9 "x"`)
		if f.ip.TTL != 7 || f.ip.TOS != 2 {
			t.Errorf("TTL %d and TOS %d, want 7 and 2", f.ip.TTL, f.ip.TOS)
		}
		group := netip.MustParseAddr("239.1.2.4")
		if err := c.JoinGroup(group, lo); err != nil {
			t.Fatal(err)
		}
		if err := send("239.1.2.4:53", stack.UDPSend{On: lo}); err != nil {
			t.Fatal(err)
		}
		wantAt(t, "by the loopback it comes back", []*stack.UDPConn{c}, 0)
		if err := send("10.0.0.2:9", stack.UDPSend{Source: addrB}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("from another's address: %v, want EINVAL", err)
		}
	})
}

func TestUDPReceiveBuffer(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustListenUDP(t, w.s, "0.0.0.0:53", stack.UDPOptions{ReceiveBuffer: 50_000})
		held := w.heldFrames()
		for range 100 {
			w.sendUDP(1000, 53, "x")
		}
		n, _ := c.Waiting()
		if n < 20 || n > 30 {
			t.Errorf("%d datagrams wait in a buffer of 50000 bytes: each takes 2 kB", n)
		}
		w.wantCount("the others are dropped", stack.UDPOverflow, uint64(100-n))
		if got := w.heldFrames() - held; got != n {
			t.Errorf("%d frames are held for %d datagrams", got, n)
		}
		for i := range 1000 { // the queue never becomes empty, and its memory must not grow
			c.TryReadFrom(nil)
			w.sendUDP(1000, 53, "x")
			if got, _ := c.Waiting(); got != n {
				t.Fatalf("round %d: %d datagrams wait", i, got)
			}
		}
		c.SetOptions(func(o *stack.UDPOptions) { o.ReceiveBuffer = 100_000 })
		w.sendUDP(1000, 53, "x")
		if got, _ := c.Waiting(); got != n+1 {
			t.Errorf("a larger buffer holds %d datagrams, want one more", got)
		}
	})
}

func TestUDPRefused(t *testing.T) {
	good := datagram(netip.AddrPortFrom(addrB, 1000), netip.AddrPortFrom(addrA, 53), "hello")
	damaged := append([]byte(nil), good...)
	damaged[9] ^= 1
	long := append([]byte(nil), good...)
	long[5] += 10
	for _, c := range []struct {
		name string
		b    []byte
		want stack.Counter
	}{
		{"half a header", good[:4], stack.UDPMalformed},
		{"a length beyond the packet", long, stack.UDPMalformed},
		{"a damaged datagram", damaged, stack.UDPChecksum},
	} {
		t.Run(c.name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				s := mustUDP(t, w.s, 53)
				defer s.Close()
				before := w.s.Counters()
				w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP}, c.b)
				w.wantRefused(c.name, before, c.want)
				w.wantNone("nothing is said to it")
			})
		})
	}
}

// A socket that is bound to a broadcast address sends from another address.
func TestSendFromBroadcastSocket(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		bound := mustListenUDP(t, w.s, "127.255.255.255:9", stack.UDPOptions{})
		to := mustListenUDP(t, w.s, "127.0.0.1:1000", stack.UDPOptions{})
		mustWriteTo(t, bound, "hello", "127.0.0.1:1000")
		b := make([]byte, 10)
		n, from, err := to.ReadFromUDPAddrPort(b)
		if err != nil || string(b[:n]) != "hello" || from != mustAddrPort("127.0.0.1:9") {
			t.Errorf("%q from %v, %v", b[:n], from, err)
		}
		bound.Close()
		to.Close()
	})
}
