package stack_test

import (
	"io"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/stack"
	"loam/stack/fastopen"
	"loam/wire"
)

// fastPair is a host whose programs open connections to each other with TCP Fast Open.
type fastPair struct {
	t *testing.T
	s *stack.Stack
	l *stack.TCPListener
}

// fastOpened runs a test with a listener that has the options o.
func fastOpened(t *testing.T, o stack.TCPOptions, test func(p *fastPair)) {
	synctest.Test(t, func(t *testing.T) {
		s := stack.New(stack.Config{})
		defer s.Close()
		l, err := s.ListenTCP(mustAddrPort("127.0.0.1:80"), 16, o)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		test(&fastPair{t, s, l})
	})
}

// dial opens a connection with data. want is how much of it must be in the SYN.
func (p *fastPair) dial(o stack.TCPOptions, data string, want int) *stack.TCPConn {
	p.t.Helper()
	c, n, err := p.s.DialFast(netip.AddrPort{}, p.l.LocalAddrPort(), o, []byte(data))
	if err != nil || n != want {
		p.t.Fatalf("%d bytes in the SYN, %v, want %d", n, err, want)
	}
	synctest.Wait()
	return c
}

// accept accepts a connection and checks the data that it has.
func (p *fastPair) accept(want string) *stack.TCPConn {
	p.t.Helper()
	c, err := p.l.TryAccept()
	if err != nil {
		p.t.Fatal(err)
	}
	b := make([]byte, 100)
	n, err := c.TryRead(b)
	if string(b[:n]) != want || err != nil && err != stack.ErrWouldBlock {
		p.t.Fatalf("the connection has %q, %v, want %q", b[:n], err, want)
	}
	return c
}

func (p *fastPair) count(what string, c stack.Counter, want uint64) {
	p.t.Helper()
	all := p.s.Counters()
	if got := all.Get(c); got != want {
		p.t.Errorf("%s: %v is %d, want %d", what, c, got, want)
	}
}

func TestFastOpen(t *testing.T) {
	fastOpened(t, stack.TCPOptions{FastOpen: 5}, func(p *fastPair) {
		if p.s.HasFastOpenCookie(p.l.LocalAddrPort().Addr()) {
			t.Error("there is a cookie at the start")
		}
		c := p.dial(stack.TCPOptions{}, "hello", 0)
		defer c.Close()
		d := p.accept("")
		defer d.Close()
		p.count("the client has requested a cookie", stack.TCPFastRequests, 1)
		if !p.s.HasFastOpenCookie(p.l.LocalAddrPort().Addr()) {
			t.Error("the client has no cookie")
		}

		c = p.dial(stack.TCPOptions{}, "hello", 5)
		defer c.Close()
		d = p.accept("hello")
		defer d.Close()
		p.count("the SYN had data", stack.TCPFastActive, 1)
		p.count("the SYN had data", stack.TCPFastPassive, 1)
		if !c.Info().SynData || !d.Info().SynData {
			t.Error("TCP_INFO does not show the data of the SYN")
		}
		mustWrite(t, d, "answer")
		d.CloseWrite()
		if b, err := io.ReadAll(c); string(b) != "answer" || err != nil {
			t.Errorf("the client has read %q, %v", b, err)
		}
	})
}

// A listener without Fast Open, or with other keys than before, gets the data after an ordinary handshake.
func TestFastOpenFallsBack(t *testing.T) {
	keys := func(n byte) *fastopen.Keys { return fastopen.NewKeys(make([]byte, fastopen.KeyLen*int(n))) }
	fastOpened(t, stack.TCPOptions{FastOpen: 5}, func(p *fastPair) {
		p.l.SetFastOpenKeys(keys(1))
		defer p.dial(stack.TCPOptions{}, "", 0).Close()
		defer p.accept("").Close()
		for _, o := range []stack.TCPOptions{{}, {FastOpen: 5}} {
			p.l.SetOptions(func(has *stack.TCPOptions) { *has = o })
			p.l.SetFastOpenKeys(nil)
			defer p.dial(stack.TCPOptions{}, "hello", 5).Close()
			defer p.accept("hello").Close()
		}
		p.count("no data of a SYN was accepted", stack.TCPFastPassive, 0)
		p.count("the client has sent it again", stack.TCPFastActiveFail, 2)
		p.count("the second listener had other keys", stack.TCPFastPassiveFail, 1)
		defer p.dial(stack.TCPOptions{}, "hello", 5).Close()
		defer p.accept("hello").Close()
		p.count("the new cookie is valid", stack.TCPFastPassive, 1)
	})
}

// A listener that trusts its network needs no cookie.
func TestFastOpenWithoutCookie(t *testing.T) {
	fastOpened(t, stack.TCPOptions{FastOpen: 5, FastOpenNoCookie: true}, func(p *fastPair) {
		defer p.dial(stack.TCPOptions{FastOpenNoCookie: true}, "hello", 5).Close()
		defer p.accept("hello").Close()
		p.count("the data was accepted", stack.TCPFastPassive, 1)
		p.count("the data was accepted", stack.TCPFastActive, 1)
	})
}

// The option limits the incomplete handshakes. A request that the client resets counts for a minute.
func TestFastOpenLimit(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		keys := fastopen.NewKeys(make([]byte, fastopen.KeyLen))
		l, err := w.s.ListenTCP(netip.AddrPortFrom(netip.Addr{}, 80), 16, stack.TCPOptions{FastOpen: 1})
		if err != nil {
			t.Fatal(err)
		}
		l.SetFastOpenKeys(keys)
		defer l.Close()
		syn := func(from uint16, fast bool) *tcpPeer {
			const data = "hello"
			p := w.fastSYN(from, keys, data)
			if !fast {
				p.next -= uint32(len(data)) // the data is not acknowledged
			}
			p.want("the SYN is answered", "SA", "")
			return p
		}
		take := func(what string) {
			c, err := l.TryAccept()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			t.Cleanup(func() { c.Abort() })
		}
		one := syn(5000, true)
		take("the first request")
		syn(5001, false).send(wire.RST, "")
		one.send(wire.ACK, "")
		two := syn(5002, true)
		take("the first request has completed its handshake")
		two.send(wire.RST, "")
		syn(5003, false).send(wire.RST, "")
		w.advance(time.Minute)
		syn(5004, true)
		take("a minute later")
		w.wantCount("beyond the limit, and after a reset", stack.TCPFastOverflow, 2)
	})
}

// fastSYN sends a SYN with a valid cookie and data from a port of the peer.
func (w *peer) fastSYN(from uint16, keys *fastopen.Keys, data string) *tcpPeer {
	p := w.tcp(from, 80)
	h := wire.TCP{Flags: wire.SYN, Seq: p.next}
	h.FastOpen = keys.Cookie(addrB, addrA)
	p.sendAs(h, data)
	p.next += 1 + uint32(len(data))
	return p
}

// A client's segments may end a connection and open the next one from the same port in one turn of the shard. The first one is
// no longer pending then, and its program sees the end of the stream.
func TestFastOpenConnectionReplaced(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		keys := fastopen.NewKeys(make([]byte, fastopen.KeyLen))
		l, err := w.s.ListenTCP(netip.AddrPortFrom(netip.Addr{}, 80), 16, stack.TCPOptions{FastOpen: 1})
		if err != nil {
			t.Fatal(err)
		}
		l.SetFastOpenKeys(keys)
		defer l.Close()
		p := w.fastSYN(5000, keys, "hello")
		p.want("the SYN is answered", "SA", "")
		c, err := l.TryAccept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		b := make([]byte, 10)
		if n, err := c.TryRead(b); n != 5 || err != nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
		c.CloseWrite()
		p.want("the server ends its stream", "FA", "")
		w.hold()
		p.send(wire.FIN|wire.ACK, "")
		next := w.tcp(5000, 80)
		next.next = p.next + 100_000
		next.send(wire.SYN, "")
		w.release()
		if n, err := c.TryRead(b); n != 0 || err != io.EOF {
			t.Errorf("read %d bytes, %v at the end of the stream", n, err)
		}
		w.forget()
		w.fastSYN(5001, keys, "hello")
		all := w.s.Counters()
		if n := all.Get(stack.TCPFastPassive); n != 2 {
			t.Errorf("%d connections were opened by a cookie, want 2", n)
		}
	})
}

// The receive buffer of the listener limits what a SYN-ACK announces, and so the data of a SYN. The connection is established later.
func TestFastOpenWindow(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		keys := fastopen.NewKeys(make([]byte, fastopen.KeyLen))
		l, err := w.s.ListenTCP(netip.AddrPortFrom(netip.Addr{}, 80), 16, stack.TCPOptions{FastOpen: 5, ReceiveBuffer: 4096})
		if err != nil {
			t.Fatal(err)
		}
		l.SetFastOpenKeys(keys)
		defer l.Close()
		p := w.fastSYN(5000, keys, "hello")
		if f := p.want("the SYN is answered", "SA", ""); f.tcp.Window != 4096-5 {
			t.Errorf("the window is %d bytes", f.tcp.Window)
		}
		w.wantCount("the address of the client may be forged", stack.TCPEstablished, 0)
		p.send(wire.ACK, "")
		w.wantCount("the handshake is complete", stack.TCPEstablished, 1)
		p.send(wire.RST, "")
	})
}

// RFC 7413 section 4.1.3.1: if SYNs with data are lost again and again, the next ones have neither data nor option.
func TestFastOpenLosses(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		dial := func(port uint16, want string, again bool) {
			t.Helper()
			c, _, err := w.s.DialFast(netip.AddrPort{}, netip.AddrPortFrom(addrB, port), stack.TCPOptions{FastOpenNoCookie: true}, []byte("hello"))
			if err != nil {
				t.Fatal(err)
			}
			p := w.tcp(port, 0)
			if f := p.take("a SYN"); string(f.data) != want {
				t.Errorf("port %d: the SYN has %q, want %q", port, f.data, want)
			}
			if again {
				w.advance(time.Second)
				p.take("the SYN again")
			}
			p.send(wire.SYN|wire.ACK, "")
			c.Abort()
			w.forget()
		}
		dial(81, "hello", true)
		dial(82, "hello", true)
		dial(83, "", false)
		w.advance(5 * time.Minute)
		dial(84, "hello", false)
		dial(85, "hello", true)
		dial(86, "hello", false)
	})
}
