//go:build !race

// The tests of this file are not built for the race detector, under which they take a minute.

package stack_test

import (
	"io"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/fault"
	"loam/link/pipe"
	"loam/link/shape"
	"loam/stack"
	"loam/stack/ring"
)

// longPath is a link with a rate and a delay, and a queue of one bandwidth-delay product.
type longPath struct {
	rate float64 // bits per second
	rtt  time.Duration
	mtu  int
	ipv6 bool
	size int // bytes of the stack's MaxSendBuffer; 0: the default

	offloads link.Offloads
}

// settled returns the program's transfer rate in the eighth second, in bits per second.
func (l longPath) settled(t *testing.T) (rate float64) {
	synctest.Test(t, func(t *testing.T) {
		link.Track(false)
		ring.Track(false)
		near, far := pipe.New(pipe.Config{Depth: 1 << 15, MTU: l.mtu, Offloads: l.offloads})
		way := fault.Direction{Delay: l.rtt / 2}
		delayed := fault.New(near, fault.Config{Send: way, Recv: way})
		slow := shape.New(delayed, shape.Config{Send: shape.Limit{Rate: int64(l.rate), QueueTime: l.rtt}})
		config := stack.Config{Shards: 1, MaxSendBuffer: l.size}
		config.TCP.MaxReceiveBuffer = 32 << 20
		a, b := newHost(t, config, slow, addrA), newHost(t, config, far, addrB)
		defer a.Close()
		defer b.Close()
		time.Sleep(5 * time.Second) // waits until duplicate detection and group reports are over
		to := netip.AddrPortFrom(addrB, 80)
		if l.ipv6 {
			to = netip.AddrPortFrom(addrB6, 80)
		}
		listener, err := b.ListenTCP(to, 1, stack.TCPOptions{})
		must(t, err)
		c, err := a.DialTCP(netip.AddrPort{}, to, stack.TCPOptions{})
		must(t, err)
		d, err := listener.Accept()
		must(t, err)
		go func() {
			data := make([]byte, 64<<10)
			for {
				if _, err := c.Write(data); err != nil {
					return
				}
			}
		}()
		var got int64
		until := func(end time.Time) {
			d.SetReadDeadline(end)
			n, _ := io.Copy(io.Discard, d)
			got += n
		}
		began := time.Now()
		until(began.Add(7 * time.Second))
		before := got
		until(began.Add(8 * time.Second))
		rate = float64(got-before) * 8
		c.Abort()
	})
	return rate
}

// The send buffer does not limit a path of 1 Gbit/s and 40 ms, which has 5 MB in flight,
// unless Config.MaxSendBuffer does.
func TestSendBufferFollowsPath(t *testing.T) {
	path := longPath{rate: 1e9, rtt: 40 * time.Millisecond, offloads: pipe.AllOffloads}
	if rate := path.settled(t); rate < 0.9e9 {
		t.Errorf("%.0f Mbit/s, want at least 900", rate/1e6)
	}
	path.size = 1 << 20
	if rate := path.settled(t); rate < 100e6 || rate > 220e6 {
		t.Errorf("with a send buffer of 1 MiB %.0f Mbit/s, want 100 to 220", rate/1e6)
	}
}

// Large frames and IPv6 fill a long path like IPv4 at 1500 bytes, less the header
// overhead.
func TestLongPaths(t *testing.T) {
	for name, path := range map[string]longPath{
		"IPv4":          {},
		"IPv6":          {ipv6: true},
		"MTU 9000":      {mtu: 9000},
		"IPv6 MTU 9000": {mtu: 9000, ipv6: true},
		"IPv6 offloads": {ipv6: true, offloads: pipe.AllOffloads},
	} {
		t.Run(name, func(t *testing.T) {
			path.rate, path.rtt = 100e6, 100*time.Millisecond
			if rate := path.settled(t); rate < 0.9*path.rate {
				t.Errorf("%.1f Mbit/s, want at least %.1f", rate/1e6, 0.9*path.rate/1e6)
			}
		})
	}
}
