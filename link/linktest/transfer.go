package linktest

import (
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"loam/internal/race"
	"loam/link"
	"loam/wire"
)

// Info returns a valid description, and the same one on every call.
func testDescribes(t *testing.T, p *pair) {
	for _, d := range []link.Device{p.a, p.b} {
		info := d.Info()
		if info.Name == "" || info.MTU <= 0 {
			t.Errorf("Info = %+v", info)
		}
		if info != d.Info() {
			t.Error("Info changes")
		}
		if len(d.Queues()) == 0 || !slices.Equal(d.Queues(), d.Queues()) {
			t.Errorf("Queues = %v", d.Queues())
		}
		for _, q := range d.Queues() {
			if room := q.Room(); q.Room() != room || cap(room) != 1 {
				t.Error("Room is not one channel with one place")
			}
		}
	}
}

// sizes returns all frame lengths that arrive unchanged from device d. For a large MTU it returns a sample.
func (p *pair) sizes(d link.Device) []int {
	var all []int
	info := d.Info()
	step, least := 1, MinLen(info.Medium)
	if p.has(Cable) {
		least = MinPadded
	}
	for n := least; n < info.MaxLen(); n += step {
		all = append(all, n)
		if n > 2048 {
			step = 997
		}
	}
	return append(all, info.MaxLen())
}

// Frames of every length arrive intact and in order, in both directions.
func testSizes(t *testing.T, p *pair) {
	for _, d := range p.directions() {
		all := p.sizes(d[0])
		f := newFlow(d[0], d[1], 0)
		f.exchange(t, len(all), 16,
			func(i int) *link.Frame { return Plain(f.medium, all[i], uint32(i)) },
			func(i int, frame *link.Frame) { checkPlain(t, f.medium, frame, all[i], uint32(i)) })
	}
}

// Batches of any size arrive intact and in order, received with any number of elements, on each
// queue.
func testBatches(t *testing.T, p *pair) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range p.directions() {
		for queue := range d[0].Queues() {
			f := newFlow(d[0], d[1], queue)
			all := p.sizes(d[0])
			for _, places := range []int{1, 3, link.BatchSize} {
				f.in = f.in[:places]
				for batch := 1; batch <= link.BatchSize; batch = batch*2 + 1 {
					length := make([]int, 2*link.BatchSize)
					for i := range length {
						length[i] = all[rng.IntN(len(all))]
					}
					f.exchange(t, len(length), batch,
						func(i int) *link.Frame { return Plain(f.medium, length[i], uint32(i)) },
						func(i int, frame *link.Frame) { checkPlain(t, f.medium, frame, length[i], uint32(i)) })
				}
			}
		}
	}
}

// unfinished returns frames that need offloads, by the name of the offload. Linux itself segments
// frames longer than 65,535 bytes including all headers.
func unfinished(info link.Info) map[string]Transport {
	mss := info.MTU - 80
	return map[string]Transport{
		"checksum TCP4": {Protocol: wire.ProtoTCP, Payload: mss},
		"checksum TCP6": {Protocol: wire.ProtoTCP, IPv6: true, Payload: mss},
		"checksum UDP4": {Protocol: wire.ProtoUDP, Payload: 1},
		"TSO4":          {Protocol: wire.ProtoTCP, Payload: 20_000, GSOSize: min(mss, 1000)},
		"TSO4 large":    {Protocol: wire.ProtoTCP, Payload: 65_000, GSOSize: min(mss, 1448)},
		"TSO4 ECN":      {Protocol: wire.ProtoTCP, Payload: 10_000, GSOSize: min(mss, 1000), ECN: true},
		"TSO6":          {Protocol: wire.ProtoTCP, IPv6: true, Payload: 20_000, GSOSize: min(mss, 1000)},
		"USO":           {Protocol: wire.ProtoUDP, Payload: 20_000, GSOSize: min(mss, 1000)},
	}
}

// If both ends offer the offload, the metadata of a frame is delivered with it.
func testMetadata(t *testing.T, p *pair) {
	for _, d := range p.directions() {
		f := newFlow(d[0], d[1], 0)
		from, to := d[0].Info(), d[1].Info()
		for name, transport := range unfinished(from) {
			probe := Unfinished(f.medium, transport)
			both := from.Carries(probe) && to.Carries(probe)
			want, bytes := probe.Offload, slices.Clone(probe.Bytes())
			probe.Free()
			if !both {
				continue
			}
			want.ChecksumValid = true
			f.exchange(t, 1, 1,
				func(int) *link.Frame { return Unfinished(f.medium, transport) },
				func(_ int, frame *link.Frame) {
					if frame.Offload != want {
						t.Fatalf("%s arrived with %+v, want %+v", name, frame.Offload, want)
					}
					if !slices.Equal(frame.Bytes(), bytes) {
						t.Fatalf("%s arrived changed: %d bytes, want %d", name, frame.Len(), len(bytes))
					}
					frame.Free()
				})
		}
	}
}

// All directions may be busy at the same time, each with its own sender and receiver.
func testDuplex(t *testing.T, p *pair) {
	const count = 2000
	var all sync.WaitGroup
	for _, d := range p.directions() {
		for queue := range d[0].Queues() {
			f := newFlow(d[0], d[1], queue)
			credit := make(chan struct{}, window) // frames in transit: the sender adds one, the receiver removes one
			all.Go(func() {
				for i := range count {
					credit <- struct{}{}
					if _, err := push(f.from, []*link.Frame{Plain(f.medium, 100+i%400, uint32(i))}); err != nil {
						t.Errorf("Send: %v", err)
						return
					}
				}
			})
			all.Go(func() {
				for i := 0; i < count; {
					n, err := f.to.Recv(f.in)
					if err != nil {
						t.Errorf("Recv: %v", err)
						return
					}
					for _, frame := range f.in[:n] {
						checkInOrder(t, f.medium, frame, i)
						i++
						<-credit
					}
				}
			})
		}
	}
	all.Wait()
}

// checkInOrder is like checkPlain, but for the frames of testDuplex. It may run outside the test's goroutine.
func checkInOrder(t *testing.T, m link.Medium, f *link.Frame, i int) {
	want := make([]byte, 100+i%400)
	Fill(m, want, uint32(i))
	if !slices.Equal(f.Bytes(), want) {
		t.Errorf("frame %d of %d bytes arrived as %d bytes: % x", i, len(want), f.Len(), head(f.Bytes()))
	}
	f.Free()
}

// Once the pools are filled, no memory is allocated.
func testAllocs(t *testing.T, p *pair) {
	if race.Enabled {
		return // the test would fail, because sync.Pool drops buffers at random under the race detector
	}
	link.Track(false)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f := newFlow(p.a, p.b, 0)
	count := min(window, 16)
	length := min(1000, p.a.Info().MaxLen())
	round := func() {
		f.exchange(t, count, count,
			func(i int) *link.Frame { return Plain(f.medium, length, uint32(i)) },
			func(_ int, frame *link.Frame) { frame.Free() })
	}
	for range 10 {
		round()
	}
	if n := testing.AllocsPerRun(50, round); n > 0 {
		t.Errorf("%v allocations for %d frames", n, count)
	}
}
