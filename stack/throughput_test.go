//go:build !race

// This file is not built for the race detector, under which its tests take a minute, and TestBadNetworks runs the
// same code.

package stack_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
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

// The throughput of transfers through whole stacks in fake time, over links with a rate, a delay, a queue and loss. The
// results are kept in a table, so that a change that makes some path slower is noticed. Package tcp keeps such a table
// for transfers without a stack.
//
// To accept new throughputs: go test ./stack -run ThroughputTable -update

var update = flag.Bool("update", false, "write the golden tables")

const throughputGolden = "testdata/throughput.golden"

// road is a link of 50 Mb/s.
type road struct {
	rtt    time.Duration
	queue  int     // capacity of the link's queue, in bytes
	loss   float64 // fraction of frames lost in each direction
	buffer int     // SO_SNDBUF and SO_RCVBUF; zero: automatic
}

const roadRate = 50e6 // bits per second

// throughput returns the rate of a program's data in bits per second.
func (r road) throughput(t *testing.T, seed uint64, size int) (rate float64) {
	synctest.Test(t, func(t *testing.T) {
		link.Track(true)
		ring.Track(true)
		near, far := pipe.New(pipe.Config{Depth: 4096})
		way := fault.Direction{Loss: r.loss, Delay: r.rtt / 2}
		lossy := fault.New(near, fault.Config{Seed: seed, Send: way, Recv: way})
		slow := shape.New(lossy, shape.Config{Send: shape.Limit{Rate: roadRate, Burst: 1514, Queue: r.queue}})
		alone := stack.Config{Shards: 1, NoIPv6: true} // IPv6 is off, so that the stacks send no other traffic, such as group reports
		a := newHost(t, alone, slow, addrA)
		b := newHost(t, alone, far, addrB)
		defer func() {
			a.Close()
			b.Close()
			checkLeaks(t)
		}()
		o := stack.TCPOptions{SendBuffer: r.buffer, ReceiveBuffer: r.buffer}
		l, err := b.ListenTCP(mustAddrPort("10.0.0.2:80"), 1, o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.DialTCP(unspecified, mustAddrPort("10.0.0.2:80"), o)
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go func() {
			c.Write(make([]byte, size))
			c.Close()
		}()
		if n, err := io.Copy(io.Discard, d); n != int64(size) || err != nil {
			t.Errorf("%d of %d bytes arrived, %v", n, size, err)
		}
		rate = float64(8*size) / time.Since(began).Seconds()
		d.Close()
	})
	return rate
}

// median returns the median throughput of several runs with different losses.
func (r road) median(t *testing.T, size int) float64 {
	var rates []float64
	for seed := range uint64(5) {
		rates = append(rates, r.throughput(t, seed, size))
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// throughputTable measures all combinations.
func throughputTable(t *testing.T) string {
	const size = 1 << 20
	var b strings.Builder
	fmt.Fprintf(&b, "Mb/s of a transfer of %d bytes over 50 Mb/s\n\n", size)
	fmt.Fprintf(&b, "%-6s %-7s %-7s %8s %8s %8s %8s\n", "RTT", "queue", "buffer", "loss 0", "0.1 %", "1 %", "5 %")
	for _, rtt := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		for _, queue := range []int{30_000, 300_000} {
			for _, buffer := range []int{16 << 10, 128 << 10, 0} {
				fmt.Fprintf(&b, "%-6v %-7d %-7d", rtt, queue, buffer)
				for _, loss := range []float64{0, 0.001, 0.01, 0.05} {
					fmt.Fprintf(&b, " %8.2f", road{rtt, queue, loss, buffer}.median(t, size)/1e6)
				}
				fmt.Fprintln(&b)
			}
		}
	}
	return b.String()
}

// Runs differ slightly because goroutines race even in fake time. So a value of the table
// may differ by a third.
func TestThroughputTable(t *testing.T) {
	got := throughputTable(t)
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(throughputGolden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(throughputGolden)
	if err != nil {
		t.Fatal(err)
	}
	if !alike(got, string(want)) {
		t.Errorf("%s is now\n%s\nit was\n%s", throughputGolden, got, want)
	}
}

// alike reports whether two tables have the same text and integers, and other numbers
// that differ by at most a third.
func alike(a, b string) bool {
	as, bs := strings.Fields(a), strings.Fields(b)
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if as[i] == bs[i] {
			continue
		}
		x, errX := strconv.ParseFloat(as[i], 64)
		y, errY := strconv.ParseFloat(bs[i], 64)
		if !strings.Contains(as[i], ".") || errX != nil || errY != nil || 3*x > 4*y || 3*y > 4*x {
			return false
		}
	}
	return true
}
