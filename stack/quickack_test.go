package stack_test

import (
	"testing"

	"loam/stack"
	"loam/wire"
)

// A program that sets other options, as Go programs do with each connection, leaves the
// acknowledgments quick at the start; TCP_QUICKACK decides for itself.
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
