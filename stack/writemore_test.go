package stack_test

import (
	"strings"
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

// Data written with TCP_CORK is sent when it fills a segment, when the option is cleared, or after 200 ms.
func TestCorkedWrites(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		c.SetNoDelay(true)
		cork := func(on bool) { c.SetOptions(func(o *stack.TCPOptions) { o.Cork = on }) }
		cork(true)
		for _, part := range []string{"head ", "and ", "body"} {
			mustWrite(t, c, part)
		}
		w.wantNone("the data is held back")
		cork(false)
		p.want("one segment when the option is cleared", "A", "head and body")
		p.send(wire.ACK, "")
		mustWrite(t, c, "not corked")
		p.want("later data is not held back", "A", "not corked")
		p.send(wire.ACK, "")

		cork(true)
		mustWrite(t, c, "a")
		mustWrite(t, c, "b")
		w.wantNone("the data is held back again")
		w.advance(200 * time.Millisecond)
		p.want("it is not held back for ever", "A", "ab")
		p.send(wire.ACK, "")

		part := strings.Repeat("x", 500)
		mustWrite(t, c, part)
		mustWrite(t, c, part)
		w.wantNone("two parts fill no segment")
		mustWrite(t, c, part)
		p.want("three parts fill a segment", "A", strings.Repeat("x", 1460))
		w.wantNone("the rest fills no segment")
		c.Abort()
	})
}
