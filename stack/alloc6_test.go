//go:build !race

package stack_test

import (
	"io"
	"testing"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
)

// Sending and receiving over IPv6 allocates as little as over IPv4. See alloc_test.go.

func TestAllocsTCP6(t *testing.T) {
	pr := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
	link.Track(false)
	ring.Track(false)
	client, server, _, err := join(pr.a, pr.b, "[2001:db8::2]:80")
	if err != nil {
		t.Fatal(err)
	}
	go io.CopyBuffer(struct{ io.Writer }{server}, struct{ io.Reader }{server}, make([]byte, 8192))
	chunk, buf := make([]byte, 4000), make([]byte, 4000)
	wantNoAllocs(t, "4000 bytes there and back over TCP and IPv6", 500, func() {
		if _, err := client.Write(chunk); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, buf); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAllocsUDP6(t *testing.T) {
	pr := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
	link.Track(false)
	ring.Track(false)
	server, err := pr.b.ListenUDP(mustAddrPort("[::]:53"), stack.UDPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := pr.a.Dial("udp", "[2001:db8::2]:53")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2000)
	go func() {
		b := make([]byte, 2000)
		for {
			n, from, err := server.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			server.WriteToUDPAddrPort(b[:n], from)
		}
	}()
	wantNoAllocs(t, "a datagram there and back over IPv6", 500, func() {
		if _, err := client.Write(buf[:100]); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(buf); err != nil {
			t.Fatal(err)
		}
	})
}
