package stack_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/plpmtud"
	"loam/stack/tcp"
	"loam/wire"
)

// Path MTU discovery without ICMP messages (RFC 4821) between two stacks.

// narrowDevice is a device whose link drops IP packets above mtu without any report, like a router behind a firewall.
type narrowDevice struct {
	link.Device
	queues  []link.Queue
	mtu     atomic.Int64
	dropped atomic.Int64
	largest atomic.Int64 // largest packet that has passed since the last look
}

type narrowQueue struct {
	link.Queue
	d *narrowDevice
}

func newNarrowDevice(d link.Device, mtu int) *narrowDevice {
	n := &narrowDevice{Device: d}
	n.mtu.Store(int64(mtu))
	for _, q := range d.Queues() {
		n.queues = append(n.queues, &narrowQueue{q, n})
	}
	return n
}

func (n *narrowDevice) Queues() []link.Queue { return n.queues }

// Send drops the frames that are too large. A frame with segmentation offload counts with the size of its segments.
func (q *narrowQueue) Send(fs []*link.Frame) (int, error) {
	for i, f := range fs {
		size := f.Len() - wire.EthernetLen
		if f.GSO != link.GSONone {
			size = int(f.HeaderLen) + int(f.GSOSize) - wire.EthernetLen
		}
		if int64(size) > q.d.mtu.Load() {
			q.d.dropped.Add(1)
			f.Free()
			continue
		}
		q.d.largest.Store(max(q.d.largest.Load(), int64(size)))
		if n, err := q.Queue.Send(fs[i : i+1]); n == 0 || err != nil {
			return i, err
		}
	}
	return len(fs), nil
}

// holedPair returns two hosts with a link that drops packets above mtu in both directions.
func holedPair(t *testing.T, c stack.Config, mtu int, offloads link.Offloads) (*pair, *narrowDevice, *narrowDevice) {
	a, b := pipe.New(pipe.Config{Offloads: offloads})
	na, nb := newNarrowDevice(a, mtu), newNarrowDevice(b, mtu)
	pr := &pair{newHost(t, c, na, addrA), newHost(t, c, nb, addrB)}
	t.Cleanup(func() {
		pr.a.Close()
		pr.b.Close()
	})
	return pr, na, nb
}

// upload sends n bytes from a to b over a new connection, and returns the fake time that this took.
func (p *pair) upload(t *testing.T, to string, n int) time.Duration {
	t.Helper()
	l, err := p.b.Listen("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan int64)
	go func() {
		var got int64
		if c, err := l.Accept(); err == nil {
			got, _ = io.Copy(io.Discard, c)
			c.Close()
		}
		done <- got
	}()
	start := time.Now()
	var c net.Conn
	if c, err = p.a.Dial("tcp", to); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if got := <-done; got != int64(n) {
		t.Fatalf("%d of %d bytes have arrived", got, n)
	}
	return time.Since(start)
}

func TestBlackHoleWithoutICMP(t *testing.T) {
	for _, test := range []struct {
		name     string
		to       string
		mtu      int
		offloads link.Offloads
	}{
		{"IPv4", "10.0.0.2:80", 1400, 0},
		{"IPv4 with offload", "10.0.0.2:80", 1400, pipe.AllOffloads},
		{"IPv6", "[2001:db8::2]:80", 1400, 0},
		{"IPv6 with offload", "[2001:db8::2]:80", 1280, pipe.AllOffloads},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pr, na, _ := holedPair(t, stack.Config{}, test.mtu, test.offloads)
				pr.upload(t, test.to, 1) // resolves the neighbours: a lost SYN would make the first timeout three seconds (RFC 6298 section 5.7)
				if d := pr.upload(t, test.to, 4<<20); d > 2*time.Second {
					t.Errorf("the transfer took %v", d)
				}
				if n := na.largest.Load(); int(n) != test.mtu {
					t.Errorf("the largest packet has %d bytes", n)
				}
				// The second connection begins with the size that the first one has found.
				before := na.dropped.Load()
				if d := pr.upload(t, test.to, 4<<20); d > 100*time.Millisecond {
					t.Errorf("the second transfer took %v", d)
				}
				if n := na.dropped.Load() - before; n != 0 {
					t.Errorf("%d packets of the second connection were dropped", n)
				}
				// The path grows. Later connections use it, the first time with a probe.
				na.mtu.Store(1500)
				time.Sleep(11 * time.Minute)
				na.largest.Store(0)
				pr.upload(t, test.to, 1<<20)
				if n := na.largest.Load(); n != 1500 {
					t.Errorf("the largest packet has %d bytes after the path has grown", n)
				}
			})
		})
	}
}

// With Mode Off, as with net.ipv4.tcp_mtu_probing 0 of Linux, nothing helps.
func TestBlackHoleWithoutSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := stack.Config{TCP: tcp.Config{Probing: plpmtud.Config{Mode: plpmtud.Off}, Retries: 4}}
		pr, na, _ := holedPair(t, c, 1400, 0)
		l, err := pr.b.Listen("tcp", "10.0.0.2:80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := pr.a.Dial("tcp", "10.0.0.2:80")
		if err != nil {
			t.Fatal(err)
		}
		conn.Write(make([]byte, 1<<20))
		time.Sleep(time.Minute)
		if n := na.largest.Load(); n > 100 {
			t.Errorf("a packet of %d bytes was sent", n)
		}
		conn.Close()
	})
}
