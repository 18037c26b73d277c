package stack_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// The tests of this file are about orphans: connections that the program has closed, and that the peer neither acknowledges nor closes.

// abandoned makes a program write to a peer with a closed window, and then close the
// connection.
func (w *peer) abandoned(l *stack.TCPListener, from uint16) *tcpPeer {
	w.t.Helper()
	p, c := w.accepted(l, from)
	p.window = 1
	p.send(wire.ACK, "x")
	p.want("a byte is acknowledged", "A", "")
	wantRead(w.t, c, "it comes", "x", nil)
	mustWrite(w.t, c, strings.Repeat("y", 1000))
	c.Close()
	return p
}

func TestOrphansAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeer(t, stack.Config{Shards: 1, MaxOrphanBytes: 3 * 3100}, pipe.Config{})
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		for port := range uint16(5) {
			w.abandoned(l, 5000+port)
			synctest.Wait()
			w.forget()
		}
		w.wantCount("beyond three, one gives way for each", stack.TCPOrphanOverflow, 2)
		if n := w.s.Counters(); n.Get(stack.TCPResets) != 0 {
			t.Errorf("the peer has reset: %s", &n)
		}
		w.advance(time.Hour)
		w.wantCount("and the others end by themselves, in time", stack.TCPOrphanOverflow, 2)
	})
}

// The oldest orphan is reset, and its peer receives the reset.
func TestOldestOrphanIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeer(t, stack.Config{Shards: 1, MaxOrphanBytes: 3100}, pipe.Config{})
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		first := w.closing(l, 5000)
		second := w.closing(l, 5001)
		first.want("the older one gives way", "RA", "")
		second.send(wire.FIN|wire.ACK, "")
		second.want("the newer one ends in order", "A", "")
		w.wantCount("one has given way", stack.TCPOrphanOverflow, 1)
	})
}

// closing makes the program close a connection while the peer has more data to send.
func (w *peer) closing(l *stack.TCPListener, from uint16) *tcpPeer {
	w.t.Helper()
	p := w.ending(l, from)
	p.send(wire.ACK, "")
	return p
}
