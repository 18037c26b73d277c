package stack

import (
	"io"
	"testing"
	"testing/synctest"

	"loam/link"
)

// echoed sends size bytes from a connection of a stack to another one of the same stack and back.
func echoed(t *testing.T, s *Stack, size int) {
	t.Helper()
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := io.Copy(c, c); err != nil {
			t.Error(err)
		}
	}()
	c, err := s.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go c.Write(make([]byte, size))
	if n, err := io.ReadFull(c, make([]byte, size)); err != nil {
		t.Errorf("received %d bytes, %v", n, err)
	}
}

// loopbackStats returns the counters of the loopback device.
func loopbackStats(s *Stack) link.Stats {
	return s.tables.Load().byName("lo").device.Stats()
}

// Segments between two connections of one stack reach their shard without the loopback device's queue. They are counted as
// if they had passed it, and no frame is lost.
func TestLocalSegments(t *testing.T) {
	link.Track(true)
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Shards: 2})
		for _, size := range []int{1, 100, 100_000, 8 << 20} {
			echoed(t, s, size)
		}
		synctest.Wait() // the last segments of the closed connections are processed
		for _, r := range s.tables.Load().byName("lo").receivers {
			if n := r.tally[IPReceived].Load(); n != 0 {
				t.Errorf("the receiver has processed %d packets", n)
			}
		}
		c := s.Counters()
		if c[IPReceived] == 0 || c[IPReceived] != c[IPSent] || c[IPDelivered] != c[IPSent] || c[TCPReceived] != c[TCPSent] {
			t.Errorf("IP: %d sent, %d received, %d delivered; TCP: %d sent, %d received",
				c[IPSent], c[IPReceived], c[IPDelivered], c[TCPSent], c[TCPReceived])
		}
		if n := loopbackStats(s); n.RxFrames != c[IPSent] || n.TxFrames != n.RxFrames || n.RxBytes != n.TxBytes {
			t.Errorf("%+v, but %d packets were sent", n, c[IPSent])
		}
		s.Close()
	})
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are lost", n)
	}
}
