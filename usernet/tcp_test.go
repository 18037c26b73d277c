package usernet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/internal/race"
	"loam/stack"
)

// noise writes n bytes that depend only on the seed, and closes the stream.
func noise(t *testing.T, w interface {
	io.Writer
	CloseWrite() error
}, seed byte, n int64) {
	if _, err := io.Copy(w, io.LimitReader(rand.NewChaCha8([32]byte{seed}), n)); err != nil {
		t.Errorf("writing: %v", err)
	}
	if err := w.CloseWrite(); err != nil {
		t.Errorf("ending the stream: %v", err)
	}
}

// wantNoise reads a stream to its end and compares it.
func wantNoise(t *testing.T, r io.Reader, seed byte, n int64) {
	got, want := sha256.New(), sha256.New()
	io.Copy(want, io.LimitReader(rand.NewChaCha8([32]byte{seed}), n))
	m, err := io.Copy(got, r)
	if err != nil || m != n || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Errorf("%d of %d bytes came, error %v; the sums are %x and %x", m, n, err, got.Sum(nil), want.Sum(nil))
	}
}

func TestTCPCarriesStreamsBothWays(t *testing.T) {
	n := newNetwork(t, loopback())
	size := int64(64 << 20)
	if testing.Short() || race.Enabled {
		size = 8 << 20
	}
	guest, host := n.pair()
	var wg sync.WaitGroup
	wg.Go(func() { noise(t, guest, 1, size) })
	wg.Go(func() { noise(t, host, 2, size) })
	wg.Go(func() { wantNoise(t, guest, 2, size) })
	wg.Go(func() { wantNoise(t, host, 1, size) })
	wg.Wait()
	guest.Close()
	host.Close()
	n.wantCounter(TCPBytesOut, uint64(size))
	n.wantCounter(TCPBytesIn, uint64(size))
	n.wantCounter(TCPResets, 0)
}

func TestTCPPassesOnTheEndOfAStreamAndKeepsTheOther(t *testing.T) {
	n := newNetwork(t, loopback())
	t.Run("the guest ends first", func(t *testing.T) {
		guest, host := n.pair()
		send(t, guest, "request")
		guest.CloseWrite()
		want(t, host, "request")
		wantEOF(t, host)
		send(t, host, "answer")
		want(t, guest, "answer")
		host.Close()
		wantEOF(t, guest)
		guest.Close()
	})
	t.Run("the host ends first", func(t *testing.T) {
		guest, host := n.pair()
		send(t, host, "greeting")
		host.CloseWrite()
		want(t, guest, "greeting")
		wantEOF(t, guest)
		send(t, guest, "more")
		want(t, host, "more")
		guest.Close()
		wantEOF(t, host)
		host.Close()
	})
	n.wantCounter(TCPResets, 0)
}

func TestTCPPassesOnAReset(t *testing.T) {
	for _, when := range []struct {
		name                  string
		guestEnded, hostEnded bool
	}{
		{name: "while both streams run"},
		{name: "after the guest's stream has ended", guestEnded: true},
		{name: "after the host's stream has ended", hostEnded: true},
	} {
		begin := func(t *testing.T) (n *network, guest *stack.TCPConn, host *net.TCPConn) {
			n = newNetwork(t, loopback())
			guest, host = n.pair()
			if when.guestEnded {
				guest.CloseWrite()
				wantEOF(t, host)
			}
			if when.hostEnded {
				host.CloseWrite()
				wantEOF(t, guest)
			}
			return n, guest, host
		}
		wantReset := func(t *testing.T, c io.Reader, ended bool) {
			if _, err := c.Read(make([]byte, 1)); !ended && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the other end sees %v", err)
			}
		}
		t.Run("the guest's "+when.name, func(t *testing.T) {
			n, guest, host := begin(t)
			guest.Abort()
			n.wantCounter(TCPResets, 1)
			wantReset(t, host, when.guestEnded)
			host.Close()
		})
		t.Run("the host's "+when.name, func(t *testing.T) {
			n, guest, host := begin(t)
			reset(host)
			n.wantCounter(TCPResets, 1)
			wantReset(t, guest, when.hostEnded)
			guest.Close()
		})
	}
}

func TestTCPPortThatIsClosedIsClosedForTheGuest(t *testing.T) {
	n := newNetwork(t, loopback())
	l := listen(t)
	l.Close()
	if _, err := n.guest.Dial("tcp", gatewayPort(l.Addr()).String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the guest sees %v", err)
	}
	n.wantCounter(TCPFailed, 1)
	n.wantCounter(TCPConnected, 0)
}

func TestTCPUnansweredDialIsNotAccepted(t *testing.T) {
	var asked netip.AddrPort
	release := make(chan struct{}) // closed by the test
	c := Config{dial: func(_ context.Context, to netip.AddrPort) (*net.TCPConn, error) {
		asked = to
		<-release
		return nil, context.DeadlineExceeded
	}}
	n := newNetwork(t, c)
	conn, err := n.guest.DialTCP(netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:80"), stack.TCPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.wantCounter(TCPAttempts, 1)
	if conn.Connected() {
		t.Error("the guest is connected before the host is")
	}
	close(release)
	n.wantCounter(TCPFailed, 1)
	if asked.String() != "192.0.2.1:80" {
		t.Errorf("the gateway dialled %v", asked)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the guest sees %v", err)
	}
	conn.Close()
}

func TestTCPDestinationsOutOfReachAreRefused(t *testing.T) {
	l := listen(t)
	n := newNetwork(t, Config{})
	for i, dst := range []netip.AddrPort{gatewayPort(l.Addr()), netip.MustParseAddrPort("10.0.2.3:80")} {
		if _, err := n.guest.Dial("tcp", dst.String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dialling %v the guest sees %v", dst, err)
		}
		n.wantCounter(TCPDenied, uint64(i+1))
	}
}

func TestTCPManyConnectionsAtOnce(t *testing.T) {
	const many = 200
	n := newNetwork(t, loopback())
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range many {
			c := accept(t, l)
			wg.Go(func() {
				io.Copy(c, c)
				c.Close()
			})
		}
	})
	start := make(chan struct{}) // closed when all guests are connected
	var connected sync.WaitGroup
	connected.Add(many)
	for i := range many {
		wg.Go(func() {
			c := n.dial(l)
			connected.Done()
			<-start
			wg.Go(func() { noise(t, c, byte(i), 50_000) })
			wantNoise(t, c, byte(i), 50_000)
			c.Close()
		})
	}
	connected.Wait()
	close(start)
	wg.Wait()
	n.wantCounter(TCPConnected, many)
	n.wantCounter(TCPResets, 0)
}

func TestTCPConnectionsAreBounded(t *testing.T) {
	c := loopback()
	c.Limits.Connections = 3
	n := newNetwork(t, c)
	l := listen(t)
	var open []*stack.TCPConn
	for range 3 {
		open = append(open, n.dial(l))
	}
	if _, err := n.guest.Dial("tcp", gatewayPort(l.Addr()).String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the fourth of three connections: %v", err)
	}
	n.wantCounter(TCPLimit, 1)
	open[0].Close()
	accept(t, l).Close()
	eventually(t, "a place does not become free", func() bool { return len(n.connections) == 2 })
	n.dial(l).Close()
	for range 3 {
		accept(t, l).Close()
	}
	for _, c := range open[1:] {
		c.Close()
	}
}

// A guest that sends SYNs as fast as it can gets a bounded number of host sockets, and a
// reset for further attempts.
func TestTCPAttemptsAtOnceAreBounded(t *testing.T) {
	const flood, limit = 300, 5
	c := Config{dial: func(ctx context.Context, _ netip.AddrPort) (*net.TCPConn, error) {
		<-ctx.Done() // simulates a host that does not answer
		return nil, ctx.Err()
	}}
	c.Limits.Dials = limit
	n := newNetwork(t, c)
	for i := range flood {
		conn, err := n.guest.DialTCP(netip.AddrPort{}, netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(1000+i)), stack.TCPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Abort()
	}
	eventually(t, "more or fewer attempts than the limit are under way", func() bool {
		c := n.Counters() // the guest's stack may have repeated refused attempts, so there may be more
		attempts := c.Get(TCPAttempts)
		return attempts >= flood && attempts-c.Get(TCPDialLimit) == limit
	})
}

// fill writes until the connection is blocked, and returns the number of bytes written.
func fill(t *testing.T, w net.Conn) (total int) {
	t.Helper()
	chunk := make([]byte, 64<<10)
	for {
		w.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		n, err := w.Write(chunk)
		total += n
		if err != nil {
			w.SetWriteDeadline(time.Time{})
			return total
		}
		if total > 256<<20 {
			t.Fatal("256 MiB went to somebody who does not read")
		}
	}
}

func TestTCPReaderThatStopsBlocksTheWriter(t *testing.T) {
	n := newNetwork(t, loopback())
	t.Run("the guest does not read", func(t *testing.T) {
		guest, host := n.pair()
		other, otherHost := n.pair()
		total := int64(fill(t, host))
		t.Logf("%d bytes fit between the host's program and the guest's", total)
		send(t, other, "others are not disturbed")
		want(t, otherHost, "others are not disturbed")
		other.Close()
		otherHost.Close()
		host.CloseWrite()
		if got, err := io.Copy(io.Discard, guest); err != nil || got != total {
			t.Errorf("%d of %d bytes came, %v", got, total, err)
		}
		guest.Close()
		host.Close()
	})
	t.Run("the host does not read", func(t *testing.T) {
		guest, host := n.pair()
		total := int64(fill(t, guest))
		t.Logf("%d bytes fit between the guest's program and the host's", total)
		guest.CloseWrite()
		if got, err := io.Copy(io.Discard, host); err != nil || got != total {
			t.Errorf("%d of %d bytes came, %v", got, total, err)
		}
		guest.Close()
		host.Close()
	})
	n.wantCounter(TCPResets, 0)
}

// A guest that never reads the end of its stream does not keep its connection slot and
// buffers forever.
func TestTCPFinishedConnectionIsGivenUpWhenTheGuestDoesNotRead(t *testing.T) {
	c := loopback()
	c.linger = 300 * time.Millisecond
	n := newNetwork(t, c)
	guest, host := n.pair()
	guest.SetOptions(func(o *stack.TCPOptions) { o.ReceiveBuffer = 32 << 10 })
	guest.CloseWrite()
	wantEOF(t, host)
	noise(t, host, 1, 400<<10) // more than the guest's window, less than the gateway buffers
	n.wantCounter(TCPLingered, 1)
	if _, err := io.Copy(io.Discard, guest); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the guest's stream ends with %v", err)
	}
	host.Close()
	guest.Close()
}

// A guest that reads slowly gets all data even long after the host has closed.
func TestTCPFinishedConnectionIsKeptForAGuestThatReads(t *testing.T) {
	const size = 400 << 10
	n := newNetwork(t, loopback())
	guest, host := n.pair()
	guest.CloseWrite()
	wantEOF(t, host)
	noise(t, host, 1, size)
	host.Close()
	n.wantCounter(TCPBytesIn, size)
	wantNoise(t, guest, 1, size)
	guest.Close()
	n.wantCounter(TCPResets, 0)
}
