package stack_test

import (
	"strings"
	"testing"

	"loam/stack"
	"loam/wire"
)

// With TCP_NOTSENT_LOWAT, a write accepts at most the data that can be sent at once plus the option's value. The socket
// is writable again when the unsent data is below half of the option's value (tcp(7)).
func TestUnsentIsBounded(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.window = 14600
		p.send(wire.ACK, "")
		const low = 3000
		if err := c.SetOptions(func(o *stack.TCPOptions) { o.UnsentLow = low }); err != nil {
			t.Fatal(err)
		}
		data := strings.Repeat("x", 100000)
		if n, err := c.TryWrite([]byte(data)); n != 14600+low || err != nil {
			t.Errorf("a write of much took %d bytes, %v; want %d", n, err, 14600+low)
		}
		if n, err := c.TryWrite([]byte(data)); err != stack.ErrWouldBlock {
			t.Errorf("another took %d bytes, %v", n, err)
		}
		for sent := 0; sent < 14600; {
			f := w.next()
			if f == nil {
				t.Fatalf("%d bytes were sent, want 14600", sent)
			}
			sent += len(f.data)
		}
		p.expect += 14600
		p.window = 1460
		p.send(wire.ACK, "")
		w.next()
		if c.Events()&stack.Writable != 0 {
			t.Error("there is room though 1540 bytes have not been sent")
		}
		p.expect += 1460
		p.send(wire.ACK, "")
		w.next()
		if c.Events()&stack.Writable == 0 {
			t.Error("there is no room though 80 bytes only have not been sent")
		}
		c.Abort()
	})
}
