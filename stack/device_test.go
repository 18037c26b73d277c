package stack_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Tests of devices without room for frames, and of devices that are removed.

// Many connections on several shards share a device with room for four frames. All make
// progress, so no shard misses a room signal.
func TestFullDeviceIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, stack.Config{Shards: 4}, pipe.Config{Depth: 4})
		l := mustListen(t, p.b, 80, 100)
		const conns, size = 16, 300_000
		var programs sync.WaitGroup
		programs.Go(func() {
			for range conns {
				c, err := l.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				programs.Go(func() {
					c.SetDeadline(time.Now().Add(time.Hour))
					if n, err := io.Copy(c, c); n != size || err != nil {
						t.Errorf("echoed %d bytes, %v", n, err)
					}
					c.Close()
				})
			}
		})
		for range conns {
			programs.Go(func() {
				c, err := p.a.Dial("tcp", "10.0.0.2:80")
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(time.Hour))
				sent := randomBytes(size)
				programs.Go(func() {
					if _, err := c.Write(sent); err != nil {
						t.Error(err)
					}
					c.(*stack.TCPConn).CloseWrite()
				})
				if got, err := io.ReadAll(c); !bytes.Equal(got, sent) || err != nil {
					t.Errorf("received %d of %d bytes, %v", len(got), size, err)
				}
			})
		}
		programs.Wait()
		l.Close()
	})
}

// A device without room blocks writers, and nothing is dropped.
func TestFullDeviceHoldsUDP(t *testing.T) {
	byHandOn(t, pipe.Config{Depth: 8}, func(t *testing.T, w *peer) {
		w.stop()
		c, err := w.s.ListenUDP(mustAddrPort("10.0.0.1:1000"), stack.UDPOptions{SendBuffer: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var e eventLog
		c.Watch(e.add)
		to := mustAddrPort("10.0.0.2:53")
		n := 0
		for ; n < 1000; n++ {
			if _, err = c.TryWriteTo(fmt.Append(nil, n), to); err != nil {
				break
			}
			synctest.Wait()
		}
		if err != stack.ErrWouldBlock || n < 50 {
			t.Fatalf("after %d datagrams: %v, want %v", n, err, stack.ErrWouldBlock)
		}
		if c.Events()&stack.Writable != 0 {
			t.Error("the socket is said to be writable")
		}
		wrote := make(chan error, 1)
		go func() {
			_, err := c.WriteToUDPAddrPort([]byte("last"), to)
			wrote <- err
		}()
		w.advance(time.Hour)
		select {
		case err := <-wrote:
			t.Fatalf("WriteTo did not wait: %v", err)
		default:
		}
		w.start()
		for i := range n {
			w.want("all arrive in order", fmt.Sprintf("udp 10.0.0.1:1000 > 10.0.0.2:53 %q", fmt.Sprint(i)))
		}
		w.want("and what waited", `udp 10.0.0.1:1000 > 10.0.0.2:53 "last"`)
		if err := <-wrote; err != nil {
			t.Errorf("WriteTo: %v", err)
		}
		if e.events.Load()&uint32(stack.Writable) == 0 {
			t.Error("nobody was told that there is room again")
		}
	})
}

// When a full device has room again, frames of the interface loop (here an ARP reply) are sent before queued packets.
// Otherwise neighbours would become unreachable on a busy link.
func TestFullDeviceLetsARPThrough(t *testing.T) {
	byHandOn(t, pipe.Config{Depth: 8}, func(t *testing.T, w *peer) {
		w.arps = true
		w.stop()
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		for range 300 {
			mustWriteTo(t, c, "x", "10.0.0.2:53")
		}
		w.sendARP(wire.ARP{Op: wire.ARPRequest, TargetIP: addrA})
		w.start()
		for range 20 {
			if f := w.next(); f != nil && f.arp != nil {
				return
			}
		}
		t.Error("the ARP request was not answered among the first frames")
	})
}

// A flood of ARP requests while the device is full is bounded.
func TestFullDeviceBoundsARP(t *testing.T) {
	byHandOn(t, pipe.Config{Depth: 1}, func(t *testing.T, w *peer) {
		w.arps = true
		w.stop()
		for range 100 {
			w.sendARP(wire.ARP{Op: wire.ARPRequest, TargetIP: addrA})
		}
		synctest.Wait()
		c := w.s.Counters()
		sent := c.Get(stack.EthNoRoom)
		if sent < 30 || sent > 36 {
			t.Errorf("of 100 answers %d were dropped, want all beyond 64 and those that the device holds", sent)
		}
		w.start()
	})
}

// Replies that find the device full are dropped and counted.
func TestFullDeviceDropsAnswers(t *testing.T) {
	byHandOn(t, pipe.Config{Depth: 1}, func(t *testing.T, w *peer) {
		w.stop()
		for range 200 {
			w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil)
			w.tcp(5000, 9).send(wire.SYN, "")
		}
		synctest.Wait()
		c := w.s.Counters()
		if c.Get(stack.ICMPNoRoom) == 0 || c.Get(stack.ICMPNoRoom)+c.Get(stack.ICMPEcho) != 200 {
			t.Errorf("of 200 requests %d were answered and %d dropped", c.Get(stack.ICMPEcho), c.Get(stack.ICMPNoRoom))
		}
		if c.Get(stack.TCPNoRoom) == 0 || c.Get(stack.TCPNoRoom)+c.Get(stack.TCPResetsSent) != 200 {
			t.Errorf("of 200 SYNs %d were reset and %d dropped", c.Get(stack.TCPResetsSent), c.Get(stack.TCPNoRoom))
		}
		w.start()
	})
}

// Resets that fill a full device leave room for the reply to an echo request.
func TestFullDeviceAnswersPing(t *testing.T) {
	byHandOn(t, pipe.Config{Depth: 1}, func(t *testing.T, w *peer) {
		w.stop()
		for range 200 {
			w.tcp(5000, 9).send(wire.SYN, "")
		}
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil)
		synctest.Wait()
		c := w.s.Counters()
		if c.Get(stack.TCPNoRoom) == 0 || c.Get(stack.ICMPEcho) != 1 {
			t.Errorf("%d resets were dropped, and %d echo requests were answered", c.Get(stack.TCPNoRoom), c.Get(stack.ICMPEcho))
		}
		w.start()
	})
}

// Detach during all kinds of activity leaks nothing, and sockets remain usable.
func TestDetach(t *testing.T) {
	byHandOn(t, pipe.Config{Depth: 1}, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		_, c := w.accepted(l, 5000)
		defer c.Close()
		w.stop()
		udp, err := w.s.ListenUDP(mustAddrPort("10.0.0.1:1000"), stack.UDPOptions{SendBuffer: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		defer udp.Close()
		for err == nil {
			_, err = udp.TryWriteTo([]byte("x"), mustAddrPort("10.0.0.2:53"))
			synctest.Wait()
		}
		udp.TryWriteTo([]byte("x"), mustAddrPort("10.0.0.77:53")) // waits for ARP
		mustWrite(t, c, string(randomBytes(100_000)))
		synctest.Wait()
		if err := w.ifc.Detach(); err != nil {
			t.Errorf("Detach: %v", err)
		}
		if err := w.ifc.Detach(); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("Detach again: %v, want ENODEV", err)
		}
		if n := w.heldFrames(); n > 2 {
			t.Errorf("%d frames are still held", n)
		}
		if len(w.s.Interfaces()) != 1 || len(w.s.Addresses()) != 2 {
			t.Errorf("there are %v and %v, want the loopback", w.s.Interfaces(), w.s.Addresses())
		}
		if udp.Events()&stack.Writable == 0 {
			t.Error("the socket is not writable although nothing is on the way")
		}
		if _, err := udp.TryWriteTo([]byte("x"), mustAddrPort("10.0.0.2:53")); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("write without an interface: %v, want ENETUNREACH", err)
		}
		if _, err := w.s.Dial("tcp", "10.0.0.2:80"); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("dial without an interface: %v, want ENETUNREACH", err)
		}
		before := w.s.Counters()
		w.advance(time.Hour)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("the connection ends with %v, want EHOSTUNREACH", err)
		}
		after := w.s.Counters()
		if after.Get(stack.IPNoRoute) == before.Get(stack.IPNoRoute) {
			t.Error("segments without a route were not counted")
		}
		if after.Get(stack.IPReceived) < before.Get(stack.IPReceived) {
			t.Error("the counters of the interface have gone with it")
		}
	})
}

// A connection continues when its address is added again, on any interface; here on one
// with a smaller MTU, to which segments adapt.
func TestReattach(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p, c := w.accepted(l, 5000)
		w.ifc.Detach()
		w.dev.Close()
		mustWrite(t, c, string(make([]byte, 1460)))
		w.advance(time.Second)
		near, far := pipe.New(pipe.Config{MTU: 1000})
		ifc, err := w.s.Attach(near, stack.InterfaceConfig{Name: "eth1"})
		if err != nil {
			t.Fatal(err)
		}
		ifc.SetNeighbour(addrB, macB)
		if err := w.s.AddAddress("eth1", netip.PrefixFrom(addrA, 24)); err != nil {
			t.Fatal(err)
		}
		w.dev, w.queue = far, far.Queues()[0]
		go w.read()
		w.advance(10 * time.Second)
		p.want("what was lost meanwhile is sent again, in smaller segments", "A", string(make([]byte, 960)))
		p.send(wire.ACK, "")
		p.want("and the rest", "A", string(make([]byte, 500)))
		p.send(wire.ACK, "")
		w.forget()
		c.Abort()
		p.want("the connection was there all the time", "RA", "")
	})
}

func TestDetachUnderLoad(t *testing.T) {
	for range 3 {
		p := newPair(t, stack.Config{Shards: 2}, pipe.Config{Depth: 16})
		l := mustListen(t, p.b, 80, 100)
		var programs sync.WaitGroup
		busy := make(chan struct{}, 100)
		for range 4 {
			programs.Go(func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				io.Copy(io.Discard, c)
			})
			programs.Go(func() {
				c, err := p.a.Dial("tcp", "10.0.0.2:80")
				if err != nil {
					return
				}
				defer c.Close()
				for err == nil {
					_, err = c.Write(make([]byte, 10000))
					select {
					case busy <- struct{}{}:
					default:
					}
				}
			})
			udp := mustUDP(t, p.a, 0)
			programs.Go(func() {
				defer udp.Close()
				var err error
				for err == nil {
					_, err = udp.WriteToUDPAddrPort(make([]byte, 3000), mustAddrPort("10.0.0.2:9"))
				}
			})
		}
		for range 50 {
			<-busy
		}
		for _, ifc := range p.a.Interfaces()[1:] {
			if err := ifc.Detach(); err != nil {
				t.Error(err)
			}
		}
		p.a.Close()
		p.b.Close()
		programs.Wait()
	}
}
