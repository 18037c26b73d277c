package load

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"loam/test/bench/subject"
)

// clients is the second experiment of the GoNet paper (section 3.3.2): a server starts, n clients connect to it at once
// over the local network, and each sends 4 kB. The time runs from before the server starts until it has read all bytes
// of all clients.
//
// Samples: "1" to "100", by number of clients: the median throughput in Mb/s.
type clients struct{}

// ClientCounts are the numbers of clients.
var ClientCounts = []int{1, 2, 5, 10, 20, 40, 60, 80, 100}

// payload is the number of bytes that each client sends.
const payload = 4096

func (clients) Serve(subject.Host) error { return nil }

func (clients) Run(h subject.Host, _ netip.Addr, span time.Duration) (Samples, error) {
	samples := Samples{}
	at := uint16(port)
	for _, n := range ClientCounts {
		var took []time.Duration
		deadline := time.Now().Add(span / time.Duration(len(ClientCounts)))
		for len(took) < 5 || time.Now().Before(deadline) {
			t, err := experiment(h, at, n)
			if err != nil {
				return nil, fmt.Errorf("%d clients: %w", n, err)
			}
			took = append(took, t)
			at++
		}
		median := quantile(took, 0.5)
		samples[fmt.Sprint(n)] = float64(n*payload*8) / microseconds(median)
	}
	return samples, nil
}

// experiment runs n clients against a new server on a port (at), and returns the time
// that it took.
func experiment(h subject.Host, at uint16, n int) (time.Duration, error) {
	start := time.Now()
	l, err := h.Listen(at)
	if err != nil {
		return 0, err
	}
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		errs    []error
		open    []net.Conn
	)
	note := func(c net.Conn, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
		if c != nil {
			open = append(open, c)
		}
	}
	for range n {
		running.Go(func() { note(sendPayload(h, netip.AddrPortFrom(h.Addr(), at))) })
	}
	for range n {
		c, err := l.Accept()
		if err != nil {
			return 0, err
		}
		running.Go(func() { note(c, readPayload(c)) })
	}
	running.Wait()
	took := time.Since(start)
	for _, c := range open {
		c.Close()
	}
	l.Close()
	return took, errors.Join(errs...)
}

func sendPayload(h subject.Host, to netip.AddrPort) (net.Conn, error) {
	c, err := h.Dial(to)
	if err != nil {
		return nil, err
	}
	_, err = c.Write(make([]byte, payload))
	return c, err
}

func readPayload(c net.Conn) error {
	_, err := io.ReadFull(c, make([]byte, payload))
	return err
}
