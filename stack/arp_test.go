package stack_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// ARP according to RFC 826, RFC 1122 section 2.3.2 and RFC 5227, observed on the wire.

// arpScript runs a script on a stack that has an address but an empty neighbour cache.
func arpScript(t *testing.T, script func(t *testing.T, w *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newBarePeer(t, stack.Config{Shards: 1}, pipe.Config{})
		w.arps = true
		if err := w.s.AddAddress("eth0", netip.PrefixFrom(addrA, 24)); err != nil {
			t.Fatal(err)
		}
		w.want("a new address is announced (RFC 5227 section 2.3)", "arp who-has 10.0.0.1 tell 10.0.0.1")
		w.advance(2 * time.Second)
		w.want("and once more after ANNOUNCE_INTERVAL", "arp who-has 10.0.0.1 tell 10.0.0.1")
		script(t, w)
	})
}

// mustUDP returns a UDP socket of the stack bound to a port.
func mustUDP(t testing.TB, s *stack.Stack, port uint16) *stack.UDPConn {
	t.Helper()
	c, err := s.ListenUDP(netip.AddrPortFrom(netip.Addr{}, port), stack.UDPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustWriteTo(t testing.TB, c *stack.UDPConn, data, to string) {
	t.Helper()
	if _, err := c.TryWriteTo([]byte(data), netip.MustParseAddrPort(to)); err != nil {
		t.Fatalf("write %q to %s: %v", data, to, err)
	}
}

func TestARPResolves(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustWriteTo(t, c, "one", "10.0.0.2:53")
		mustWriteTo(t, c, "two", "10.0.0.2:53")
		q := w.want("the first packet has the neighbour asked for", "arp who-has 10.0.0.2 tell 10.0.0.1")
		if q.eth.Dst != wire.Broadcast {
			t.Errorf("the request goes to %v, want all", q.eth.Dst)
		}
		w.wantNone("packets wait for the answer (RFC 1122 section 2.3.2.2)")
		w.sendARP(wire.ARP{Op: wire.ARPReply, TargetMAC: macA, TargetIP: addrA})
		f := w.want("then they go, in order", `udp 10.0.0.1:1000 > 10.0.0.2:53 "one"`)
		if f.eth.Dst != macB {
			t.Errorf("the packet goes to %v, want %v", f.eth.Dst, macB)
		}
		w.want("then they go, in order", `udp 10.0.0.1:1000 > 10.0.0.2:53 "two"`)
		mustWriteTo(t, c, "three", "10.0.0.2:53")
		w.want("what comes later does not wait", `udp 10.0.0.1:1000 > 10.0.0.2:53 "three"`)
		w.wantCount("one neighbour is resolved", stack.NeighResolved, 1)
	})
}

// A program tries to send while an address is being added. The first packet that succeeds triggers an ARP request at
// once, not a second later.
func TestARPAsksWithANewAddress(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			w := newBarePeer(t, stack.Config{Shards: 1}, pipe.Config{})
			w.arps = true
			c := mustUDP(t, w.s, 1000)
			defer c.Close()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				to := netip.MustParseAddrPort("10.0.0.2:53")
				for _, err := c.TryWriteTo([]byte("early"), to); err != nil; _, err = c.TryWriteTo([]byte("early"), to) {
				}
			}()
			if err := w.s.AddAddress("eth0", netip.PrefixFrom(addrA, 24)); err != nil {
				t.Fatal(err)
			}
			<-sent
			w.want("the address is announced", "arp who-has 10.0.0.1 tell 10.0.0.1")
			w.want("and the neighbour is asked for", "arp who-has 10.0.0.2 tell 10.0.0.1")
		})
	}
}

func TestARPGivesUp(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		if err := c.Connect(netip.MustParseAddrPort("10.0.0.2:53")); err != nil {
			t.Fatal(err)
		}
		mustWriteTo(t, c, "anybody?", "10.0.0.2:53")
		for range 3 {
			w.want("a request a second, no more (RFC 1122 section 2.3.2.1)", "arp who-has 10.0.0.2 tell 10.0.0.1")
			w.wantNone("a request a second, no more (RFC 1122 section 2.3.2.1)")
			w.advance(time.Second)
		}
		w.wantNone("after three there is no hope")
		w.wantCount("the packet that waited is dropped", stack.NeighFailed, 1)
		mustWriteTo(t, c, "still nobody?", "10.0.0.2:53")
		w.wantNone("failure is remembered for a while")
		w.wantCount("and drops at once", stack.NeighFailed, 2)
		if err := c.Err(); err != nil {
			t.Errorf("the socket hears %v of what may pass", err)
		}
		w.advance(5 * time.Second)
		mustWriteTo(t, c, "and now?", "10.0.0.2:53")
		w.want("but not for ever", "arp who-has 10.0.0.2 tell 10.0.0.1")
	})
}

// A connection attempt to a host that does not answer ARP ends when ARP gives up, as on
// Linux, and not only after two minutes of SYNs.
func TestARPGivesUpConnecting(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		began := time.Now()
		_, err := w.s.Dial("tcp", "10.0.0.2:80")
		if !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("dial: %v, want EHOSTUNREACH", err)
		}
		if d := time.Since(began); d > 4*time.Second {
			t.Errorf("dial took %v to fail, want 3 s", d)
		}
	})
}

// The packets waiting for a neighbour are bounded, and the newest are kept (RFC 1122
// section 2.3.2.2 requires at least the latest).
func TestARPQueueIsBounded(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		for i := range 136 {
			mustWriteTo(t, c, strconv.Itoa(i), "10.0.0.2:53")
			synctest.Wait()
		}
		w.wantCount("the oldest 8 of 136 packets gave way", stack.NeighOverflow, 8)
		w.want("one question for all of them", "arp who-has 10.0.0.2 tell 10.0.0.1")
		w.sendARP(wire.ARP{Op: wire.ARPReply, TargetMAC: macA, TargetIP: addrA})
		for i := 8; i < 136; i++ {
			w.want("the latest packets are sent", fmt.Sprintf(`udp 10.0.0.1:1000 > 10.0.0.2:53 "%d"`, i))
		}
		w.wantNone("the latest packets are sent")
	})
}

func TestARPQueueIsBoundedForAll(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		if err := w.s.AddAddress("eth0", netip.MustParsePrefix("10.1.0.1/16")); err != nil {
			t.Fatal(err)
		}
		w.forget()
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		for i := range 300 {
			to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(1 + i/250), byte(1 + i%250)}), 53)
			if _, err := c.TryWriteTo([]byte("x"), to); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		w.wantCount("packets to 256 neighbours may wait, no more", stack.NeighOverflow, 300-256)
	})
}

// The first datagram to a neighbour is not lost, however long it is.
func TestARPQueueHoldsTheLongestDatagram(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustWriteTo(t, c, string(make([]byte, stack.MaxUDP)), "10.0.0.2:53")
		synctest.Wait()
		w.wantCount("all its fragments wait", stack.NeighOverflow, 0)
	})
}

func TestARPAnswers(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		w.sendARP(wire.ARP{Op: wire.ARPRequest, TargetIP: addrA})
		f := w.want("who asks for our address is told", "arp 10.0.0.1 is-at 02:00:00:00:00:0a")
		if f.eth.Dst != macB || f.arp.TargetIP != addrB {
			t.Errorf("the answer goes to %v (%v), want the asker", f.eth.Dst, f.arp.TargetIP)
		}
		w.sendARP(wire.ARP{Op: wire.ARPRequest, TargetIP: netip.MustParseAddr("10.0.0.9")})
		w.wantNone("who asks for another address is not")
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustWriteTo(t, c, "hello", "10.0.0.2:53")
		w.want("who has asked for us is known (RFC 826, packet reception)", `udp 10.0.0.1:1000 > 10.0.0.2:53 "hello"`)
		w.wantCount("both requests were counted", stack.ARPReceived, 2)
	})
}

func TestARPNewAddressOfNeighbour(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		w.sendARP(wire.ARP{Op: wire.ARPRequest, TargetIP: addrA})
		w.forget()
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustWriteTo(t, c, "before", "10.0.0.2:53")
		if f := w.want("the neighbour is known", `udp 10.0.0.1:1000 > 10.0.0.2:53 "before"`); f.eth.Dst != macB {
			t.Errorf("sent to %v, want %v", f.eth.Dst, macB)
		}
		w.advance(2 * time.Second)
		moved := wire.MAC{2, 0, 0, 0, 0, 0xc}
		w.sendARP(wire.ARP{Op: wire.ARPRequest, SenderMAC: moved, TargetIP: addrB}) // gratuitous ARP
		mustWriteTo(t, c, "after", "10.0.0.2:53")
		if f := w.want("packets follow it", `udp 10.0.0.1:1000 > 10.0.0.2:53 "after"`); f.eth.Dst != moved {
			t.Errorf("sent to %v, want %v", f.eth.Dst, moved)
		}
	})
}

func TestARPConflict(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		claim := wire.ARP{Op: wire.ARPReply, SenderIP: addrA, TargetMAC: macA, TargetIP: addrA}
		w.sendARP(claim)
		w.want("an address that another claims is defended once (RFC 5227 section 2.4)", "arp who-has 10.0.0.1 tell 10.0.0.1")
		w.wantCount("and nothing is said yet", stack.ARPConflict, 0)
		w.sendARP(claim)
		w.wantNone("not twice in 10 s")
		w.wantCount("but it is counted", stack.ARPConflict, 1)
	})
}

func TestARPMalformed(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		w.send(ethernet(macA, wire.TypeARP, make([]byte, wire.ARPLen)))
		w.send(ethernet(macA, wire.TypeARP, []byte{0, 1}))
		w.wantNone("what is no ARP packet is not answered")
		w.wantCount("but counted", stack.ARPMalformed, 2)
		w.wantCount("as nothing else", stack.ARPReceived, 0)
	})
}

// A neighbour that has not been used for long is removed from the cache and from the
// table that shards read.
func TestARPForgets(t *testing.T) {
	arpScript(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustWriteTo(t, c, "hello", "10.0.0.2:53")
		w.forget()
		w.sendARP(wire.ARP{Op: wire.ARPReply, TargetMAC: macA, TargetIP: addrA})
		w.want("the neighbour is found", `udp 10.0.0.1:1000 > 10.0.0.2:53 "hello"`)
		w.advance(time.Hour)
		w.wantNone("an idle neighbour is not asked for")
		if n := w.ifc.Neighbours(); len(n) != 0 {
			t.Errorf("an hour later the cache has %v", n)
		}
		mustWriteTo(t, c, "hello again", "10.0.0.2:53")
		w.want("so it is asked for anew", "arp who-has 10.0.0.2 tell 10.0.0.1")
		w.wantNone("and the packet waits")
	})
}
