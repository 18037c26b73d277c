package stack_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
)

// Benchmarks with many connections that share one device. The cost per connection must not depend on their number,
// and the host must still answer pings and accept connections.
//
// LOAM_CROWD=1000000 adds a run with that many connections, which needs about 10 GB.

// crowdSizes returns the numbers of connections that the benchmarks open at the same time.
func crowdSizes() []int {
	sizes := []int{1000, 10_000, 100_000}
	if n, err := strconv.Atoi(os.Getenv("LOAM_CROWD")); err == nil && n > 0 {
		sizes = append(sizes, n)
	}
	return sizes
}

// crowd is a set of many open connections from stack a to stack b of a pair.
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

// probe calls a function repeatedly and measures how long the calls take.
type probe struct {
	name string
	f    func() error
	took []time.Duration
	err  error
}

func (p *probe) measure() {
	began := time.Now()
	if err := p.f(); err != nil && p.err == nil {
		p.err = err
	}
	p.took = append(p.took, time.Since(began))
}

// report adds the longest time and the 99th percentile to the results, in milliseconds.
func (p *probe) report(b *testing.B) {
	if p.err != nil {
		b.Errorf("%s: %v", p.name, p.err)
	}
	slices.Sort(p.took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(p.took[len(p.took)-1]), "ms-"+p.name)
	b.ReportMetric(ms(p.took[len(p.took)*99/100]), "ms-"+p.name+"-p99")
}

// probes returns the probes of a crowd: a ping from a to b, and a connection from a to a port of b. The third probe is
// for comparison: a goroutine that only sleeps for a millisecond. On a busy machine it wakes up late, and the other
// probes cannot be much faster than that.
func (c *crowd) probes(b *testing.B) []*probe {
	ping := func() error {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		_, err := c.a.Ping(ctx, addrB, 56)
		return err
	}
	l := c.listeners[len(c.listeners)-1]
	to := fmt.Sprintf("10.0.0.2:%d", l.LocalAddrPort().Port())
	connect := func() error {
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
	}
	sleep := func() error {
		time.Sleep(time.Millisecond)
		return nil
	}
	return []*probe{{name: "ping", f: ping}, {name: "connect", f: connect}, {name: "sleep", f: sleep}}
}

// during runs the probes repeatedly while f runs, and reports their times. It returns the
// CPU time of the process meanwhile.
func (c *crowd) during(b *testing.B, f func()) time.Duration {
	b.Helper()
	over := make(chan struct{})
	var running sync.WaitGroup
	probes := c.probes(b)
	before := cpuTime(b)
	for _, p := range probes {
		running.Go(func() {
			for {
				p.measure()
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	f()
	used := cpuTime(b) - before
	close(over)
	running.Wait()
	for _, p := range probes {
		p.report(b)
	}
	return used
}

// cpuTime returns the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timeouts returns the number of retransmission timeouts of both stacks. Nothing is lost, so they
// are all caused by delays in the stacks.
func (c *crowd) timeouts() uint64 {
	onA, onB := c.a.Counters(), c.b.Counters()
	return onA.Get(stack.TCPLossTimeouts) + onB.Get(stack.TCPLossTimeouts)
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
			late := c.timeouts()
			used := c.during(b, func() {
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
			b.ReportMetric(float64(used.Nanoseconds())/float64(rounds*n), "cpu-ns/conn")
			b.ReportMetric(float64(memory)/float64(n), "B/conn")
			b.ReportMetric(float64(c.timeouts()-late)/float64(rounds*n), "timeouts/conn")
			c.closeAll()
		})
	}
}

// BenchmarkCrowdClose closes both ends of all connections.
func BenchmarkCrowdClose(b *testing.B) {
	for _, n := range crowdSizes() {
		b.Run("conns="+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				c := newCrowd(b, n)
				runtime.GC()
				b.StartTimer()
				began := time.Now()
				used := c.during(b, c.closeAll)
				b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(n), "ns/conn")
				b.ReportMetric(float64(used.Nanoseconds())/float64(n), "cpu-ns/conn")
				b.StopTimer()
				onA, onB := c.a.Counters(), c.b.Counters()
				b.ReportMetric(float64(onA.Get(stack.TCPResets)+onB.Get(stack.TCPResets)), "resets")
				c.a.Close()
				c.b.Close()
				b.StartTimer()
			}
		})
	}
}

// record stands for one end of a connection in BenchmarkCrowdMemory: it has the size of a TCPConn, and it is in two lists, as
// the entries of the timer wheel are.
type record struct {
	lines [14][8]uint64
	next  [2]*record
	prev  [2]**record
}

// insert adds a record to a list.
func (r *record) insert(list int, head **record) {
	r.next[list], r.prev[list] = *head, head
	if *head != nil {
		(*head).prev[list] = &r.next[list]
	}
	*head = r
}

// unlink removes a record from a list.
func (r *record) unlink(list int) {
	*r.prev[list] = r.next[list]
	if r.next[list] != nil {
		r.next[list].prev[list] = r.prev[list]
	}
}

// BenchmarkCrowdMemory is the bound of BenchmarkCrowdClose. It only reads and writes the memory that closing needs: for each
// end, the cache lines of the connection, its neighbours in two lists of timers, and its entry in a map, which the three
// segments and the removal look up. Its growth with the number of connections is the cost of the processor's caches.
func BenchmarkCrowdMemory(b *testing.B) {
	for _, n := range crowdSizes() {
		b.Run("conns="+strconv.Itoa(n), func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				b.StopTimer()
				flows := map[[5]uint64]*record{}
				heads := make([]*record, 256)
				for i := range uint64(2 * n) {
					r := new(record)
					r.insert(0, &heads[i*0x9E3779B97F4A7C15>>56])
					r.insert(1, &heads[i*0xC2B2AE3D27D4EB4F>>56])
					flows[[5]uint64{i, i >> 16}] = r
				}
				runtime.GC()
				b.StartTimer()
				began := time.Now()
				closeRecords(flows, uint64(2*n))
				took += time.Since(began)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*n), "ns/conn")
		})
	}
}

// closeRecords makes four passes over the records, as the program's close and the three segments do. The last one removes them.
func closeRecords(flows map[[5]uint64]*record, n uint64) {
	const passes = 4
	for pass := range passes {
		for i := range n {
			key := [5]uint64{i, i >> 16}
			r := flows[key]
			for l := range r.lines {
				r.lines[l][0]++
			}
			if pass == passes-1 {
				r.unlink(0)
				r.unlink(1)
				delete(flows, key)
			}
		}
	}
}
