package tcp

import (
	"testing"
	"time"
)

// The receive window.

func TestWindowFollowsProgram(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 8192, MaxReceiveBuffer: 8192}, "")
	c.reads = false
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001 win 6192") // the right edge does not move while nothing is read
	c.send("A 2001:3001 ack 1")
	c.send("A 3001:4001 ack 1")
	c.want("A 1 ack 4001 win 4192")
	c.in.consumed = 1000
	c.Consumed(c.now)
	c.wantIdle() // silly window avoidance: less than a segment
	c.in.consumed = 3000
	c.Consumed(c.now)
	c.wantIdle() // the peer still has room: the next ACK will tell
	c.send("A 4001:5001 ack 1")
	c.send("A 5001:6001 ack 1")
	c.want("A 1 ack 6001 win 5192") // 8192 less the 3000 that are not read
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
	c.in.consumed = 2920 // two segments: worth telling a peer that is stopped
	c.Consumed(c.now)
	c.want("A 1 ack 8193 win 2920")
	c.in.consumed = 5000
	c.Consumed(c.now)
	c.wantIdle()
	c.in.consumed = 7016 // half of the buffer since it was told last
	c.Consumed(c.now)
	c.want("A 1 ack 8193 win 7016")
}

func TestProbeOfClosedWindowIsAnswered(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, "")
	c.reads = false
	c.send("A 1:4097 ack 1")
	c.want("A 1 ack 4097 win 0")
	c.send("A 4097:4098 ack 1") // a byte beyond, RFC 9293 section 3.8.6.1
	c.want("A 1 ack 4097 win 0")
	c.send("A 4096 ack 1") // an old number, as Linux does
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
	// A peer in slow start: each round trip of 10 ms brings twice as much, as
	// far as the window lets it.
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
	c.SetMaxReceiveBuffer(c.now, 1<<30) // the scale has been told
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

// The persist timer (RFC 9293 section 3.8.6.1).

func TestClosedWindowIsProbed(t *testing.T) {
	c := established(t, nil, "")
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001 win 0")
	c.write(500)
	c.wantIdle()
	rto := c.Info(c.now).RTO
	// "first after the window has been zero for the retransmission timeout,
	// and exponentially increasing" (SHLD-29, SHLD-30).
	for i := range 4 {
		c.wantTimer(rto << i)
		c.want("A 1000 ack 1")
		c.wantIdle()
		c.send("A 1 ack 1001 win 0")
		c.wantIdle()
	}
	c.send("A 1 ack 1001 win 800")
	c.want("PA 1001:1501 ack 1")
}

func TestClosedWindowIsProbedForEverWhileAnswered(t *testing.T) {
	c := established(t, &Config{Retries: 3, MaxRTO: time.Second}, "")
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001 win 0")
	c.write(500)
	c.wantIdle()
	for range 200 {
		c.wantTimer(c.timers[timerPersist] - c.now)
		c.want("A 1000 ack 1")
		c.wantIdle()
		c.send("A 1 ack 1001 win 0")
		c.wantIdle()
	}
	c.wantState(Established)
}

func TestUnansweredProbesEndTheConnection(t *testing.T) {
	c := established(t, &Config{Retries: 3}, "")
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001 win 0")
	c.write(500)
	c.wantIdle()
	for range 3 {
		c.wantTimer(c.timers[timerPersist] - c.now)
		c.want("A 1000 ack 1")
		c.wantIdle()
	}
	c.advance(time.Minute)
	c.wantEnd(ErrTimeout)
}

func TestProbesAreBoundedWithoutProgram(t *testing.T) {
	c := established(t, &Config{Retries: 3}, "")
	c.send("A 1 ack 1 win 0")
	c.write(500)
	c.Close(c.now)
	c.wantIdle()
	for range 3 {
		c.wantTimer(c.timers[timerPersist] - c.now)
		c.want("A 0 ack 1")
		c.send("A 1 ack 1 win 0")
		c.wantIdle()
	}
	c.advance(time.Minute)
	c.want("RA 1 ack 1")
	c.wantEnd(ErrTimeout)
}

func TestUserTimeoutBoundsClosedWindow(t *testing.T) {
	c := established(t, nil, "")
	c.SetUserTimeout(c.now, 3*time.Second)
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001 win 0")
	c.write(500)
	c.wantIdle()
	for c.State() != Closed {
		c.advance(100 * ms)
		if c.drain() > 0 {
			c.send("A 1 ack 1001 win 0")
			c.drain()
		}
	}
	c.wantEnd(ErrTimeout)
	if d := c.now - time.Hour; d < 3*time.Second || d > 8*time.Second {
		t.Errorf("ended after %v", d)
	}
}

func TestFinWaitsForWindow(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1 ack 1 win 100")
	c.write(100)
	c.CloseWrite(c.now)
	c.want("PA 1:101 ack 1") // fills the window: no number is left for the FIN
	c.send("A 1 ack 101 win 0")
	c.wantIdle()
	c.wantTimer(c.timers[timerPersist] - c.now)
	c.want("A 100 ack 1")
	c.send("A 1 ack 101 win 100")
	c.want("FA 101 ack 1")
}

func TestPeerThatShrinksItsWindow(t *testing.T) {
	// RFC 9293 section 3.8.6: it is discouraged, and must be coped with.
	c := established(t, nil, ", sackOK")
	c.write(5000)
	for range 5 {
		c.poll()
	}
	c.send("A 1 ack 1001 win 0") // 4000 bytes in flight behind a closed window
	c.wantIdle()
	for range 30 { // the first is sent again, for ever while the peer answers
		for !c.Pending() {
			c.now = max(c.now, c.Deadline())
			c.Tick(c.now)
		}
		c.drain()
		c.send("A 1 ack 1001 win 0")
		c.wantIdle()
	}
	c.wantState(Established)
	c.send("A 1 ack 1001 win 5000")
	c.drain()
	c.send("A 1 ack 5001")
	c.wantIdle()
}

// Keep-alive (RFC 9293 section 3.8.4).

func TestKeepAliveIsOffByDefault(t *testing.T) {
	c := established(t, nil, "")
	c.wantSilence(30 * 24 * time.Hour)
}

func TestKeepAlive(t *testing.T) {
	c := established(t, nil, "")
	c.SetKeepAlive(c.now, 10*time.Second, time.Second, 3)
	c.wantTimer(10 * time.Second)
	c.want("A 0 ack 1")
	c.send("A 1 ack 1") // alive
	c.wantIdle()
	c.advance(4 * time.Second)
	c.send("PA 1:11 ack 1")
	c.advance(40 * ms)
	c.want("A 1 ack 11")
	c.wantTimer(10*time.Second - 40*ms) // idle since it was last heard of
	c.want("A 0 ack 11")
	c.wantTimer(time.Second)
	c.want("A 0 ack 11")
	c.wantTimer(time.Second)
	c.want("A 0 ack 11")
	c.wantTimer(time.Second)
	c.want("RA 1 ack 11")
	c.wantEnd(ErrTimeout)
}

func TestKeepAliveWaitsForDataInFlight(t *testing.T) {
	c := established(t, nil, "")
	c.SetKeepAlive(c.now, 100*ms, 100*ms, 1)
	c.write(10)
	c.want("PA 1:11 ack 1")
	c.wantTimer(210 * ms) // the retransmission is enough
	c.want("PA 1:11 ack 1")
	c.send("A 1 ack 11")
	c.wantTimer(100 * ms)
	c.want("A 10 ack 1")
	c.SetKeepAlive(c.now, 0, 0, 0)
	c.wantSilence(time.Hour)
}

func TestKeepAliveFromConfig(t *testing.T) {
	c := established(t, &Config{KeepAlive: time.Minute, KeepAliveInterval: time.Second, KeepAliveCount: 1}, "")
	c.wantTimer(time.Minute)
	c.want("A 0 ack 1")
	c.wantTimer(time.Second)
	c.want("RA 1 ack 1")
	c.wantEnd(ErrTimeout)
}
