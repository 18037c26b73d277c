package tcp

import (
	"testing"
	"time"
)

// Sending: segments, Nagle, silly windows, frames of several segments.

func TestDataIsCutIntoSegments(t *testing.T) {
	c := established(t, nil, "")
	c.write(2500)
	c.want("A 1:1001 ack 1")
	c.want("A 1001:2001 ack 1")
	c.want("PA 2001:2501 ack 1") // PSH on the last segment of a write (RFC 9293 MUST-60)
	c.wantIdle()
}

func TestSegmentsHaveRoomForOptions(t *testing.T) {
	c := established(t, nil, ", ts 7000 0") // RFC 6691: the MSS counts options
	c.write(2000)
	c.want("A 1:989 ack 1")
	c.want("A 989:1977 ack 1")
}

func TestNagle(t *testing.T) {
	c := established(t, nil, "")
	c.write(100)
	c.want("PA 1:101 ack 1") // sent at once, since nothing is in flight
	c.write(100)
	c.wantIdle()
	c.write(100)
	c.wantIdle()
	c.send("A 1 ack 101")
	c.want("PA 101:301 ack 1") // all data written since the first segment, in one segment
	c.write(2000)              // full segments need not wait
	c.want("A 301:1301 ack 1")
	c.want("PA 1301:2301 ack 1")
	c.wantIdle()
}

func TestNagleLetsEndOfLargeWriteGo(t *testing.T) {
	// Minshall's variant: only full segments are in flight, so the small tail need not wait.
	c := established(t, nil, "")
	c.write(1500)
	c.want("A 1:1001 ack 1")
	c.want("PA 1001:1501 ack 1")
	c.write(1100)
	c.want("A 1501:2501 ack 1")
	c.wantIdle() // a small segment in flight holds the tail back
}

func TestNoDelay(t *testing.T) {
	c := established(t, &Config{NoDelay: true}, "")
	c.write(100)
	c.want("PA 1:101 ack 1")
	c.write(100)
	c.want("PA 101:201 ack 1")
	c.SetNoDelay(c.now, false)
	c.write(100)
	c.wantIdle()
	c.SetNoDelay(c.now, true)
	c.want("PA 201:301 ack 1")
}

func TestCork(t *testing.T) {
	c := established(t, nil, "")
	c.SetCork(c.now, true)
	c.write(100)
	c.wantIdle()
	c.write(1000)
	c.want("A 1:1001 ack 1")
	c.wantIdle()
	c.SetCork(c.now, false)
	c.want("PA 1001:1101 ack 1")
	c.send("A 1 ack 1101")
	c.SetCork(c.now, true)
	c.write(100)
	c.wantIdle()
	c.wantTimer(200 * ms) // corked data is held back for at most this time
	c.want("PA 1101:1201 ack 1")
	c.write(100)
	c.CloseWrite(c.now)
	c.want("FPA 1201:1301 ack 1") // a segment with the end of the stream is not held back
}

func TestMoreIsAwaited(t *testing.T) {
	c := established(t, &Config{NoDelay: true}, "")
	c.SetMore(c.now, true)
	c.write(100)
	c.wantIdle()
	c.write(1000)
	c.want("A 1:1001 ack 1")
	c.wantIdle()
	c.SetMore(c.now, false)
	c.want("PA 1001:1101 ack 1")
	c.send("A 1 ack 1101")
	c.SetMore(c.now, true)
	c.write(100)
	c.wantIdle()
	c.wantTimer(200 * ms) // data that awaits more (MSG_MORE) is held back for at most this time
	c.want("PA 1101:1201 ack 1")
}

func TestNoDelaySendsWhatIsHeld(t *testing.T) {
	for name, hold := range map[string]func(c *Conn, now Time){
		"cork": func(c *Conn, now Time) { c.SetCork(now, true) },
		"more": func(c *Conn, now Time) { c.SetMore(now, true) },
	} {
		t.Run(name, func(t *testing.T) {
			c := established(t, nil, "")
			hold(c.Conn, c.now)
			c.write(100)
			c.wantIdle()
			c.SetNoDelay(c.now, true)
			c.want("PA 1:101 ack 1")
			c.write(100)
			c.wantIdle() // later data is held back as before
		})
	}
}

func TestPeerWindowIsRespected(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1 ack 1 win 2500")
	c.write(5000)
	c.want("A 1:1001 ack 1")
	c.want("A 1001:2001 ack 1")
	c.wantIdle() // 500 bytes would fit, but more room may come
	c.send("A 1 ack 1001 win 2500")
	c.want("A 2001:3001 ack 1")
	c.wantIdle()
}

func TestSillyWindowIsAvoided(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1 ack 1 win 300")
	c.write(5000)
	c.wantIdle()            // the window has room for less than a segment and less than half of the largest window
	c.wantTimer(210 * ms)   // the override timeout, between 0.1 and 1 s
	c.want("A 1:301 ack 1") // after the timeout, the part that fits is sent
	c.send("A 1 ack 301 win 300")
	c.wantIdle()
}

func TestSmallWindowOfSmallPeer(t *testing.T) {
	// A window of 400 bytes is not silly if it is the largest that the peer ever offered.
	c := accept(t, nil, "S 0 win 400 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1 win 400")
	c.write(2000)
	c.want("A 1:401 ack 1")
	c.send("A 1 ack 401 win 200")
	c.want("A 401:601 ack 1") // half of the largest window is enough
	c.wantIdle()
}

func TestFramesOfSeveralSegments(t *testing.T) {
	c := established(t, nil, "")
	c.burst = 4500
	c.write(9500)
	out := c.want("A 1:4001 ack 1") // the frame is rounded down to whole segments
	if out.MSS != 1000 {
		t.Errorf("MSS of the frame is %d", out.MSS)
	}
	c.want("A 4001:8001 ack 1")
	c.want("PA 8001:9501 ack 1") // the end of the last frame may be short
	c.wantIdle()
	if i := c.Info(c.now); i.DataSegmentsOut != 10 || i.Unacked != 10 {
		t.Errorf("%d segments out, %d in flight, want 10", i.DataSegmentsOut, i.Unacked)
	}
}

func TestNagleHoldsTailOfFrame(t *testing.T) {
	c := established(t, nil, "")
	c.burst = 64000
	c.write(100)
	c.want("PA 1:101 ack 1")
	c.write(2500)
	c.want("A 101:2101 ack 1")
	c.wantIdle()
}

func TestLargeFramesAreWorthWaitingFor(t *testing.T) {
	c := established(t, nil, "")
	c.burst = 64000
	c.write(1 << 20)
	c.want("A 1:5001 ack 1")
	c.want("A 5001:10001 ack 1")
	c.wantIdle()
	c.send("A 1 ack 1001")
	c.wantIdle() // two segments could be sent, but the connection waits until a quarter of the window is free
	c.send("A 1 ack 2001")
	c.want("A 10001:14001 ack 1")

	c = established(t, nil, "") // an owner that takes single segments does not wait
	c.write(1 << 20)
	c.drain()
	c.send("A 1 ack 1001")
	c.want("A 10001:11001 ack 1")
}

// A frame that fills the window may be lost as a whole, and then only a timeout detects it. A frame is
// therefore limited to half of the window, and the next one reveals the loss at once.
func TestLossOfLargeFrameIsFoundByTheNext(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.burst = 64000
	c.write(1 << 20)
	c.want("A 1:5001 ack 1")
	c.want("A 5001:10001 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 1 <sack 5001-10001>")
	c.want("A 1:2001 ack 1")
	c.wantCount(FastRecoveries, 1)

	c = established(t, &Config{InitialWindow: 40}, "") // a window of 40 segments
	c.burst = 64000
	c.write(1 << 20)
	c.want("A 1:20001 ack 1")
	c.want("A 20001:40001 ack 1")
}

func TestSegmentsOfWindowAcrossFrames(t *testing.T) {
	c := established(t, nil, "")
	c.burst = 64000
	c.send("A 1 ack 1 win 3700")
	c.write(10000)
	c.want("A 1:3001 ack 1") // whole segments within the window
	c.wantIdle()
}

func TestReleasedBytes(t *testing.T) {
	c := established(t, nil, "")
	c.write(3000)
	c.drain()
	for _, n := range []uint64{500, 1000, 2999, 3000} {
		c.send("A 1 ack " + itoa(int64(n)+1))
		if c.out.released != n {
			t.Fatalf("%d bytes released, want %d", c.out.released, n)
		}
	}
	c.CloseWrite(c.now)
	c.want("FA 3001 ack 1")
	c.send("A 1 ack 3002") // the FIN is not a byte of the stream
	if c.out.released != 3000 {
		t.Fatalf("%d bytes released, want 3000", c.out.released)
	}
}

func TestIdleRestart(t *testing.T) {
	c := established(t, nil, "")
	c.window.Size = 40 * c.window.MSS
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001")
	rto := c.Info(c.now).RTO
	c.advance(rto)
	c.write(1000)
	c.want("PA 1001:2001 ack 1")
	c.wantCwnd(40) // one RTO without sending does not count as idle
	c.send("A 1 ack 2001")
	c.advance(c.Info(c.now).RTO + 1)
	c.write(1000)
	c.poll()
	c.wantCwnd(20) // RFC 2861: the window is halved for each RTO of idle time
	c.send("A 1 ack 3001")
	c.advance(time.Hour)
	c.write(1000)
	c.poll()
	c.wantCwnd(10) // never below the initial window
}

func TestWindowGrowsOnlyWhenUsed(t *testing.T) {
	c := established(t, nil, "")
	for i := range 50 { // one segment in each round trip uses little of a window of ten
		c.write(1000)
		c.poll()
		c.advance(10 * ms)
		c.send("A 1 ack " + itoa(1001+1000*i))
	}
	c.wantCwnd(10)
	if i := c.Info(c.now); !i.AppLimited {
		t.Error("not limited by the application")
	}
}

func TestSlowStart(t *testing.T) {
	c := established(t, nil, "")
	c.write(1 << 20)
	c.drain()
	c.advance(10 * ms)
	for i := 1; i <= 10; i++ {
		c.send("A 1 ack " + itoa(1000*i+1))
	}
	c.wantCwnd(20) // the window has doubled within a round trip
	if n := c.drain(); n != 20 {
		t.Errorf("%d segments sent, want 20", n)
	}
	if i := c.Info(c.now); i.AppLimited || i.SndCwnd != 20 || i.SndSsthresh != 1<<31-1 {
		t.Errorf("%+v", i)
	}
}
