package ring

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
)

// Tests for the race detector: program and shard are two goroutines that poll as fast as they can.

const total = 4 << 20

func TestSendConcurrently(t *testing.T) {
	track(t)
	var q Send
	q.SetLimit(100000)
	var wg sync.WaitGroup
	wg.Go(func() { // the goroutine that plays the program
		for off, size := uint64(0), 1; off < total; size = size*3%20000 + 1 {
			n := q.Write(stream(off, min(size, int(total-off))))
			off += uint64(n)
			if n == 0 {
				runtime.Gosched()
			}
		}
	})
	wg.Go(func() { // the shard: sends new bytes, some of them twice
		var una, next uint64
		p := make([]byte, 9000)
		for una < total {
			n := min(uint64(len(p)), q.End()-next)
			q.ReadAt(p[:n], next)
			if !bytes.Equal(p[:n], stream(next, int(n))) {
				t.Errorf("bytes at %d differ", next)
				return
			}
			if next += n; n == 0 {
				una = next
			}
			q.Release(una)
			if next > una+50000 {
				una, next = una+30000, una+30000
			}
		}
		q.Release(una)
	})
	wg.Wait()
}

// The program may read the room while the shard changes it.
func TestRoomConcurrently(t *testing.T) {
	track(t)
	const limit = 10000
	var q Send
	q.SetLimit(limit)
	var wg sync.WaitGroup
	wg.Go(func() {
		for q.Limit() > 0 {
			q.Write(stream(q.End(), 700))
			if n := q.Room(); n < 0 || n > limit {
				t.Errorf("room for %d bytes", n)
			}
		}
	})
	wg.Go(func() {
		for i := range 2000 {
			q.SetLimit(1 + i*7%limit)
			q.Release(q.End())
			runtime.Gosched()
		}
		q.Reset()
		q.SetLimit(limit)
	})
	wg.Wait()
	if q.Room() != 0 || q.Len() != 0 {
		t.Error("a queue that is given up takes bytes")
	}
}

// overwriter is memory that is overwritten when it is freed.
type overwriter []byte

func (p overwriter) Free() { clear(p) }

func TestReceiveConcurrently(t *testing.T) {
	track(t)
	var q Receive
	const window = 100000
	var wg sync.WaitGroup
	wg.Go(func() { // the shard: each pair of segments in reverse order
		const half = 1460
		for off, turn := uint64(0), 0; off < total; turn++ {
			if off+2*half > q.Consumed()+window {
				runtime.Gosched()
				continue
			}
			if turn%3 == 0 {
				p := stream(off, int(min(half, total-off)))
				if q.Lend(p, off, overwriter(p)) {
					off += uint64(len(p))
					q.Commit(off)
					continue
				}
			}
			first := int(min(half, total-off))
			second := int(min(half, total-off-uint64(first)))
			q.WriteAt(stream(off+uint64(first), second), off+uint64(first))
			q.WriteAt(stream(off, first), off)
			off += uint64(first + second)
			q.Commit(off)
		}
	})
	wg.Go(func() { // the goroutine that plays the program
		p := make([]byte, 5000)
		for off := uint64(0); off < total; {
			n := q.Peek(p, 0)
			if m := q.Read(p[:n]); m != n || !bytes.Equal(p[:n], stream(off, n)) {
				t.Errorf("bytes at %d differ", off)
				return
			}
			off += uint64(n)
			if n == 0 {
				runtime.Gosched()
			}
		}
	})
	wg.Wait()
}

func TestResetWhileTheProgramCopies(t *testing.T) {
	track(t)
	for range 200 {
		var s Send
		var r Receive
		s.SetLimit(1 << 20)
		r.WriteAt(stream(0, 60000), 0)
		r.Commit(60000)
		var wg sync.WaitGroup
		wg.Go(func() {
			for p := stream(0, 30000); s.Write(p) > 0; {
			}
		})
		wg.Go(func() {
			p := make([]byte, 7000)
			n := r.Read(p)
			if !bytes.Equal(p[:n], stream(0, n)) {
				t.Error("Reset disturbed a copy")
			}
		})
		runtime.Gosched()
		s.Reset()
		r.Reset()
		wg.Wait()
		wantHeld(t, "both queues are given up", 0)
	}
}
