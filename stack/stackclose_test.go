package stack_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Stack.Close ends everything, whatever programs are doing. The cleanup of every script
// checks that no goroutine, frame or buffer has leaked.

// blocked runs f and returns a channel for its result.
func blocked(f func() error) chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	synctest.Wait()
	return done
}

func TestStackClose(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		p, open := w.accepted(l, 5000)
		waiting, half := w.tcp(5001, 80), w.tcp(5002, 80)
		waiting.connect()
		half.send(wire.SYN, "")
		half.want("a handshake in the middle", "SA", "")
		idle := mustListen(t, w.s, 81, 10)
		udp := mustUDP(t, w.s, 53)
		ping, err := w.s.ListenPing(netip.Addr{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		payload, _ := bigDatagram(addrA)
		w.sendPacket(fragment(wire.IPv4{Protocol: wire.ProtoUDP, ID: 1}, payload, 0, 1000))
		mustWriteTo(t, udp, "for nobody", "10.0.0.99:9") // waits for an ARP reply
		p.send(wire.ACK, "unread")
		w.forget()
		b := make([]byte, 10)
		var dialErr error
		calls := map[string]chan error{
			"Accept":   blocked(func() error { _, err := idle.Accept(); return err }),
			"ReadFrom": blocked(func() error { _, _, err := udp.ReadFrom(b); return err }),
			"Receive":  blocked(func() error { _, _, err := ping.Receive(b); return err }),
			"Dial":     blocked(func() error { _, dialErr = w.s.Dial("tcp", "10.0.0.2:9"); return dialErr }),
			"Ping":     blocked(func() error { _, err := w.s.Ping(context.Background(), addrB, 10); return err }),
			"Write": blocked(func() error {
				_, err := open.Write(make([]byte, 8<<20))
				return err
			}),
		}
		w.forget()
		if err := w.s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		synctest.Wait() // waits until all woken goroutines have ended
		for name, done := range calls {
			select {
			case err := <-done:
				if err == nil || name != "Write" && name != "Dial" && !isClosed(err) {
					t.Errorf("%s ends with %v", name, err)
				}
			default:
				t.Errorf("%s is still blocked", name)
			}
		}
		resets := map[uint16]bool{}
		for f := w.next(); f != nil; f = w.next() {
			if f.tcp != nil && f.tcp.Flags.Has(wire.RST) {
				resets[f.tcp.DstPort] = true
			}
		}
		for _, port := range []uint16{5000, 5001, 5002} {
			if !resets[port] {
				t.Errorf("port %d of the peer was not reset", port)
			}
		}
		buf := make([]byte, 100)
		if n, err := open.Read(buf); string(buf[:n]) != "unread" || err != nil {
			t.Errorf("what had arrived: %q, %v", buf[:n], err)
		}
		open.Read(buf) // returns the error with which the connection ended
		if _, err := open.Read(buf); err != io.EOF {
			t.Errorf("reading on: %v, want EOF", err)
		}
		if err := open.Close(); err != nil {
			t.Errorf("closing a connection afterwards: %v", err)
		}
	})
}

// After Close every call returns an error, and none blocks.
func TestAfterStackClose(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		_, c := w.accepted(l, 5000)
		udp := mustUDP(t, w.s, 53)
		w.s.Close()
		if err := w.s.Close(); err != nil {
			t.Errorf("Close again: %v", err)
		}
		b := make([]byte, 10)
		for name, call := range map[string]func() error{
			"Dial":         func() error { _, err := w.s.Dial("tcp", "10.0.0.2:9"); return err },
			"Dial of UDP":  func() error { _, err := w.s.Dial("udp", "10.0.0.2:9"); return err },
			"Listen":       func() error { _, err := w.s.Listen("tcp", ":0"); return err },
			"ListenPacket": func() error { _, err := w.s.ListenPacket("udp", ":0"); return err },
			"ListenPing":   func() error { _, err := w.s.ListenPing(netip.Addr{}, 0); return err },
			"AddAddress":   func() error { return w.s.AddAddress("eth0", netip.MustParsePrefix("10.9.0.1/24")) },
			"AddRoute": func() error {
				return w.s.AddRoute(stack.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: addrB})
			},
			"Attach": func() error {
				a, _ := pipe.New(pipe.Config{})
				defer a.Close()
				_, err := w.s.Attach(a, stack.InterfaceConfig{})
				return err
			},
			"Detach":          func() error { return w.ifc.Detach() },
			"DHCP":            func() error { _, err := w.ifc.DHCP(context.Background(), ""); return err },
			"Accept":          func() error { _, err := l.Accept(); return err },
			"ReadFrom":        func() error { _, _, err := udp.ReadFrom(b); return err },
			"WriteTo":         func() error { _, err := udp.WriteToUDPAddrPort(b, mustAddrPort("10.0.0.2:9")); return err },
			"Close of UDP":    udp.Close,
			"Close of listen": l.Close,
		} {
			if err := call(); !errors.Is(err, stack.ErrClosed) && !isClosed(err) {
				t.Errorf("%s: %v, want %v", name, err, stack.ErrClosed)
			}
		}
		if _, err := c.Write(b); err == nil {
			t.Error("a write succeeds")
		}
		c.Close()
		_ = c.Info()
		_ = w.s.Counters()
		if list := w.ifc.Neighbours(); list != nil {
			t.Errorf("neighbours %v", list)
		}
		w.ifc.ReleaseDHCP()
	})
}

// Close works while connections on several shards transfer data.
func TestStackCloseUnderLoad(t *testing.T) {
	for range 5 {
		p := newPair(t, stack.Config{Shards: 4}, pipe.Config{})
		l, err := p.b.Listen("tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		var programs sync.WaitGroup
		programs.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				programs.Go(func() {
					io.Copy(c, c)
					c.Close()
				})
			}
		})
		busy := make(chan struct{}, 100)
		for range 8 {
			programs.Go(func() {
				for {
					c, err := p.a.Dial("tcp", "10.0.0.2:80")
					if err != nil {
						return
					}
					programs.Go(func() { c.Write(make([]byte, 100000)) })
					io.CopyN(io.Discard, c, 100000)
					c.Close()
					select {
					case busy <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 50 {
			<-busy
		}
		p.b.Close()
		p.a.Close()
		programs.Wait()
	}
}
