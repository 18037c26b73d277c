// Package load contains the loads to measure. Each load consists of a server's half and a client's
// half, and works on any pair of hosts.
package load

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"loam/test/bench/subject"
)

// Samples are the results of one run of a load, by name. Each load documents its names and units.
type Samples map[string]float64

// Load is one kind of work between two hosts.
type Load interface {
	// Serve starts the server's half on h and returns. The server runs until the process ends.
	Serve(h subject.Host) error
	// Run runs the client's half against the server at peer for about the duration span, and
	// returns the samples.
	Run(h subject.Host, peer netip.Addr, span time.Duration) (Samples, error)
}

// Names of the loads, the kinds of traffic that are measured.
const (
	BulkSend    = "bulk-send"
	BulkReceive = "bulk-receive"
	PingPong    = "pingpong"
	Connect     = "connect"
	Idle        = "idle"
	Echo        = "echo"
	Clients     = "clients"
	OneFlight   = "one-flight"
	Flood       = "flood-" // followed by one of FloodKinds
)

// ByName returns the load with that name. n is its size, for loads that have one: the number of
// connections of Idle.
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
	case OneFlight:
		return oneFlight{}, nil
	}
	if kind, ok := strings.CutPrefix(name, Flood); ok && slices.Contains(FloodKinds, kind) {
		return flood{kind: kind}, nil
	}
	return nil, fmt.Errorf("no load %q", name)
}

// port is the TCP port of every server.
const port = 5001

// serve accepts connections and handles each on a goroutine of its own.
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

// usage is the resources that this process has used since it started.
type usage struct {
	objects uint64        // allocated objects
	cpu     time.Duration // CPU time in user mode and in the kernel
}

func use() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err) // cannot fail with these arguments: getrusage(2)
	}
	return usage{m.Mallocs, time.Duration(r.Utime.Nano() + r.Stime.Nano())}
}
