package stack

import (
	"net"
	"sync/atomic"
	"testing"
)

// loopbackPair returns a stack, and a socket on its loopback that is connected to another one.
func loopbackPair(t testing.TB, c Config) (s *Stack, client net.Conn, server net.PacketConn) {
	t.Helper()
	s = New(c)
	t.Cleanup(func() { s.Close() })
	server, err := s.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err = s.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return s, client, server
}

// A datagram to this host is sent by the goroutine that writes it. The only goroutine of the stack that wakes for it is
// the receiver of the loopback interface.
func TestLoopbackDatagramWakesOnce(t *testing.T) {
	var wakes atomic.Int64
	_, client, server := loopbackPair(t, Config{Resumed: func() { wakes.Add(1) }})
	const count = 400
	before := wakes.Load()
	b := make([]byte, 8)
	for range count {
		if _, err := client.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, _, err := server.ReadFrom(b); err != nil {
			t.Fatal(err)
		}
	}
	// If the goroutine that reads is still inside a turn of the shard (stack/turn.go) when the next datagram is sent, the
	// shard's own goroutine must be woken to send the datagram. So some datagrams cost two wakes.
	if n := wakes.Load() - before; n > count*3/2 {
		t.Errorf("%d wakes for %d datagrams", n, count)
	}
}

// BenchmarkLoopbackDatagrams measures a round trip over the loopback, and a sender that does not wait.
func BenchmarkLoopbackDatagrams(b *testing.B) {
	b.Run("pingpong", func(b *testing.B) {
		_, client, server := loopbackPair(b, Config{})
		go func() {
			p := make([]byte, 64)
			for {
				n, from, err := server.ReadFrom(p)
				if err != nil {
					return
				}
				server.WriteTo(p[:n], from)
			}
		}()
		p := make([]byte, 64)
		for b.Loop() {
			client.Write(p)
			client.Read(p)
		}
	})
	b.Run("flood", func(b *testing.B) {
		_, client, server := loopbackPair(b, Config{})
		var received atomic.Int64
		go func() {
			p := make([]byte, 2048)
			for {
				if _, _, err := server.ReadFrom(p); err != nil {
					return
				}
				received.Add(1)
			}
		}()
		p := make([]byte, 1000)
		for b.Loop() {
			client.Write(p)
		}
		b.ReportMetric(float64(received.Load())/b.Elapsed().Seconds(), "received/s")
	})
}
