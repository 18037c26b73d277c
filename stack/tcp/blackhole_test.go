package tcp

import (
	"testing"
	"time"
)

// Black holes (RFC 4821 section 7.7, RFC 2923 section 2.1).

// wide returns a connection on a path of 1500 bytes that has two full segments in flight.
func wide(t *testing.T) *testConn {
	c := accept(t, nil, "S 0 win 50000 <mss 1460>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.write(2920)
	c.want("A 1:1461 ack 1")
	c.want("PA 1461:2921 ack 1")
	return c
}

func TestBlackHoleIsPassed(t *testing.T) {
	c := wide(t)
	c.advance(time.Second)
	c.want("A 1:1461 ack 1")
	c.advance(time.Second)
	c.want("A 1:1461 ack 1")
	c.advance(2 * time.Second)
	c.want("A 1:1025 ack 1") // after the third timeout the segment is smaller
	c.send("A 1 ack 1025")
	c.want("A 1025:2049 ack 1")
	c.send("A 1 ack 2049")
	c.want("PA 2049:2921 ack 1")
	c.send("A 1 ack 2921")
	if i := c.Info(c.now); i.SndMSS != 1024 || i.PathMSS != 1024 {
		t.Errorf("segments of %d bytes, a path for %d", i.SndMSS, i.PathMSS)
	}
	c.advance(holeLifetime * time.Minute)
	c.write(1460)
	c.want("PA 2921:4381 ack 1") // full size again, because the path may have changed
}

func TestNarrowBlackHoleIsPassed(t *testing.T) {
	c := wide(t)
	c.advance(time.Second)
	c.want("A 1:1461 ack 1")
	c.advance(time.Second)
	c.want("A 1:1461 ack 1")
	c.advance(2 * time.Second)
	c.want("A 1:1025 ack 1")
	c.advance(4 * time.Second)
	c.want("A 1:537 ack 1")
	c.advance(8 * time.Second)
	c.want("A 1:537 ack 1") // a size that every host accepts
}

// If a router or this host reports that there is no route, the path is not taken for a black hole.
func TestPathWithoutEndIsNoBlackHole(t *testing.T) {
	c := wide(t)
	for _, d := range []time.Duration{1, 1, 2, 4} {
		c.advance(d * time.Second)
		c.want("A 1:1461 ack 1")
		c.ICMP(c.now, ICMPUnreachable, testISS+1, 0)
	}
}

func TestLossOfSmallSegmentsIsNoBlackHole(t *testing.T) {
	c := accept(t, nil, "S 0 win 50000 <mss 1460>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.write(500)
	c.want("PA 1:501 ack 1")
	for _, d := range []time.Duration{1, 1, 2, 4} {
		c.advance(d * time.Second)
		c.want("PA 1:501 ack 1")
	}
	c.send("A 1 ack 501")
	if i := c.Info(c.now); i.SndMSS != 1460 {
		t.Errorf("segments of %d bytes", i.SndMSS)
	}
}
