package usernet

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"

	"loam/link/pipe"
	"loam/stack"
)

// benchNetwork returns a gateway with a guest, on a pipe with the features of a
// virtio-net device, and a connection from a program of the guest to one of the host.
func benchNetwork(b *testing.B) (guest *stack.TCPConn, host *net.TCPConn) {
	near, far := pipe.New(pipe.Config{Offloads: pipe.AllOffloads})
	g, err := New(Config{Device: near, HostLoopback: true})
	if err != nil {
		b.Fatal(err)
	}
	s := stack.New(stack.Config{})
	b.Cleanup(func() { g.Close(); s.Close() })
	if _, err = s.Attach(far, stack.InterfaceConfig{Name: "eth0"}); err == nil {
		err = s.AddAddress("eth0", netip.MustParsePrefix("10.0.2.15/24"))
	}
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	c, err := s.Dial("tcp", gatewayPort(l.Addr()).String())
	if err != nil {
		b.Fatal(err)
	}
	if host, err = l.AcceptTCP(); err != nil {
		b.Fatal(err)
	}
	return c.(*stack.TCPConn), host
}

// benchLoopback returns a connection between two programs of the host, without a gateway, for comparison.
func benchLoopback(b *testing.B) (client, server *net.TCPConn) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	client, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		b.Fatal(err)
	}
	if server, err = l.AcceptTCP(); err != nil {
		b.Fatal(err)
	}
	return client, server
}

// move sends b.N chunks.
func move(b *testing.B, from, to net.Conn) {
	const chunk = 128 << 10
	done := make(chan error, 1) // receives one value, when everything has been read
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(to, int64(b.N)*chunk), make([]byte, chunk))
		done <- err
	}()
	b.SetBytes(chunk)
	b.ReportAllocs()
	b.ResetTimer()
	p := make([]byte, chunk)
	for range b.N {
		if _, err := from.Write(p); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	from.Close()
	to.Close()
}

func BenchmarkTCP(b *testing.B) {
	b.Run("out", func(b *testing.B) {
		guest, host := benchNetwork(b)
		move(b, guest, host)
	})
	b.Run("in", func(b *testing.B) {
		guest, host := benchNetwork(b)
		move(b, host, guest)
	})
	b.Run("loopback", func(b *testing.B) {
		client, server := benchLoopback(b)
		move(b, client, server)
	})
}

func BenchmarkTCPRoundTrip(b *testing.B) {
	for _, size := range []int{1, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			guest, host := benchNetwork(b)
			go func() {
				io.Copy(host, host)
				host.Close()
			}()
			p := make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := guest.Write(p); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(guest, p); err != nil {
					b.Fatal(err)
				}
			}
			guest.Close()
		})
	}
}
