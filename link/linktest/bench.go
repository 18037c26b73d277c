package linktest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"loam/link"
	"loam/wire"
)

// Bench measures the cost of a device in nanoseconds per frame from one end to the other, by frame
// length and batch size. Each frame is taken from the pool and freed. It also measures the round
// trip of a single frame. For a device with the quirk NeverShort, the number of frames in transit
// is limited, because the device would lose frames otherwise.
func Bench(b *testing.B, open Make, quirks ...Quirk) {
	limit := 1 << 30
	if slices.Contains(quirks, NeverShort) {
		limit = 2 * link.BatchSize
	}
	probe, other := open(b)
	info := probe.Info()
	offloads := info.Offloads & other.Info().Offloads
	closeAll(b, probe, other)
	lengths := []int{64, min(info.MaxLen(), wire.EthernetLen+1500)}
	for _, length := range lengths {
		for _, batch := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%dB/batch%d", length, batch), func(b *testing.B) {
				benchStream(b, open, batch, limit, func() *link.Frame { return link.NewFrame(length) })
			})
		}
	}
	if offloads.Has(link.OffloadChecksum | link.OffloadTSO4) {
		for _, batch := range []int{1, 8} {
			b.Run(fmt.Sprintf("64kB/batch%d", batch), func(b *testing.B) {
				benchStream(b, open, batch, limit, largest(info))
			})
		}
	}
	b.Run("pingpong", func(b *testing.B) { benchPingPong(b, open) })
}

// largest returns a function that makes GSO frames of 64 kB. Only the headers are written; the
// payload is undefined.
func largest(info link.Info) func() *link.Frame {
	model := Unfinished(info.Medium, Transport{Protocol: wire.ProtoTCP, Payload: 65_000, GSOSize: min(1448, info.MTU-40)})
	return func() *link.Frame {
		f := link.NewFrame(model.Len())
		copy(f.Bytes(), model.Bytes()[:model.HeaderLen])
		f.Offload = model.Offload
		return f
	}
}

func closeAll(b *testing.B, ends ...link.Device) {
	b.Helper()
	for _, d := range ends {
		if err := d.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
	}
}

// benchStream sends b.N frames as fast as possible, with at most limit frames in transit. All must
// arrive.
func benchStream(b *testing.B, open Make, batch, limit int, next func() *link.Frame) {
	from, to := open(b)
	defer closeAll(b, from, to)
	medium := from.Info().Medium
	var arrived atomic.Int64
	progress := link.NewBell()
	receiver := make(chan error, 1) // the receiver sends once, when it ends
	go func() { receiver <- drain(to.Queues()[0], b.N, &arrived, progress) }()
	b.ReportAllocs()
	fs := make([]*link.Frame, batch)
	for n := 0; n < b.N; n += len(fs) {
		fs = fs[:min(batch, b.N-n)]
		for i := range fs {
			fs[i] = next()
			b.SetBytes(int64(fs[i].Len()))
			if !fs[i].NeedsChecksum {
				Fill(medium, fs[i].Bytes()[:MinLen(medium)], 0)
			}
		}
		for n+len(fs)-int(arrived.Load()) > limit {
			<-progress.C()
		}
		if _, err := push(from.Queues()[0], fs); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-receiver; err != nil {
		b.Fatal(err)
	}
}

// drain receives a number of frames (count) and frees them. It updates arrived and
// signals progress for each batch.
func drain(q link.Queue, count int, arrived *atomic.Int64, progress *link.Bell) error {
	fs := make([]*link.Frame, link.BatchSize)
	for n := 0; n < count; {
		k, err := q.Recv(fs)
		if err != nil {
			return err
		}
		link.FreeAll(fs[:k])
		n += k
		arrived.Store(int64(n))
		progress.Ring()
	}
	return nil
}

// benchPingPong sends one short frame back and forth.
func benchPingPong(b *testing.B, open Make) {
	from, to := open(b)
	ended := make(chan struct{}) // closed when the echo has ended
	go func() {
		defer close(ended)
		fs := make([]*link.Frame, 1)
		for {
			if _, err := to.Queues()[0].Recv(fs); err != nil {
				return
			}
			push(to.Queues()[0], fs)
		}
	}()
	fs := []*link.Frame{Plain(from.Info().Medium, 64, 0)}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := push(from.Queues()[0], fs); err != nil {
			b.Fatal(err)
		}
		if _, err := from.Queues()[0].Recv(fs); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	link.FreeAll(fs)
	closeAll(b, from, to)
	<-ended
}
