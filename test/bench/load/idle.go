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

// idle opens many connections, has each carry one byte there and back, leaves
// them alone, and looks at the process's memory: spans of the heap in use, and
// stacks, after the collector has run. So what a connection needed while it
// worked, and gave back, does not count; no goroutine of the program waits on
// the connections, since that costs the same on every stack.
//
// Samples: "bytes", for each end of a connection that is in this process.
type idle struct{ conns int }

// warmUp connections are opened before the first look, so that tables and
// goroutines that the first connections bring are not counted.
const warmUp = 100

// kept keeps what the server accepted; nothing reads it.
var kept struct {
	sync.Mutex
	conns []net.Conn
	here  bool // the server is in this process
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

// open adds n connections to conns.
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

// settle is how long connections are left alone before memory is read: longer
// than delayed acknowledgements and the linger of pooled goroutines.
const settle = 300 * time.Millisecond

// memory reads the bytes in use once the collector has emptied all pools.
func memory() uint64 {
	time.Sleep(settle)
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
