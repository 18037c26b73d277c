//go:build linux

package interop

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestRefused checks that a closed port refuses connections.
func TestRefused(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		c, err := d.client.dial(l.ctx, "tcp", d.server.at(9))
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v, %v", d, c, err)
		}
	}
}

// TestUDPRefused checks that a connected socket gets an error by ICMP if its peer does not exist, and
// can continue.
func TestUDPRefused(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		server, err := d.server.listenPacket("udp4", d.server.at(0))
		l.must(err)
		address := server.LocalAddr().String()
		server.Close()
		c, err := d.client.dial(l.ctx, "udp4", address)
		l.must(err)
		defer c.Close()
		l.must(c.SetDeadline(l.until()))
		for _, word := range []string{"anybody", "really nobody"} {
			if _, err := io.WriteString(c, word); err != nil {
				t.Errorf("%s: write: %v", d, err)
			}
			if n, err := c.Read(make([]byte, 100)); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s: read: %d, %v", d, n, err)
			}
		}
		server, err = d.server.listenPacket("udp4", address)
		l.must(err)
		defer server.Close()
		l.must(server.SetDeadline(l.until()))
		if err := there(c, server, 10); err != nil {
			t.Errorf("%s: when somebody is there: %v", d, err)
		}
	}
}

// TestHostUnreachable checks that connecting to a host that does not answer ARP fails as unreachable, after
// three requests a second apart. It also shows that neither end answers for an address that is not its
// own.
func TestHostUnreachable(t *testing.T) {
	l := newLab(t, setup{})
	nobody := host{addr: l.loam.addr.Next()}
	var both sync.WaitGroup
	for _, h := range []host{l.loam, l.linux} {
		both.Go(func() {
			c, err := h.dial(l.ctx, "tcp", nobody.at(80))
			if !errors.Is(err, syscall.EHOSTUNREACH) {
				t.Errorf("%s: %v, %v", h.name, c, err)
			}
		})
	}
	both.Wait()
}

// TestNoRoute checks that a network without a route is unreachable.
func TestNoRoute(t *testing.T) {
	l := newLab(t, setup{})
	for _, h := range []host{l.loam, l.linux} {
		c, err := h.dial(l.ctx, "tcp", "192.0.2.1:80")
		if !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("%s: %v, %v", h.name, c, err)
		}
	}
}

// TestDialCanceled checks that cancelling an attempt whose SYNs are dropped leaves nothing behind.
func TestDialCanceled(t *testing.T) {
	l := newLab(t, setup{})
	l.meet()
	l.ip("link", "set", l.tap, "down")
	ctx, cancel := context.WithCancel(l.ctx)
	done := make(chan error, 1) // the goroutine sends once
	go func() {
		_, err := l.loam.dial(ctx, "tcp", l.linux.at(80))
		done <- err
	}()
	l.eventually("a SYN is lost", func() bool { return l.ifc.Device().Stats().TxDropped > 0 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestHalfClose checks that an end that has ended its stream still receives the other stream.
func TestHalfClose(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		client, server := l.connect(d)
		l.must(client.CloseWrite())
		if n, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: the end is %d, %v", d, n, err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: writing after the end: %v", d, err)
		}
		if err := transfer(server, client, 5<<20); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// TestReset checks that closing with a linger time of zero resets the connection.
func TestReset(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		client, server := l.connect(d)
		l.must(client.SetLinger(0))
		l.must(client.Close())
		if n, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: reading: %d, %v", d, n, err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: writing: %v", d, err)
		}
	}
}

// TestResetUnread checks that closing with unread data resets the connection (RFC 2525 section 2.17),
// so that the sender knows.
func TestResetUnread(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		client, server := l.connect(d)
		if _, err := client.Write([]byte("unread")); err != nil {
			t.Fatal(err)
		}
		one := make([]byte, 1)
		if _, err := server.Read(one); err != nil {
			t.Fatal(err)
		}
		l.must(server.Close())
		if n, err := client.Read(one); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %d, %v", d, n, err)
		}
	}
}

// TestStackCloses checks that closing a stack resets its connections.
func TestStackCloses(t *testing.T) {
	l := newLab(t, setup{})
	_, atLinux := l.connect(l.directions()[0])
	l.must(l.stack.Close())
	if n, err := atLinux.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d, %v", n, err)
	}
}

// TestTraceroute checks that traceroute, which probes with datagrams to closed ports, finds Loam one
// hop away.
func TestTraceroute(t *testing.T) {
	l := newLab(t, setup{})
	out := l.run("traceroute", "-n", "-q", "2", "-w", "5", l.loam.addr.String())
	if !strings.Contains(out, " 1  "+l.loam.addr.String()+" ") {
		t.Error(out)
	}
}
