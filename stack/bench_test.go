package stack_test

import (
	"fmt"
	"io"
	"net"
	"testing"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
)

// BenchmarkBulk measures bulk throughput over a pipe: with an MTU of 1500, and with segmentation and checksum offloads.
// With the offloads, large segments cross the pipe unsegmented and without checksums.
func BenchmarkBulk(b *testing.B) {
	for _, c := range []struct {
		name string
		pipe pipe.Config
	}{{"mtu1500", pipe.Config{}}, {"offload", pipe.Config{Offloads: pipe.AllOffloads}}} {
		for _, shards := range []int{1, 2} {
			b.Run(c.name+"/shards="+string(rune('0'+shards)), func(b *testing.B) {
				client, server := connected(b, stack.Config{Shards: shards}, c.pipe, false)
				go io.Copy(io.Discard, server)
				chunk := make([]byte, 64<<10)
				b.SetBytes(int64(len(chunk)))
				b.ReportAllocs()
				b.ResetTimer()
				for b.Loop() {
					if _, err := client.Write(chunk); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkPingPong sends one byte in each direction, one after the other.
func BenchmarkPingPong(b *testing.B) {
	for _, shards := range []int{1, 2} {
		b.Run("shards="+string(rune('0'+shards)), func(b *testing.B) {
			client, server := connected(b, stack.Config{Shards: shards}, pipe.Config{}, false)
			go io.Copy(server, server)
			one := make([]byte, 1)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if _, err := client.Write(one); err != nil {
					b.Fatal(err)
				}
				if _, err := client.Read(one); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCorked writes with TCP_CORK. nginx writes the header and the body of a reply, and then clears the option.
func BenchmarkCorked(b *testing.B) {
	set := func(b *testing.B, c net.Conn, on bool) {
		if err := c.(*stack.TCPConn).SetOptions(func(o *stack.TCPOptions) { o.Cork = on }); err != nil {
			b.Fatal(err)
		}
	}
	for _, size := range []int{16, 16 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			client, server := connected(b, stack.Config{Shards: 1}, pipe.Config{}, false)
			go io.Copy(io.Discard, server)
			set(b, client, true)
			chunk := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := client.Write(chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("reply", func(b *testing.B) {
		client, server := connected(b, stack.Config{Shards: 1}, pipe.Config{}, false)
		header, body, reply := make([]byte, 240), make([]byte, 1024), make([]byte, 1264)
		for b.Loop() {
			set(b, client, true)
			client.Write(header)
			client.Write(body)
			set(b, client, false)
			if _, err := io.ReadFull(server, reply); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkConnect opens, accepts and closes a connection.
func BenchmarkConnect(b *testing.B) {
	pr := newPair(b, stack.Config{}, pipe.Config{})
	link.Track(false)
	ring.Track(false)
	l, err := pr.b.Listen("tcp", "10.0.0.2:80")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		c, err := pr.a.Dial("tcp", "10.0.0.2:80")
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
