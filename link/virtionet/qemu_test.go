//go:build linux

package virtionet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"loam/driver/qtest"
	"loam/link"
	"loam/link/linktest"
	"loam/link/unixsock"
	"loam/link/virtionet"
	"loam/stack"
)

// Tests with the network cards of QEMU. Their cable is a Unix socket of the test.

// plug starts a machine with a card. It returns the card's device, the other end of its cable (a Unix socket of the
// test), and the machine.
func plug(t testing.TB, w qtest.Way, options string) (card *virtionet.Device, cable *unixsock.Device, m *qtest.Machine) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	l, err := unixsock.Listen(path, unixsock.Config{MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m, v := w.Start(t, "virtio-net", "netdev=n,mac=52:54:00:00:00:01,"+options,
		"-netdev", "stream,id=n,server=off,addr.type=unix,addr.path="+path)
	if cable, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	m.Connected(t, "n")
	if card, err = virtionet.Open(v, virtionet.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { card.Close() })
	return card, cable, m
}

// machineCard is a card whose Close also ends QEMU.
type machineCard struct {
	*virtionet.Device
	machine *qtest.Machine
}

func (c machineCard) Close() error {
	err := c.Device.Close()
	if n := c.machine.Held(); n != 0 {
		err = fmt.Errorf("%d bytes of memory are kept", n)
	}
	c.machine.Stop()
	return err
}

func TestQEMU(t *testing.T) {
	for _, w := range qtest.Ways {
		t.Run(w.Name, func(t *testing.T) {
			linktest.Run(t, func(t testing.TB) (link.Device, link.Device) {
				card, cable, m := plug(t, w, "")
				return machineCard{card, m}, cable
			}, linktest.PeerUnseen)
		})
	}
}

// Two of Loam's stacks communicate through a QEMU card: ping, and a stream in both directions.
func TestQEMUStack(t *testing.T) {
	for _, w := range qtest.Ways {
		t.Run(w.Name, func(t *testing.T) {
			card, cable, _ := plug(t, w, "")
			guest, host := host(t, card, "10.0.0.1"), host(t, cable, "10.0.0.2")
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			for _, s := range []struct {
				from *stack.Stack
				to   string
			}{{guest, "10.0.0.2"}, {host, "10.0.0.1"}} {
				if _, err := s.from.Ping(ctx, netip.MustParseAddr(s.to), 1000); err != nil {
					t.Errorf("ping %s: %v", s.to, err)
				}
			}
			echo(t, guest, host)
		})
	}
}

func host(t *testing.T, d link.Device, address string) *stack.Stack {
	t.Helper()
	s := stack.New(stack.Config{})
	t.Cleanup(func() { s.Close() })
	if _, err := s.Attach(d, stack.InterfaceConfig{Name: "eth0"}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddAddress("eth0", netip.PrefixFrom(netip.MustParseAddr(address), 24)); err != nil {
		t.Fatal(err)
	}
	return s
}

// echo sends a stream to a server that sends it back.
func echo(t *testing.T, client, server *stack.Stack) {
	t.Helper()
	l, err := server.Listen("tcp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := client.Dial("tcp", "10.0.0.2:7")
	if err != nil {
		t.Fatal(err)
	}
	const count = 200 << 10
	go func() {
		b := make([]byte, count)
		for i := range b {
			b[i] = byte(i * 7 >> 3)
		}
		c.Write(b)
		c.(*stack.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || len(got) != count {
		t.Fatalf("%d bytes came back, %v; want %d", len(got), err, count)
	}
	for i, b := range got {
		if b != byte(i*7>>3) {
			t.Fatalf("byte %d came back as %#x", i, b)
		}
	}
}

// After the machine has ended, nothing hangs.
func TestQEMUGone(t *testing.T) {
	card, cable, m := plug(t, qtest.Ways[0], "")
	defer cable.Close()
	m.Stop()
	q := card.Queues()[0]
	for range 5 {
		fs := []*link.Frame{linktest.Plain(link.Ethernet, 100, 0)}
		n, _ := q.Send(fs)
		link.FreeAll(fs[n:])
	}
	received := make(chan error, 1) // the goroutine sends once
	go func() {
		_, err := q.Recv(make([]*link.Frame, 1))
		received <- err
	}()
	if err := card.Close(); err != nil {
		t.Error(err)
	}
	if err := <-received; !errors.Is(err, link.ErrClosed) {
		t.Errorf("Recv: %v, want ErrClosed", err)
	}
}
