package usernet

import (
	"io"
	"sync"
	"testing"
	"time"

	"loam/stack"
)

// If there are few connections, each has the largest window. If there are more, each has an equal share of the memory
// bound.
func TestShare(t *testing.T) {
	m := newMemory(256 << 20)
	for _, c := range []struct{ relays, want int }{{1, largestWindow}, {50, largestWindow}, {100, 1 << 20}, {800, 128 << 10}, {2048, 32 << 10}, {1 << 20, smallestWindow}} {
		if got := m.share(c.relays); got != c.want {
			t.Errorf("%d relays: %d bytes each, want %d", c.relays, got, c.want)
		}
		if c.want > smallestWindow && c.relays*costOf(c.want) > m.bound {
			t.Errorf("%d relays hold more than the bound", c.relays)
		}
	}
}

// Connections whose guest does not read hold no more than the bound together, apart from
// the smallest window of each. None is stuck, and when the guest reads, all bytes arrive.
func TestUnreadConnectionsAreBounded(t *testing.T) {
	const relays, bound, each = 48, 4 << 20, 1 << 20
	c := loopback()
	c.Limits.Memory = bound
	n := newNetwork(t, c)
	var guests []*stack.TCPConn
	var writing sync.WaitGroup
	for range relays {
		guest, host := n.pair()
		guest.SetOptions(func(o *stack.TCPOptions) { o.ReceiveBuffer = 4096 })
		guests = append(guests, guest)
		writing.Go(func() { noise(t, host, 1, each); host.Close() })
	}
	held := func() (total, fewest int) {
		fewest = each
		n.memory.mu.Lock()
		defer n.memory.mu.Unlock()
		for r := range n.memory.relays {
			h := r.held()
			total, fewest = total+h, min(fewest, h)
		}
		return total, fewest
	}
	// The buffers of the connections are full when the number of bytes in them no longer grows.
	var last, now int
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); time.Since(start) < patience; last = now {
		<-tick.C
		if now, _ = held(); now == last && now > 0 {
			break
		}
	}
	total, fewest := held()
	if most := bound + relays*costOf(smallestWindow); total > most || fewest == 0 {
		t.Errorf("%d bytes are held, of which one connection has %d; no more than %d should be", total, fewest, most)
	}
	for _, guest := range guests {
		writing.Go(func() { wantNoise(t, guest, 1, each); guest.Close() })
	}
	writing.Wait()
}

// A connection gets the largest window again when the others have ended.
func TestWindowGrowsAgain(t *testing.T) {
	c := loopback()
	c.Limits.Memory = 4 << 20
	n := newNetwork(t, c)
	guest, host := n.pair()
	defer host.Close()
	defer guest.Close()
	var others []io.Closer
	for range 30 {
		g, h := n.pair()
		others = append(others, g, h)
	}
	window := func() (smallest int) {
		n.memory.mu.Lock()
		defer n.memory.mu.Unlock()
		smallest = largestWindow
		for r := range n.memory.relays {
			smallest = min(smallest, int(r.window.bytes.Load()))
		}
		return smallest
	}
	eventually(t, "the windows stay as large", func() bool { return window() < 1<<20 })
	for _, c := range others {
		c.Close()
	}
	eventually(t, "the window stays small", func() bool { return window() >= 1<<20 })
	send(t, host, "still there")
	want(t, guest, "still there")
}
