package shape_test

import (
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/linktest"
	"loam/link/pipe"
	"loam/link/shape"
	"loam/wire"
)

func TestConformance(t *testing.T) {
	limit := shape.Limit{Rate: 10_000_000_000, Queue: 1 << 20}
	for name, c := range map[string]shape.Config{
		"none": {}, "send": {Send: limit}, "both": {Send: limit, Recv: limit},
	} {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, func(testing.TB) (a, b link.Device) {
				a, b = pipe.New(pipe.Config{Queues: 2})
				return shape.New(a, c), b
			}, linktest.NeverShort)
		})
	}
}

// arrival is a frame that was delivered.
type arrival struct {
	at    time.Duration
	bytes int
}

// through sends frames of the given lengths at once into a device and records when they arrive at
// the other end. It runs in fake time.
func through(t *testing.T, from, to link.Device, lengths ...int) (got []arrival) {
	t.Helper()
	start := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fs := make([]*link.Frame, link.BatchSize)
		for {
			n, err := to.Queues()[0].Recv(fs)
			if err != nil {
				return
			}
			for _, f := range fs[:n] {
				got = append(got, arrival{time.Since(start), f.Len()})
				f.Free()
			}
		}
	}()
	for _, n := range lengths {
		q, f := from.Queues()[0], []*link.Frame{linktest.Plain(link.Ethernet, n, 0)}
		for {
			sent, err := q.Send(f)
			if err != nil {
				t.Fatal(err)
			}
			if sent == 1 {
				break
			}
			<-q.Room()
		}
	}
	time.Sleep(time.Hour)
	from.Close()
	to.Close()
	<-done
	return got
}

func same(n, length int) (all []int) {
	for range n {
		all = append(all, length)
	}
	return all
}

// At 1 Mbit/s a frame of 1250 bytes takes 10 ms, in each direction independently.
func TestRate(t *testing.T) {
	for _, direction := range []string{"send", "recv"} {
		synctest.Test(t, func(t *testing.T) {
			limit := shape.Limit{Rate: 1_000_000, Burst: 1250, Queue: 1 << 20}
			a, b := pipe.New(pipe.Config{})
			var got []arrival
			if direction == "send" {
				got = through(t, shape.New(a, shape.Config{Send: limit}), b, same(50, 1250)...)
			} else {
				got = through(t, b, shape.New(a, shape.Config{Recv: limit}), same(50, 1250)...)
			}
			if len(got) != 50 {
				t.Fatalf("%s: %d frames arrived, want 50", direction, len(got))
			}
			for i, g := range got {
				if want := time.Duration(i) * 10 * time.Millisecond; g.at != want {
					t.Errorf("%s: frame %d arrived after %v, want %v", direction, i, g.at, want)
				}
			}
		})
	}
}

// After a pause, a burst leaves at once. Then the rate applies again.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe.New(pipe.Config{})
		d := shape.New(a, shape.Config{Send: shape.Limit{Rate: 8_000_000, Burst: 10_000, Queue: 1 << 20}})
		got := through(t, d, b, same(12, 1000)...)
		for i, g := range got {
			if want := time.Duration(max(0, i-9)) * time.Millisecond; g.at != want {
				t.Errorf("frame %d arrived after %v, want %v", i, g.at, want)
			}
		}
	})
}

// Rounding loses nothing: a rate that divides no frame evenly is exact in the long run.
func TestRateIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe.New(pipe.Config{})
		const rate, count, length = 7_777_777, 1000, 999
		d := shape.New(a, shape.Config{Send: shape.Limit{Rate: rate, Burst: 1, Queue: 1 << 30}})
		got := through(t, d, b, same(count, length)...)
		want := time.Duration((count - 1) * length * 8 * int(time.Second) / rate)
		if last := got[len(got)-1]; len(got) != count || last.at < want || last.at > want+1 {
			t.Errorf("%d frames in %v, want %d in %v", len(got), last.at, count, want)
		}
	})
}

// Frames that do not fit into the queue are dropped and counted. The others stay in order.
func TestDropTail(t *testing.T) {
	for name, limit := range map[string]shape.Limit{
		"bytes": {Rate: 1_000_000, Burst: 1, Queue: 10_000},
		"time":  {Rate: 1_000_000, Burst: 1, QueueTime: 80 * time.Millisecond}, // equals 10,000 bytes
	} {
		synctest.Test(t, func(t *testing.T) {
			link.Track(true)
			defer link.Track(false)
			a, b := pipe.New(pipe.Config{})
			d := shape.New(a, shape.Config{Send: limit})
			got := through(t, d, b, same(100, 1000)...)
			// One frame leaves at once. The queue holds 9 or 10 others, depending on when that frame left.
			s := d.Stats()
			if n := len(got); n != 10 && n != 11 || s.TxDropped != uint64(100-n) || s.TxFrames != 100 {
				t.Errorf("%s: %d frames arrived, Stats %+v", name, n, s)
			}
			if n := link.Outstanding(); n != 0 {
				t.Errorf("%d frames are leaked", n)
			}
		})
	}
}

// A GSO frame counts with the headers of all its segments, and is accepted even if the queue is
// shorter.
func TestGSO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe.New(pipe.Config{Offloads: pipe.AllOffloads})
		d := shape.New(a, shape.Config{Send: shape.Limit{Rate: 8_000_000, Burst: 1, Queue: 1}})
		gso := linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 10_000, GSOSize: 1000})
		d.Queues()[0].Send([]*link.Frame{gso})
		synctest.Wait() // returns when the first frame has left the queue; the link is still busy sending it
		got := through(t, d, b, 60)
		want := time.Duration(10_000+10*54) * time.Microsecond
		if len(got) != 2 || got[1].at != want {
			t.Errorf("arrived: %v; want the second after %v", got, want)
		}
	})
}

func Benchmark(b *testing.B) {
	linktest.Bench(b, func(testing.TB) (link.Device, link.Device) {
		a, peer := pipe.New(pipe.Config{})
		return shape.New(a, shape.Config{Send: shape.Limit{Rate: 1 << 50, Queue: 1 << 30}}), peer
	})
}
