package usernet

import (
	"bytes"
	"errors"
	"net"
	"testing"

	"loam/internal/race"
)

// socketPair returns both ends of a connection of the host.
func socketPair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l := listen(t)
	a = dialHostPort(t, l.Addr().String())
	b = accept(t, l)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func newTestReader(t *testing.T, c *net.TCPConn) *hostReader {
	t.Helper()
	r, err := newHostReader(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHostReaderHoldsNoBufferWhileItWaits(t *testing.T) {
	a, b := socketPair(t)
	r := newTestReader(t, a)
	r.raw.Control(func(fd uintptr) {
		if r.tryRead(fd) {
			t.Error("there is something to read")
		}
	})
	if r.buf != (room{}) {
		t.Error("a reader that waits holds a buffer")
	}
	send(t, b, "bytes")
	p, err := r.read()
	if err != nil || string(p) != "bytes" {
		t.Errorf("read %q, %v", p, err)
	}
	b.CloseWrite()
	if p, err := r.read(); err != nil || len(p) != 0 {
		t.Errorf("the end of the stream is %q, %v", p, err)
	}
	a.Close()
	if _, err := r.read(); !errors.Is(err, net.ErrClosed) || r.buf != (room{}) {
		t.Errorf("a closed socket gives %v", err)
	}
}

func TestHostReaderAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector sync.Pool loses entries on purpose")
	}
	a, b := socketPair(t)
	r := newTestReader(t, a)
	msg := bytes.Repeat([]byte("x"), 1000)
	n := testing.AllocsPerRun(100, func() {
		b.Write(msg)
		if p, err := r.read(); err != nil || len(p) == 0 {
			t.Fatal(err)
		}
		r.release()
	})
	if n != 0 {
		t.Errorf("%v allocations for each read, want none", n)
	}
}
