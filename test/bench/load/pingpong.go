package load

import (
	"io"
	"net"
	"net/netip"
	"time"

	"loam/test/bench/subject"
)

// pingPong sends one byte back and forth over one connection, repeatedly.
//
// Samples: "p50" and "p99" of the round-trip time in microseconds.
type pingPong struct{}

func (pingPong) Serve(h subject.Host) error {
	return serve(h, func(c net.Conn) {
		defer c.Close()
		var b [1]byte
		for {
			if _, err := io.ReadFull(c, b[:]); err != nil {
				return
			}
			if _, err := c.Write(b[:]); err != nil {
				return
			}
		}
	})
}

func (pingPong) Run(h subject.Host, peer netip.Addr, span time.Duration) (Samples, error) {
	c, err := dial(h, peer)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	trips := make([]time.Duration, 0, 1<<20)
	start := time.Now()
	last := start
	for last.Sub(start) < span && len(trips) < cap(trips) {
		if err := oneByte(c); err != nil {
			return nil, err
		}
		now := time.Now()
		trips = append(trips, now.Sub(last))
		last = now
	}
	return Samples{
		"p50": microseconds(quantile(trips, 0.50)),
		"p99": microseconds(quantile(trips, 0.99)),
	}, nil
}
