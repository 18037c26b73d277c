package stack_test

import (
	"net/netip"
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// TCP_DEFER_ACCEPT (tcp(7)): a connection is not accepted until it has received data, has
// ended, or its time has expired.
func TestDeferAccept(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l, err := w.s.ListenTCP(netip.AddrPortFrom(netip.Addr{}, 80), 5, stack.TCPOptions{DeferAccept: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		wantAccept := func(sentence string, want error) {
			t.Helper()
			c, err := l.TryAccept()
			if err != want {
				t.Errorf("%s: %v, want %v", sentence, err, want)
			}
			if err == nil {
				c.Abort()
				w.advance(0)
				w.forget()
			}
		}
		p := w.tcp(1000, 80)
		p.connect()
		w.advance(time.Second)
		wantAccept("nothing but the handshake", stack.ErrWouldBlock)
		p.send(wire.ACK, "GET /")
		wantAccept("with data", nil)

		p = w.tcp(1001, 80)
		p.connect()
		w.advance(2900 * time.Millisecond)
		wantAccept("before its time", stack.ErrWouldBlock)
		w.advance(200 * time.Millisecond)
		wantAccept("after its time", nil)

		p = w.tcp(1002, 80)
		p.connect()
		p.send(wire.ACK|wire.FIN, "")
		wantAccept("at its end", nil)

		p = w.tcp(1003, 80)
		p.connect()
		p.send(wire.RST, "")
		w.advance(5 * time.Second)
		wantAccept("one that was reset", stack.ErrWouldBlock)
		l.Close()
	})
}
