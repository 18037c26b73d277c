package stack_test

import (
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// A program that sets other options, as Go programs do for each connection, keeps the
// quick acknowledgments at the start. TCP_QUICKACK overrides that.
func TestOptionsLeaveQuickAcks(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*stack.TCPOptions)
		quick bool
	}{
		"no delay":     {func(o *stack.TCPOptions) { o.Delay = false }, true},
		"keep-alive":   {func(o *stack.TCPOptions) { o.KeepAlive = true }, true},
		"quick ack":    {func(o *stack.TCPOptions) { o.QuickAck = true }, true},
		"no quick ack": {func(o *stack.TCPOptions) { o.DelayAck = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				l := mustListen(t, w.s, 80, 1)
				defer l.Close()
				p, conn := w.accepted(l, 5000)
				if err := conn.SetOptions(c.set); err != nil {
					t.Fatal(err)
				}
				p.send(wire.ACK, "x")
				if c.quick {
					p.want("the first data is acknowledged at once", "A", "")
				} else {
					w.wantNone("an acknowledgment waits for an answer")
				}
				conn.Abort()
			})
		})
	}
}

// A peer with one segment in flight does not wait for delayed acknowledgments if the
// program reads.
func TestOneSegmentInFlight(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 1)
		defer l.Close()
		p, conn := w.accepted(l, 5000)
		must(t, conn.SetOptions(func(o *stack.TCPOptions) { o.DelayAck = true })) // the same state as after the quick acknowledgments at the start of a connection
		p.send(wire.ACK|wire.PSH, "x")
		w.wantNone("an acknowledgment waits for the program")
		w.advance(50 * time.Millisecond)
		p.want("and at most for its delay", "A", "") // this single delayed acknowledgment does not make the connection interactive
		wantRead(t, conn, "the program reads", "x", nil)
		for range 100 {
			p.send(wire.ACK|wire.PSH, "x")
			w.wantNone("an acknowledgment waits for the program")
			wantRead(t, conn, "which reads", "x", nil)
			p.want("it leaves with the read", "A", "")
		}
		conn.Abort()
	})
}
