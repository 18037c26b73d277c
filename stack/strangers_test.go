package stack_test

import (
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// Floods of packets that need replies: replies are sent at a bounded rate, and known
// peers always get theirs.

func TestResetsAreBounded(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		p := w.tcp(5000, 80)
		for range 3000 {
			p.sendAs(wire.TCP{Seq: 1, Ack: 1, Flags: wire.ACK}, "")
			w.forget()
		}
		w.wantCount("of 3000 stray segments at once, so many are answered", stack.TCPResetsSent, 2048)
		w.wantCount("and the others are counted", stack.TCPResetsLimited, 3000-2048)
		w.advance(time.Second)
		for range 3000 {
			p.sendAs(wire.TCP{Seq: 1, Ack: 1, Flags: wire.ACK}, "")
			w.forget()
		}
		w.wantCount("a second later, a thousand more", stack.TCPResetsSent, 3048)
	})
}

func TestKnownPeersGetCookies(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.throughPeer()
		l := mustListen(t, w.s, 80, 16)
		defer l.Close()
		_, c := w.accepted(l, 6000)
		c.Abort()
		w.forget()
		for range 20 {
			w.flood(500, 80)
			w.forget()
		}
		w.wantCount("of 10,000 SYNs at once, so many get a cookie", stack.TCPCookiesSent, 8192)
		before := w.s.Counters()
		_, c = w.accepted(l, 6001)
		c.Abort()
		after := w.s.Counters()
		if n := after.Get(stack.TCPCookiesSent) - before.Get(stack.TCPCookiesSent); n != 1 {
			t.Errorf("a peer that has been here was sent %d cookies, want 1", n)
		}
	})
}

func TestARPRequestsAreBounded(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		before := w.s.Counters()
		for range 2000 {
			w.sendARP(wire.ARP{Op: wire.ARPRequest, TargetIP: addrA})
			w.forget()
		}
		after := w.s.Counters()
		if n := after.Get(stack.ARPSent) - before.Get(stack.ARPSent); n == 0 || n > 1024 {
			t.Errorf("2000 requests at once got %d answers, want at most 1024", n)
		}
	})
}
