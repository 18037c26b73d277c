//go:build !race

// The race detector has pools forget at random, so counts mean nothing there.

package stack_test

import (
	"io"
	"net/netip"
	"testing"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
)

// In its stride the stack allocates nothing. AllocsPerRun counts what the whole
// process allocates, so these are both ends: program, shard, receiver, device.

// wantNoAllocs runs f until pools and lists have their size, and then counts.
func wantNoAllocs(t *testing.T, what string, runs int, f func()) {
	t.Helper()
	for range runs {
		f()
	}
	if n := testing.AllocsPerRun(runs, f); n != 0 {
		t.Errorf("%s: %v allocations", what, n)
	}
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

func TestAllocsUDP(t *testing.T) {
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
	to := netip.AddrPortFrom(addrB, 53)
	wantNoAllocs(t, "a datagram there and back", 1000, func() {
		if _, err := client.WriteToUDPAddrPort(data, to); err != nil {
			t.Fatal(err)
		}
		if _, _, err := client.ReadFromUDPAddrPort(data); err != nil {
			t.Fatal(err)
		}
	})
}
