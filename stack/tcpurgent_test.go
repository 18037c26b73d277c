package stack_test

import (
	"testing"

	"loam/stack"
	"loam/wire"
)

// Urgent data as seen by programs. test/interop checks that it is the same on Linux.

func wantUrgent(t *testing.T, c *stack.TCPConn, sentence string, want byte, err error) {
	t.Helper()
	if b, e := c.TryReadUrgent(false); b != want || e != err {
		t.Errorf("%s: %q, %v; want %q, %v", sentence, b, e, want, err)
	}
}

func TestUrgentByteArrives(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		told := 0
		c.Watch(func(e stack.Events) {
			if e&stack.Urgent != 0 {
				told++
			}
		})
		wantUrgent(t, c, "none has been told of", 0, stack.ErrInvalid)
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.ACK | wire.URG, Urgent: 6}, "abc")
		p.next += 3
		wantRead(t, c, "in front of the mark", "abc", nil)
		wantUrgent(t, c, "told of, and not there yet", 0, stack.ErrWouldBlock)
		if told != 0 || c.Events()&stack.Urgent != 0 {
			t.Error("it is told that the urgent byte has come")
		}
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.ACK | wire.URG, Urgent: 3}, "def")
		p.next += 3
		w.advance(0)
		if told != 1 || c.Events()&stack.Urgent == 0 {
			t.Errorf("it is told %d times that the urgent byte has come", told)
		}
		if n := c.Buffered(); n != 2 {
			t.Errorf("%d bytes can be read at once, want those in front of the mark", n)
		}
		wantRead(t, c, "to the mark", "de", nil)
		if !c.AtMark() || c.Events()&stack.Readable != 0 {
			t.Error("not at the mark, or the urgent byte can be read as others are")
		}
		wantUrgent(t, c, "there it is", 'f', nil)
		wantUrgent(t, c, "once", 0, stack.ErrInvalid)
		p.send(wire.ACK, "ghi")
		wantRead(t, c, "behind the mark", "ghi", nil)
		if c.AtMark() {
			t.Error("still at the mark")
		}
		w.forget()
		c.Abort()
	})
}

// The end of the peer's stream is no new urgent byte.
func TestUrgentByteIsReportedOnce(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		reports := 0
		c.Watch(func(e stack.Events) {
			if e&stack.Urgent != 0 {
				reports++
			}
		})
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.ACK | wire.URG, Urgent: 3}, "abc")
		p.next += 3
		p.send(wire.FIN|wire.ACK, "")
		w.advance(0)
		if reports != 1 {
			t.Errorf("the urgent byte is reported %d times, want once", reports)
		}
		wantUrgent(t, c, "after the end of the stream", 'c', nil)
		w.forget()
		c.Abort()
	})
}

func TestUrgentByteInline(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		c.SetOptions(func(o *stack.TCPOptions) { o.UrgentInline = true })
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.ACK | wire.URG, Urgent: 3}, "abcd")
		p.next += 4
		w.advance(0)
		wantUrgent(t, c, "it stays in the stream", 0, stack.ErrInvalid)
		wantRead(t, c, "to the mark", "ab", nil)
		wantRead(t, c, "from the mark", "cd", nil)
		w.forget()
		c.Abort()
	})
}

func TestUrgentByteThatNobodyAsksFor(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.ACK | wire.URG, Urgent: 1}, "!abc")
		p.next += 4
		wantRead(t, c, "it is passed over", "abc", nil)
		wantUrgent(t, c, "and lost", 0, stack.ErrInvalid)
		p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.ACK | wire.URG, Urgent: 1}, "?")
		p.next++
		wantRead(t, c, "it is all that there is", "", stack.ErrWouldBlock)
		b := make([]byte, 9)
		if n, err := c.Peek(b, 0); n != 0 || err != stack.ErrWouldBlock {
			t.Errorf("Peek shows %q, %v", b[:n], err)
		}
		w.forget()
		c.Abort()
	})
}

func TestUrgentByteIsSent(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		if n, err := c.TryWriteUrgent([]byte("abc")); n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if f := p.want("at once, with a pointer behind it", "AU", "abc"); f.tcp.Urgent != 3 {
			t.Errorf("the pointer is %d", f.tcp.Urgent)
		}
		w.forget()
		c.Abort()
	})
}
