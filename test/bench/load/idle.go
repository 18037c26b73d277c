package load

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"loam/test/bench/subject"
)

// idle opens many connections, sends one byte back and forth on each, leaves them idle, and measures
// the memory of the process: heap spans in use, and stacks, after garbage collection. Memory that a
// connection needed while it worked and then released does not count. No goroutine of the program waits
// on the connections, because that costs the same on every stack.
//
// Samples: "bytes", per end of a connection in this process.
type idle struct{ conns int }

// warmUp is the number of connections opened before the first measurement, so that tables and
// goroutines created for the first connections do not count.
const warmUp = 100

// kept keeps the accepted connections alive. Nothing reads it.
var kept struct {
	sync.Mutex
	conns []net.Conn
	here  bool // the server's half runs in this process, too
}

func (i idle) Serve(h subject.Host) error {
	l, err := h.Listen(port)
	if err != nil {
		return err
	}
	kept.here = true
	kept.conns = make([]net.Conn, 0, i.conns+warmUp)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			kept.Lock()
			kept.conns = append(kept.conns, c)
			kept.Unlock()
			var b [1]byte
			if _, err := io.ReadFull(c, b[:]); err == nil {
				c.Write(b[:])
			}
		}
	}()
	return nil
}

func (i idle) Run(h subject.Host, peer netip.Addr, _ time.Duration) (Samples, error) {
	conns := make([]net.Conn, 0, i.conns+warmUp)
	conns, err := open(conns, h, peer, warmUp)
	if err != nil {
		return nil, err
	}
	before := memory()
	if conns, err = open(conns, h, peer, i.conns); err != nil {
		return nil, err
	}
	after := memory()
	ends := i.conns
	if kept.here {
		ends *= 2
	}
	runtime.KeepAlive(conns)
	return Samples{"bytes": (float64(after) - float64(before)) / float64(ends)}, nil
}

// open opens n more connections and appends them to conns.
func open(conns []net.Conn, h subject.Host, peer netip.Addr, n int) ([]net.Conn, error) {
	var (
		mu      sync.Mutex
		running sync.WaitGroup
		errs    []error
	)
	for d := range dialers {
		running.Go(func() {
			for j := d; j < n; j += dialers {
				c, err := dial(h, peer)
				if err == nil {
					err = oneByte(c)
				}
				mu.Lock()
				conns, errs = append(conns, c), append(errs, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	running.Wait()
	return conns, errors.Join(errs...)
}

// settle is the time for which connections are idle before memory is measured. It is longer than delayed
// acknowledgements and than the idle time of pooled goroutines.
const settle = 300 * time.Millisecond

// memory returns the bytes in use after garbage collection has emptied all pools.
func memory() uint64 {
	time.Sleep(settle)
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
