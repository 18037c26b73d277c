package tcp

import (
	"testing"
	"time"
)

// Tests of the receive window.

func TestWindowFollowsProgram(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 8192, MaxReceiveBuffer: 8192}, "")
	c.reads = false
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001 win 6192") // the right edge of the window does not move while the program reads nothing
	c.send("A 2001:3001 ack 1")
	c.send("A 3001:4001 ack 1")
	c.want("A 1 ack 4001 win 4192")
	c.in.consumed = 1000
	c.Consumed(c.now)
	c.wantIdle() // silly window avoidance: the window has grown by less than a segment
	c.in.consumed = 3000
	c.Consumed(c.now)
	c.wantIdle() // no update, since the peer still has room; the next ACK reports the window
	c.send("A 4001:5001 ack 1")
	c.send("A 5001:6001 ack 1")
	c.want("A 1 ack 6001 win 5192") // 8192 less 3000 unread bytes
	c.wantIdle()
}

func TestWindowUpdate(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 8192, MaxReceiveBuffer: 8192}, "")
	c.reads = false
	c.send("A 1:8193 ack 1")
	c.want("A 1 ack 8193 win 0")
	c.in.consumed = 1000
	c.Consumed(c.now)
	c.wantIdle()
	c.in.consumed = 2919
	c.Consumed(c.now)
	c.wantIdle()
	c.in.consumed = 2920 // two segments are free, which is worth an update for a peer that has stopped
	c.Consumed(c.now)
	c.want("A 1 ack 8193 win 2920")
	c.in.consumed = 5000
	c.Consumed(c.now)
	c.wantIdle()
	c.in.consumed = 7016 // half of the buffer was consumed since the last update
	c.Consumed(c.now)
	c.want("A 1 ack 8193 win 7016")
}

func TestProbeOfClosedWindowIsAnswered(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, "")
	c.reads = false
	c.send("A 1:4097 ack 1")
	c.want("A 1 ack 4097 win 0")
	c.send("A 4097:4098 ack 1") // a byte beyond the window (RFC 9293 section 3.8.6.1)
	c.want("A 1 ack 4097 win 0")
	c.send("A 4096 ack 1") // an old sequence number, as Linux uses for probes
	c.want("A 1 ack 4097 win 0")
	c.in.consumed = 4096
	c.Consumed(c.now)
	c.want("A 1 ack 4097 win 4096")
	c.send("A 4097:4098 ack 1")
	c.wantReadable(4097)
}

func TestWindowNeverShrinks(t *testing.T) {
	c := established(t, nil, ", ws 0")
	c.reads = false
	edge := c.rcv.edge
	check := func() {
		t.Helper()
		out := c.poll()
		if out == nil {
			return
		}
		told := Seq(out.Ack).Add(int(out.Window) << c.rcv.scale)
		if told.Less(edge) {
			t.Fatalf("the right edge moves from %d to %d", edge, told)
		}
		edge = told
	}
	// Windows that do not divide by the scale: 2^7.
	for i, at := 0, 1; i < 40; i++ {
		n := 333 + 7*i
		c.send("A " + itoa(at) + ":" + itoa(at+n) + " ack 1")
		at += n
		check()
		c.SetMaxReceiveBuffer(c.now, 3000)
		c.in.consumed = c.in.committed / 3
		c.Consumed(c.now)
		check()
	}
}

func TestWindowGrowsWithProgram(t *testing.T) {
	c := established(t, nil, ", ws 0, ts 7000 0")
	at, flight := 1, 14000
	// A peer in slow start: each round trip of 10 ms brings twice as much data, up to the window.
	for range 12 {
		c.advance(10 * ms)
		n := min(flight, c.rcv.edge.Sub(c.rcv.nxt))
		for n > 0 {
			size := min(n, 988)
			c.send("A " + itoa(at) + ":" + itoa(at+size) + " ack 1")
			c.drain()
			at, n = at+size, n-size
		}
		flight *= 2
	}
	if c.rcv.size != DefaultMaxReceiveBuffer {
		t.Errorf("the buffer grew to %d, want %d", c.rcv.size, DefaultMaxReceiveBuffer)
	}
}

func TestWindowGrowsThoughNothingIsTold(t *testing.T) {
	// A program that reads each segment on arrival rarely consumes Notice bytes between two segments. So the owner of the
	// connection does not call Consumed.
	c := established(t, nil, ", ws 0, ts 7000 0")
	c.reads = false
	for at := 1; c.rcv.size < 1<<20 && c.now < time.Hour+time.Second; {
		c.advance(20 * ms)
		for n := c.rcv.edge.Sub(c.rcv.nxt); n > 0; {
			size := min(n, 988)
			c.send("A " + itoa(at) + ":" + itoa(at+size) + " ack 1")
			notice := c.Notice()
			c.in.consumed = c.in.committed
			if size >= notice {
				c.Consumed(c.now)
			}
			c.drain()
			at, n = at+size, n-size
		}
	}
	if c.rcv.size < 1<<20 {
		t.Errorf("in 50 round trips the buffer grew to %d", c.rcv.size)
	}
}

func TestWindowDoesNotGrowForSlowProgram(t *testing.T) {
	c := established(t, nil, ", ws 0")
	c.reads = false
	for i := range 100 {
		c.advance(10 * ms)
		c.send("A " + itoa(1+500*i) + ":" + itoa(501+500*i) + " ack 1")
		c.in.consumed += 500
		c.Consumed(c.now)
		c.drain()
	}
	if c.rcv.size != DefaultReceiveBuffer {
		t.Errorf("the buffer grew to %d for 50 kB/s at 10 ms", c.rcv.size)
	}
}

func TestMaxReceiveBufferBeforeOpenSetsScale(t *testing.T) {
	c := dial(t, nil)
	c.SetMaxReceiveBuffer(c.now, 64<<20)
	c.want("S 0 win 65535 <mss 1460, ws 11, sackOK, ts 3600000 0>")
	c.SetMaxReceiveBuffer(c.now, 1<<30) // the scale has already been announced
	if got := c.rcv.max; got != maxUnscaled<<11 {
		t.Errorf("buffer may grow to %d, beyond what the scale can tell", got)
	}
}

func TestWindowOfRepeatedSynAckDoesNotShrink(t *testing.T) {
	c := accept(t, nil, "S 0 win 50000 <mss 1000>")
	c.want("SA 0 ack 1 win 65535")
	c.SetMaxReceiveBuffer(c.now, 10_000)
	c.send("S 0 win 50000 <mss 1000>")
	c.want("SA 0 ack 1 win 65535")
}

func TestUnscaledWindowIsBounded(t *testing.T) {
	c := established(t, nil, "")
	if c.rcv.max != maxUnscaled {
		t.Errorf("buffer may grow to %d without window scale", c.rcv.max)
	}
	c.SetMaxReceiveBuffer(c.now, 1<<20)
	if c.rcv.max != maxUnscaled {
		t.Errorf("buffer may grow to %d without window scale", c.rcv.max)
	}
}
