//go:build !race

// The tests of this file are not built for the race detector: with it, a sync.Pool drops objects at random, so counts of
// allocations vary.

package stack_test

import (
	"io"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"testing"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
	"loam/wire"
)

// In steady state the stack allocates nothing. The counts cover the whole process and
// therefore both ends: program, shard, receiver, device.

// wantNoAllocs runs f until pools and lists have reached their size, and then counts
// twice: like AllocsPerRun, on one CPU and rounded down, and on all CPUs without
// rounding. The second count allows one allocation in a hundred runs, for events not
// caused by packets (a neighbour is confirmed every five seconds).
func wantNoAllocs(t *testing.T, what string, runs int, f func()) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would empty the pools
	for range runs {
		f()
	}
	if n := testing.AllocsPerRun(runs, f); n != 0 {
		t.Errorf("%s: %v allocations", what, n)
	}
	least := runs
	for range 20 { // runs f several times, because the number of objects in use at once, and thus in the pools, varies
		if least = min(least, mallocs(runs, f)); least <= runs/100 {
			return
		}
	}
	t.Errorf("%s: at least %d allocations in %d runs", what, least, runs)
}

// mallocs returns how many objects the process allocates while f runs the given number of
// times.
func mallocs(runs int, f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return int(after.Mallocs - before.Mallocs)
}

func TestAllocsPingPong(t *testing.T) {
	for name, loopback := range map[string]bool{"pipe": false, "loopback": true} {
		t.Run(name, func(t *testing.T) {
			client, server := connected(t, stack.Config{Shards: 2}, pipe.Config{}, loopback)
			go io.CopyBuffer(struct{ io.Writer }{server}, struct{ io.Reader }{server}, make([]byte, 100))
			one := make([]byte, 1)
			wantNoAllocs(t, "a byte there and back over TCP", 1000, func() {
				if _, err := client.Write(one); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Read(one); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestAllocsBulk(t *testing.T) {
	for name, p := range map[string]pipe.Config{
		"with an MTU of 1500": {},
		"with offloads":       {Offloads: pipe.AllOffloads},
		"on a slow link":      {Depth: 8},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := connected(t, stack.Config{Shards: 2}, p, false)
			chunk, buf := make([]byte, 64<<10), make([]byte, 64<<10)
			got := make(chan struct{}, 1)
			go func() {
				for {
					if _, err := io.ReadFull(server, buf); err != nil {
						return
					}
					got <- struct{}{}
				}
			}()
			wantNoAllocs(t, "64 kB over TCP", 200, func() {
				if _, err := client.Write(chunk); err != nil {
					t.Fatal(err)
				}
				<-got
			})
		})
	}
}

// TestAllocsWatch checks that non-blocking calls allocate nothing either. Package posix uses them: it tries an
// operation, and Watch notifies it when to try again.
func TestAllocsWatch(t *testing.T) {
	client, server := connected(t, stack.Config{Shards: 2}, pipe.Config{}, false)
	go io.CopyBuffer(struct{ io.Writer }{server}, struct{ io.Reader }{server}, make([]byte, 100))
	c := client.(*stack.TCPConn)
	told := make(chan struct{}, 1)
	c.Watch(func(stack.Events) {
		select {
		case told <- struct{}{}:
		default:
		}
	})
	one := make([]byte, 1)
	wantNoAllocs(t, "a byte there and back over TCP without blocking", 1000, func() {
		if _, err := c.TryWrite(one); err != nil {
			t.Fatal(err)
		}
		for {
			_, err := c.TryRead(one)
			if err == nil {
				return
			}
			if err != stack.ErrWouldBlock {
				t.Fatal(err)
			}
			<-told
		}
	})
}

// allocsUDP counts the allocations of datagrams sent back and forth.
func allocsUDP(t *testing.T, what string, pingPong func(t *testing.T, client *stack.UDPConn, data []byte) error) {
	t.Run(what, func(t *testing.T) {
		p := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
		link.Track(false)
		ring.Track(false)
		server, client := mustUDP(t, p.b, 53), mustUDP(t, p.a, 1000)
		go func() {
			buf := make([]byte, 100)
			for {
				n, from, err := server.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				server.WriteToUDPAddrPort(buf[:n], from)
			}
		}()
		data := make([]byte, 100)
		wantNoAllocs(t, what, 1000, func() {
			if err := pingPong(t, client, data); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// ReadFrom is not tested: it must allocate a net.Addr.
func TestAllocsUDP(t *testing.T) {
	to := netip.AddrPortFrom(addrB, 53)
	allocsUDP(t, "to an AddrPort", func(t *testing.T, client *stack.UDPConn, data []byte) error {
		if _, err := client.WriteToUDPAddrPort(data, to); err != nil {
			return err
		}
		_, _, err := client.ReadFromUDPAddrPort(data)
		return err
	})
	addr := net.UDPAddrFromAddrPort(to)
	allocsUDP(t, "to a net.UDPAddr", func(t *testing.T, client *stack.UDPConn, data []byte) error {
		if _, err := client.WriteTo(data, addr); err != nil {
			return err
		}
		_, _, err := client.ReadDatagram(data)
		return err
	})
	connected := false
	allocsUDP(t, "connected", func(t *testing.T, client *stack.UDPConn, data []byte) error {
		if !connected {
			mustConnect(t, client, to.String())
			connected = true
		}
		if _, err := client.Write(data); err != nil {
			return err
		}
		_, err := client.Read(data)
		return err
	})
}

// Ping sockets and raw sockets send and receive without allocations.
func TestAllocsPing(t *testing.T) {
	p := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
	link.Track(false)
	ring.Track(false)
	ping, raw := mustPing(t, p.a, "0.0.0.0:0", stack.UDPOptions{}), mustRaw(t, p.b, wire.ProtoICMP, "0.0.0.0")
	request, to, buf := echo(1, "data"), netip.AddrPortFrom(addrB, 0), make([]byte, 100)
	wantNoAllocs(t, "a request, its copy, and its answer", 1000, func() {
		if _, err := ping.TryWriteTo(request, to); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ping.ReadDatagram(buf); err != nil {
			t.Fatal(err)
		}
		if _, _, err := raw.ReadDatagram(buf); err != nil {
			t.Fatal(err)
		}
	})
}
