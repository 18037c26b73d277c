package load

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/test/bench/subject"
)

// connect opens and closes connections from several goroutines at once, one after another on each. A
// connection counts once it is complete: dialled, accepted, closed by the server, and closed by the
// client after it has read the end.
//
// Samples: "conns/s".
type connect struct{}

// dialers is the number of goroutines that dial.
const dialers = 8

func (connect) Serve(h subject.Host) error {
	return serve(h, func(c net.Conn) { c.Close() })
}

func (connect) Run(h subject.Host, peer netip.Addr, span time.Duration) (Samples, error) {
	var (
		running sync.WaitGroup
		done    atomic.Int64
		failed  atomic.Pointer[error]
	)
	start := time.Now()
	for range dialers {
		running.Go(func() {
			for time.Since(start) < span {
				if err := oneConnection(h, peer); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	running.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		return nil, fmt.Errorf("after %d connections: %w", done.Load(), *err)
	}
	return Samples{"conns/s": float64(done.Load()) / took.Seconds()}, nil
}

// oneConnection opens a connection, reads the end that the server sends, and closes it.
func oneConnection(h subject.Host, peer netip.Addr) error {
	c, err := dial(h, peer)
	if err != nil {
		return err
	}
	var b [1]byte
	if n, err := c.Read(b[:]); n != 0 || err == nil {
		return fmt.Errorf("the server sent %d bytes where it should close", n)
	}
	return c.Close()
}
