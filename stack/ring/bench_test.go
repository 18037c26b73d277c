package ring

import (
	"fmt"
	"testing"
)

// BenchmarkTwoCopies makes two copies of the same size, into a buffer and out of it. That is the lower bound of
// BenchmarkSend and BenchmarkReceive.
func BenchmarkTwoCopies(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src, mid, dst := stream(0, n), make([]byte, n), make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(mid, src)
				copy(dst, mid)
			}
		})
	}
}

var sizes = []int{64, 1448, 16384, 65536}

func BenchmarkSend(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q Send
			q.SetLimit(1 << 20)
			src, dst := stream(0, n), make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				off := q.End()
				q.Write(src)
				q.ReadAt(dst, off)
				q.Release(q.End())
			}
		})
	}
}

func BenchmarkReceive(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q Receive
			src, dst := stream(0, n), make([]byte, n)
			b.SetBytes(int64(n))
			var off uint64
			for b.Loop() {
				q.WriteAt(src, off)
				off += uint64(n)
				q.Commit(off)
				q.Read(dst)
			}
		})
	}
}
