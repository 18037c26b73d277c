package stack_test

import (
	"strings"
	"testing"
	"time"

	"loam/stack"
	"loam/stack/ring"
	"loam/wire"
)

// Programs and peers that do not read (RFC 9293 sections 3.8.6.1 and 3.8.6.2).

// If a program stops reading, a closed window stops the peer, buffered data is bounded,
// and the peer is informed when the program reads again.
func TestProgramStopsReading(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		big := strings.Repeat("x", 1000)
		for range 1000 {
			p.send(wire.ACK, big)
			w.advance(50 * time.Millisecond)
			if last := p.lastAck(); last.Window == 0 {
				p.next = last.Ack
				break
			}
		}
		if n := c.Buffered(); n < 32<<10 || n > 128<<10 {
			t.Errorf("%d bytes wait for the program", n)
		}
		if n := ring.Outstanding() * 4096; n > 128<<10 {
			t.Errorf("they take %d bytes", n)
		}
		for range 100 {
			p.sendAs(wire.TCP{Seq: p.next, Ack: p.expect, Flags: wire.ACK}, big)
			if last := p.lastAck(); last.Window != 0 || last.Ack != p.next {
				t.Errorf("beyond the window the answer is window %d at %d", last.Window, int32(last.Ack-p.next))
			}
		}
		if n := ring.Outstanding() * 4096; n > 128<<10 {
			t.Errorf("after what was beyond the window %d bytes are held", n)
		}
		held := c.Buffered()
		b := make([]byte, 1<<20)
		if n, err := c.TryRead(b); n != held || err != nil {
			t.Errorf("read %d of %d bytes, %v", n, held, err)
		}
		if last := p.lastAck(); last.Window == 0 {
			t.Error("the peer is not told that the window is open again")
		}
		p.send(wire.ACK, "more")
		wantRead(t, c, "and it goes on", "more", nil)
		c.Abort()
	})
}

// A peer with a closed window is probed with doubling intervals as long as it answers.
// Meanwhile the data that the program can write is bounded.
func TestPeerStopsReading(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.sendZeroWindow()
		written := 0
		for {
			n, err := c.TryWrite(make([]byte, 10000))
			written += n
			if err != nil {
				break
			}
		}
		if written < 64<<10 || written > 1<<20 {
			t.Errorf("the program could write %d bytes", written)
		}
		var pauses []time.Duration
		last := time.Now()
		for len(pauses) < 8 {
			w.advance(10 * time.Millisecond)
			f := w.next()
			if f == nil {
				if time.Since(last) > time.Hour {
					t.Fatal("the peer is not probed any more")
				}
				continue
			}
			if len(f.data) > 1 {
				t.Fatalf("a probe carries %d bytes", len(f.data))
			}
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			p.sendZeroWindow()
		}
		for i := 1; i < len(pauses); i++ {
			if pauses[i] < pauses[i-1]*3/2 && pauses[i] < 30*time.Second {
				t.Errorf("pauses between probes are %v, want them to double", pauses)
				break
			}
		}
		w.advance(time.Hour)
		if err := c.Err(); err != stack.ErrTimeout {
			t.Errorf("a peer that does not answer for an hour: %v, want %v", err, stack.ErrTimeout)
		}
		c.Close()
	})
}

func TestWindowOpensAgain(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		p.sendZeroWindow()
		mustWrite(t, c, "waiting")
		w.wantNone("behind a closed window nothing is sent")
		p.send(wire.ACK, "")
		p.want("until it opens", "A", "waiting")
		c.Abort()
	})
}

// Segments out of order are kept, but not more than the window allows.
func TestOutOfOrderIsBounded(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		for i := range uint32(2000) { // one byte in every 100 bytes of the stream; these bytes would occupy a chunk for each 4096 bytes
			p.sendAs(wire.TCP{Seq: p.next + 1 + 100*i, Ack: p.expect, Flags: wire.ACK}, "x")
		}
		if n := ring.Outstanding() * 4096; n > 128<<10 {
			t.Errorf("%d bytes are held for pieces", n)
		}
		w.forget()
		p.send(wire.ACK, "a")
		wantRead(t, c, "what fills the first gap goes up with what follows it", "ax", nil)
		c.Abort()
	})
}
