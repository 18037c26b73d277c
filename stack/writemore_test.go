package stack_test

import (
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// Data written with MSG_MORE is sent together with the following data, or after 200 ms
// (send(2)).
func TestWriteMore(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		c.SetNoDelay(true)
		if n, err := c.TryWriteMore([]byte("head ")); n != 5 || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		w.wantNone("more follows")
		mustWrite(t, c, "and body")
		p.want("both leave as one", "A", "head and body")
		p.send(wire.ACK, "")
		c.TryWriteMore([]byte("head"))
		w.wantNone("more is to follow again")
		w.advance(200 * time.Millisecond)
		p.want("it is not awaited for ever", "A", "head")
		c.Abort()
	})
}
