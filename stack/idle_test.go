package stack_test

import (
	"net"
	"runtime"
	"testing"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
)

// heapInUse returns the bytes allocated and in use after emptying the pools.
func heapInUse() int {
	runtime.GC()
	runtime.GC() // the first collection empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// idleConnections opens n connections that carry a byte in each direction and then stay
// idle. It returns the memory per connection, both ends together.
func idleConnections(t testing.TB, n int) (bytes int) {
	t.Helper()
	p := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
	defer p.b.Close()
	defer p.a.Close()
	link.Track(false)
	l := mustListen(t, p.b, 80, 4096)
	open := func() (client, server net.Conn) {
		client, err := p.a.Dial("tcp", "10.0.0.2:80")
		if err != nil {
			t.Fatal(err)
		}
		if server, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		for _, c := range [][2]net.Conn{{client, server}, {server, client}} {
			if _, err := c[0].Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := c[1].Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		return client, server
	}
	open()
	conns := make([]net.Conn, 0, 2*n)
	before := heapInUse()
	for range n {
		client, server := open()
		conns = append(conns, client, server)
	}
	for ring.Outstanding() > 0 { // waits until the last bytes are acknowledged and freed
		runtime.Gosched()
	}
	after := heapInUse()
	runtime.KeepAlive(conns)
	return (after - before) / n
}

// BenchmarkIdle reports the memory of an idle connection. It includes both ends, which are in one process.
func BenchmarkIdle(b *testing.B) {
	const n = 10_000
	for range b.N {
		b.ReportMetric(float64(idleConnections(b, n)), "bytes/conn")
	}
	b.ReportMetric(0, "ns/op")
}
