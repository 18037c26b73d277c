package usernet

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
)

// The tests of this package use a gateway with a second stack as its guest, on a pipe.
// The guest reaches the loopback network of this machine.

// network is a gateway and its guest.
type network struct {
	*Gateway
	t     *testing.T
	guest *stack.Stack
	ifc   *stack.Interface // the guest's interface
}

// patience is how long a test waits for an expected event. It does not affect results.
const patience = 30 * time.Second

// newNetwork returns a gateway and a guest with the default address. At the end of the
// test it closes both and checks that nothing has leaked.
func newNetwork(t *testing.T, c Config) *network {
	t.Helper()
	n := newBareNetwork(t, c)
	if err := n.guest.AddAddress("eth0", netip.MustParsePrefix("10.0.2.15/24")); err != nil {
		t.Fatal(err)
	}
	if err := n.guest.AddRoute(stack.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("10.0.2.2")}); err != nil {
		t.Fatal(err)
	}
	return n
}

// newBareNetwork returns a gateway and a guest without an address.
func newBareNetwork(t *testing.T, c Config) *network {
	t.Helper()
	checkLeaks(t)
	var far link.Device
	c.Device, far = pipe.New(pipe.Config{})
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	guest := stack.New(stack.Config{})
	t.Cleanup(func() {
		g.Close()
		guest.Close()
	})
	ifc, err := guest.Attach(far, stack.InterfaceConfig{Name: "eth0"})
	if err != nil {
		t.Fatal(err)
	}
	return &network{g, t, guest, ifc}
}

// The gateway logs a warning if a guest keeps running without its link. It logs nothing if the guest ends.
func TestGuestCutOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		bound  time.Duration // time within which the gateway must be closed
		logged bool
	}{{"lives on", time.Millisecond, true}, {"has ended", time.Hour, false}} {
		t.Run(c.name, func(t *testing.T) {
			said := make(chan string, 1)
			n := newNetwork(t, Config{downBound: c.bound, Log: slog.New(slog.NewTextHandler(lines(said), nil))})
			n.guest.Close()
			if !c.logged {
				n.Gateway.Close()
				if len(said) > 0 {
					t.Errorf("said %q", <-said)
				}
				return
			}
			select {
			case line := <-said:
				if !strings.Contains(line, "cut off") {
					t.Errorf("said %q", line)
				}
			case <-time.After(patience):
				t.Error("nothing was said")
			}
		})
	}
}

// lines is an io.Writer that sends each line to a channel.
type lines chan<- string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// checkLeaks compares goroutines, descriptors and frames at the end of the test with
// those at the time of the call.
func checkLeaks(t *testing.T) {
	t.Helper()
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors(t)
	link.Track(true)
	t.Cleanup(func() {
		eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= goroutines })
		eventually(t, "descriptors are left", func() bool { return openDescriptors(t) <= descriptors })
		eventually(t, "frames are left", func() bool { return link.Outstanding() == 0 })
		if t.Failed() {
			stacks := make([]byte, 1<<18)
			t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
		}
		link.Track(false)
	})
}

func openDescriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// eventually waits for a condition that other goroutines establish.
func eventually(t *testing.T, failure string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); runtime.Gosched() {
		if time.Since(start) > patience {
			t.Fatal(failure)
		}
	}
}

// wantCounter waits until a counter has reached a value.
func (n *network) wantCounter(which Counter, want uint64) {
	n.t.Helper()
	var got uint64
	for start := time.Now(); time.Since(start) < patience; runtime.Gosched() {
		c := n.Counters()
		if got = c.Get(which); got >= want {
			break
		}
	}
	if got != want {
		c := n.Counters()
		n.t.Errorf("%v is %d, want %d; all:\n%v", which, got, want, c.String())
	}
}

// loopback returns a Config for guests that use servers of the test.
func loopback() Config { return Config{HostLoopback: true} }

// gatewayPort returns the address at which the guest reaches a port of the host's
// loopback network.
func gatewayPort(a net.Addr) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("10.0.2.2"), netip.MustParseAddrPort(a.String()).Port())
}

// dial connects the guest to a listener of the host.
func (n *network) dial(l net.Listener) *stack.TCPConn {
	n.t.Helper()
	c, err := n.guest.Dial("tcp", gatewayPort(l.Addr()).String())
	if err != nil {
		n.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return c.(*stack.TCPConn)
}

// listen returns a listener of the host.
func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// accept accepts a connection.
func accept(t *testing.T, l *net.TCPListener) *net.TCPConn {
	t.Helper()
	l.SetDeadline(time.Now().Add(patience))
	c, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// pair returns both ends of a connection through the gateway.
func (n *network) pair() (guest *stack.TCPConn, host *net.TCPConn) {
	n.t.Helper()
	l := listen(n.t)
	guest = n.dial(l)
	return guest, accept(n.t, l)
}

// send writes a short message.
func send(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatalf("writing %q: %v", text, err)
	}
}

// want reads a short message and compares it.
func want(t *testing.T, r io.Reader, text string) {
	t.Helper()
	buf := make([]byte, len(text))
	if n, err := io.ReadFull(r, buf); err != nil || string(buf) != text {
		t.Fatalf("read %q, %v, want %q", buf[:n], err, text)
	}
}

// wantEOF checks that the stream has ended.
func wantEOF(t *testing.T, r io.Reader) {
	t.Helper()
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Fatalf("read %d bytes, %v, want the end", n, err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	echo := listenUDP(t)
	c := loopback()
	c.Forwards = []Forward{{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.15:80")}, {Proto: "udp", Guest: netip.MustParseAddrPort("10.0.2.15:53")}}
	n := newNetwork(t, c)
	guest, host := n.pair()
	defer guest.Close()
	defer host.Close()
	send(t, guest, "a connection that is open")
	want(t, host, "a connection that is open")
	u, err := n.guest.Dial("udp", gatewayPort(echo.LocalAddr()).String())
	if err != nil {
		t.Fatal(err)
	}
	send(t, u, "a flow")
	n.wantCounter(UDPOut, 1)
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if _, err := host.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("the host's connection ended with %v, not with a reset", err)
	}
	if err := n.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestNewThatFailsLeavesNothing(t *testing.T) {
	checkLeaks(t)
	taken := listen(t)
	dev, _ := pipe.New(pipe.Config{})
	_, err := New(Config{Device: dev, Forwards: []Forward{
		{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.15:80")},
		{Proto: "udp", Guest: netip.MustParseAddrPort("10.0.2.15:80")},
		{Proto: "tcp", Host: netip.MustParseAddrPort(taken.Addr().String()), Guest: netip.MustParseAddrPort("10.0.2.15:81")},
	}})
	if err == nil {
		t.Fatal("the port is taken, and New does not say so")
	}
	if _, err := dev.Queues()[0].Recv(make([]*link.Frame, 1)); err != link.ErrClosed {
		t.Errorf("the device is open: %v", err)
	}
}

// ctx returns a context that ends when a test has waited too long.
func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return c
}
