// Package load holds what is measured: each load is a server's half and a
// client's half, and works on any pair of hosts.
package load

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"loam/test/bench/subject"
)

// Samples are the figures that one run of a load gives, by name. Each load
// documents its names and units.
type Samples map[string]float64

// Load is one kind of work between two hosts.
type Load interface {
	// Serve starts the server's half on h and returns; it goes on for as long
	// as the process lives.
	Serve(h subject.Host) error
	// Run is the client's half: it works against the server at peer for about
	// span and returns what it measured.
	Run(h subject.Host, peer netip.Addr, span time.Duration) (Samples, error)
}

// Names of the loads.
const (
	BulkSend    = "bulk-send"
	BulkReceive = "bulk-receive"
	PingPong    = "pingpong"
	Connect     = "connect"
	Idle        = "idle"
	Echo        = "echo"
	Clients     = "clients"
)

// ByName makes the load of that name. n is its size where it has one: the
// number of connections of Idle.
func ByName(name string, n int) (Load, error) {
	switch name {
	case BulkSend:
		return bulk{send: true}, nil
	case BulkReceive:
		return bulk{}, nil
	case PingPong:
		return pingPong{}, nil
	case Connect:
		return connect{}, nil
	case Idle:
		return idle{conns: n}, nil
	case Echo:
		return echo{}, nil
	case Clients:
		return clients{}, nil
	}
	return nil, fmt.Errorf("no load %q", name)
}

// port is where every server listens.
const port = 5001

// serve accepts connections and handles each in a goroutine of its own.
func serve(h subject.Host, handle func(net.Conn)) error {
	l, err := h.Listen(port)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	return nil
}

func dial(h subject.Host, peer netip.Addr) (net.Conn, error) {
	return h.Dial(netip.AddrPortFrom(peer, port))
}

// oneByte writes one byte and reads one back.
func oneByte(c net.Conn) error {
	var b [1]byte
	if _, err := c.Write(b[:]); err != nil {
		return err
	}
	_, err := io.ReadFull(c, b[:])
	return err
}

// quantile returns the q-th quantile of xs, which it sorts.
func quantile(xs []time.Duration, q float64) time.Duration {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return xs[int(q*float64(len(xs)-1))]
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// usage is what this process has used so far.
type usage struct {
	objects uint64        // allocated
	cpu     time.Duration // in user mode and in the kernel
}

func use() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err) // with these arguments it cannot fail: getrusage(2)
	}
	return usage{m.Mallocs, time.Duration(r.Utime.Nano() + r.Stime.Nano())}
}
