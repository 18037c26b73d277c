// Package path measures bulk transfers over emulated paths with a rate, a round-trip time and a loss
// rate. It compares Loam with the kernel that it runs on, each with CUBIC and with BBR, all over the
// same link in one process and one run.
//
//	sender ── tap or pipe ── rate and queue (link/shape) ── loss and delay (link/fault) ── tap or pipe ── receiver
//
// Frames carry one segment each, so that single segments are lost. The queue holds what the rate
// carries in one round-trip time. The buffers of both stacks may grow to the same size, more than twice
// what any path here holds. Each end on the kernel has a network namespace of its own, which belongs to
// a thread and disappears with it.
package path

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/link/fault"
	"loam/link/shape"
	"loam/wire"
)

// Path is one emulated path.
type Path struct {
	Rate int64 // bits per second
	RTT  time.Duration
	Loss float64 // rate of lost segments in the direction of the data, from 0 to 1
	IPv6 bool    // the path carries IPv6 instead of IPv4
	MTU  int     // MTU in bytes; 0: 1500
}

func (p Path) String() string {
	return fmt.Sprintf("%s, %d Mbit/s, %v, %.1f %%", p.packets(), p.Rate/1e6, p.RTT, p.Loss*100)
}

// packets returns the version of IP, and the MTU if it is not 1500.
func (p Path) packets() string {
	text := "IPv4"
	if p.IPv6 {
		text = "IPv6"
	}
	if p.MTU != 0 {
		text += fmt.Sprintf(", MTU %d", p.MTU)
	}
	return text
}

// mtu returns the MTU in bytes.
func (p Path) mtu() int {
	if p.MTU == 0 {
		return 1500
	}
	return p.MTU
}

// Bound returns the highest possible rate of payload in bits per second: the rate without headers and
// lost segments. A TCP header here has 32 bytes, because it carries timestamps.
func (p Path) Bound() float64 {
	headers := wire.IPv4MinLen + wire.TCPMinLen + 12
	if p.IPv6 {
		headers += wire.IPv6Len - wire.IPv4MinLen
	}
	return float64(p.Rate) * (1 - p.Loss) * float64(p.mtu()-headers) / float64(p.mtu()+wire.EthernetLen)
}

// Pair is the stack that sends and the stack that receives.
type Pair struct{ From, To string }

// Values of Pair.From and Pair.To.
const (
	Loam  = "Loam"
	Linux = "Linux"
)

// Pairs lists the pairs of sender and receiver that are measured on each path. The first pair, Linux to Linux, is the
// reference.
var Pairs = []Pair{{Linux, Linux}, {Loam, Loam}, {Loam, Linux}, {Linux, Loam}}

// Algorithms are the congestion control algorithms that both stacks have, by their Linux names.
var Algorithms = []string{"cubic", "bbr"}

// Paths returns the paths of the table: all combinations of rate, round-trip time and loss rate over
// IPv4, and some of them over IPv6 and with an MTU of 9000 bytes.
func Paths() (ps []Path) {
	for _, rate := range []int64{100e6, 1e9} {
		for _, rtt := range []time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 200 * time.Millisecond} {
			for _, loss := range []float64{0, 0.001, 0.01, 0.03} {
				ps = append(ps, Path{Rate: rate, RTT: rtt, Loss: loss})
			}
		}
		for _, kind := range []Path{{IPv6: true}, {MTU: 9000}, {IPv6: true, MTU: 9000}} {
			for _, loss := range []float64{0, 0.01} {
				ps = append(ps, Path{Rate: rate, RTT: 40 * time.Millisecond, Loss: loss, IPv6: kind.IPv6, MTU: kind.MTU})
			}
		}
	}
	return ps
}

// KernelHas reports whether the kernel offers an algorithm.
func KernelHas(algorithm string) bool {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	for _, name := range strings.Fields(string(b)) {
		if name == algorithm {
			return err == nil
		}
	}
	return false
}

// bufferSize is the largest size of a connection's buffers in bytes.
const bufferSize = 128 << 20

// sendBuffer returns the size of the send buffer of Loam's sender in bytes: four times the bandwidth-delay product of
// the path.
func (p Path) sendBuffer() int {
	return max(4<<20, int(4*float64(p.Rate)/8*p.RTT.Seconds()))
}

// span returns how long a transfer over p is measured, and how long it runs before that (warm).
func (p Path) span() (warm, span time.Duration) {
	return max(time.Second, 25*p.RTT), max(2*time.Second, 15*p.RTT)
}

// Measure sends over a path for some seconds and returns the rate of received payload in bits per
// second. seed selects the frames that are lost.
func Measure(p Path, pair Pair, algorithm string, seed uint64) (float64, error) {
	l, err := newLab(p, pair, seed)
	if err != nil {
		return 0, err
	}
	defer l.close()
	listener, err := l.receiver.listen()
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	ctx, stop := context.WithCancel(context.Background())
	var arrived atomic.Int64
	var done sync.WaitGroup
	defer done.Wait()
	defer stop()
	done.Go(func() { receive(ctx, listener, &arrived) })
	c, err := l.sender.dial(ctx, algorithm, p.sendBuffer())
	if err != nil {
		return 0, err
	}
	done.Go(func() { send(ctx, c) })
	warm, span := p.span()
	time.Sleep(warm)
	first, start := arrived.Load(), time.Now()
	time.Sleep(span)
	return float64(arrived.Load()-first) * 8 / time.Since(start).Seconds(), nil
}

// receive accepts one connection and counts the bytes received on it, until ctx ends.
func receive(ctx context.Context, l net.Listener, arrived *atomic.Int64) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer abort(ctx, c)()
	b := make([]byte, 256<<10)
	for err == nil {
		var n int
		n, err = c.Read(b)
		arrived.Add(int64(n))
	}
}

// abort closes a connection when ctx ends, and discards unsent data.
func abort(ctx context.Context, c net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		if c, ok := c.(interface{ SetLinger(int) error }); ok {
			c.SetLinger(0)
		}
		c.Close()
	})
}

// send writes until ctx ends.
func send(ctx context.Context, c net.Conn) {
	defer abort(ctx, c)()
	b := make([]byte, 256<<10)
	for {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// lab is a path with its two ends.
type lab struct {
	sender, receiver host
	ends             []io.Closer
	copies           sync.WaitGroup
}

// host is one end of a path.
type host interface {
	listen() (net.Listener, error)
	// dial connects to the other end. The kernel ignores sendBuffer and tunes its own.
	dial(ctx context.Context, algorithm string, sendBuffer int) (net.Conn, error)
	device() link.Device // the device at the benchmark's end of the link
	io.Closer
}

func newHost(stack, name string, at place) (host, error) {
	if stack == Linux {
		return newKernel(name, at)
	}
	return newLoam(at)
}

// newLab creates the two ends and the emulated path between them. Rate, loss and delay apply to the
// data; the acknowledgements are only delayed.
func newLab(p Path, pair Pair, seed uint64) (*lab, error) {
	a, err := newHost(pair.From, "path0", place{p, 1})
	if err != nil {
		return nil, err
	}
	b, err := newHost(pair.To, "path1", place{p, 2})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	shaped := shape.New(a.device(), shape.Config{Recv: shape.Limit{Rate: p.Rate, Burst: 10 << 10, QueueTime: p.RTT}})
	half := fault.Direction{Delay: p.RTT / 2}
	lossy := half
	lossy.Loss = p.Loss
	near := fault.New(shaped, fault.Config{Seed: seed, Send: half, Recv: lossy, Limit: 512 << 20})
	l := &lab{sender: a, receiver: b, ends: []io.Closer{near, b.device(), a, b}}
	l.copies.Go(func() { carry(near, b.device()) })
	l.copies.Go(func() { carry(b.device(), near) })
	return l, nil
}

func (l *lab) close() {
	for _, c := range l.ends {
		c.Close()
	}
	l.copies.Wait()
}

// carry sends the frames that one device receives over the other device, until either is closed.
func carry(from, to link.Device) {
	in, out := from.Queues()[0], to.Queues()[0]
	fs := make([]*link.Frame, link.BatchSize)
	for {
		n, err := in.Recv(fs)
		for rest := fs[:n]; err == nil && len(rest) > 0; {
			var sent int
			sent, err = out.Send(rest)
			rest = rest[sent:]
			if err != nil {
				link.FreeAll(rest)
			} else if len(rest) > 0 {
				<-out.Room()
			}
		}
		if err != nil {
			return
		}
	}
}
