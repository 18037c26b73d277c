package stack_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
)

// Many connections share one device. The cost per connection must not depend on their
// number, and the host must still answer pings and accept connections.
//
// LOAM_CROWD=1000000 adds a run with that many connections, which needs about 10 GB.

// crowdSizes returns the numbers of connections for the benchmarks.
func crowdSizes() []int {
	sizes := []int{1000, 10_000, 100_000}
	if n, err := strconv.Atoi(os.Getenv("LOAM_CROWD")); err == nil && n > 0 {
		sizes = append(sizes, n)
	}
	return sizes
}

// crowd is a set of open connections from a to b of one pair.
type crowd struct {
	*pair
	listeners        []*stack.TCPListener
	clients, servers []*stack.TCPConn
}

// perPort is the number of connections per port, below the number of ephemeral ports.
const perPort = 20_000

func newCrowd(b testing.TB, n int) *crowd {
	b.Helper()
	c := &crowd{pair: newPair(b, stack.Config{}, pipe.Config{})}
	link.Track(false)
	ring.Track(false)
	for port := uint16(100); len(c.listeners)*perPort < n+1; port++ {
		c.listeners = append(c.listeners, mustListen(b, c.b, port, 100))
	}
	for i := range n {
		l := c.listeners[i/perPort]
		client, err := c.a.DialTCP(netip.AddrPort{}, netip.AddrPortFrom(addrB, l.LocalAddrPort().Port()), stack.TCPOptions{})
		if err != nil {
			b.Fatal(err)
		}
		server, err := l.AcceptTCP()
		if err != nil {
			b.Fatal(err)
		}
		c.clients, c.servers = append(c.clients, client), append(c.servers, server)
	}
	return c
}

// closeAll closes both ends of all connections and waits until each end has received a
// FIN or a reset.
func (c *crowd) closeAll() {
	for i := range c.clients {
		c.clients[i].Close()
		c.servers[i].Close()
	}
	for _, conns := range [][]*stack.TCPConn{c.clients, c.servers} {
		for _, conn := range conns {
			for conn.Events()&stack.Hangup == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// latency is the longest time that a probe took.
type latency struct {
	longest time.Duration
	err     error
}

func (l *latency) measure(f func() error) {
	began := time.Now()
	if err := f(); err != nil && l.err == nil {
		l.err = err
	}
	l.longest = max(l.longest, time.Since(began))
}

// during pings b from a and connects to a port of b repeatedly while f runs.
func (c *crowd) during(b *testing.B, f func()) (ping, connect latency) {
	b.Helper()
	over := make(chan struct{})
	var probes sync.WaitGroup
	repeat := func(l *latency, probe func() error) {
		probes.Go(func() {
			for {
				l.measure(probe)
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	repeat(&ping, func() error {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		_, err := c.a.Ping(ctx, addrB, 56)
		return err
	})
	l := c.listeners[len(c.listeners)-1]
	to := fmt.Sprintf("10.0.0.2:%d", l.LocalAddrPort().Port())
	repeat(&connect, func() error {
		conn, err := c.a.Dial("tcp", to)
		if err != nil {
			return err
		}
		accepted, err := l.AcceptTCP()
		if err != nil {
			return err
		}
		accepted.Abort()
		return conn.Close()
	})
	f()
	close(over)
	probes.Wait()
	return ping, connect
}

// report adds the probes' measurements to the results.
func (c *crowd) report(b *testing.B, ping, connect latency) {
	if ping.err != nil || connect.err != nil {
		b.Errorf("ping: %v; connect: %v", ping.err, connect.err)
	}
	b.ReportMetric(float64(ping.longest.Microseconds())/1000, "ms-ping")
	b.ReportMetric(float64(connect.longest.Microseconds())/1000, "ms-connect")
}

// BenchmarkCrowdSend sends 100 bytes on each connection and reads them.
func BenchmarkCrowdSend(b *testing.B) {
	for _, n := range crowdSizes() {
		b.Run("conns="+strconv.Itoa(n), func(b *testing.B) {
			before := heapInUse()
			c := newCrowd(b, n)
			memory := heapInUse() - before
			data := make([]byte, 100)
			got := make([]byte, 200)
			rounds := 0
			b.ResetTimer()
			ping, connect := c.during(b, func() {
				for b.Loop() {
					for _, conn := range c.clients {
						if _, err := conn.Write(data); err != nil {
							b.Fatal(err)
						}
					}
					for _, conn := range c.servers {
						if _, err := conn.Read(got); err != nil {
							b.Fatal(err)
						}
					}
					rounds++
				}
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rounds*n), "ns/conn")
			b.ReportMetric(float64(memory)/float64(n), "B/conn")
			c.report(b, ping, connect)
			c.closeAll()
		})
	}
}

// BenchmarkCrowdClose closes both ends of all connections.
func BenchmarkCrowdClose(b *testing.B) {
	for _, n := range crowdSizes() {
		b.Run("conns="+strconv.Itoa(n), func(b *testing.B) {
			var ping, connect latency
			for b.Loop() {
				b.StopTimer()
				c := newCrowd(b, n)
				runtime.GC()
				b.StartTimer()
				began := time.Now()
				ping, connect = c.during(b, c.closeAll)
				b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(n), "ns/conn")
				b.StopTimer()
				c.report(b, ping, connect)
				onA, onB := c.a.Counters(), c.b.Counters()
				b.ReportMetric(float64(onA.Get(stack.TCPResets)+onB.Get(stack.TCPResets)), "resets")
				c.a.Close()
				c.b.Close()
				b.StartTimer()
			}
		})
	}
}
