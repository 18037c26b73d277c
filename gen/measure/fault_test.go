package measure_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/gen/frame"
	"loam/gen/measure"
	"loam/link"
	"loam/link/fault"
	"loam/link/pipe"
	"loam/wire"
)

// Every fault that link/fault injects is counted exactly. The test uses a pipe and fake time.
func TestInjectedFaultsAreCountedExactly(t *testing.T) {
	for name, d := range map[string]fault.Direction{
		"loss":                {Loss: 0.02},
		"duplicates":          {Duplicate: 0.03},
		"reordering":          {Reorder: 0.02},
		"loss and duplicates": {Loss: 0.05, Duplicate: 0.05},
		"loss and reordering": {Loss: 0.01, Reorder: 0.01},
		"all at once":         {Loss: 0.01, Duplicate: 0.01, Reorder: 0.01},
		"delay":               {Delay: 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const frames = 20_000
				tr, counts := across(t, d, frames)
				s := tr.Stats()
				reordered := s.Reordered
				if d.Duplicate > 0 && d.Reorder > 0 && reordered < counts.Reordered {
					// If a frame arrives twice, the second one may be the one that was held back. It counts as a
					// duplicate, not as reordered.
					reordered += min(s.Duplicates, counts.Reordered-reordered)
				}
				if lost := s.Lost(frames); lost != counts.Lost || s.Duplicates != counts.Duplicated || reordered != counts.Reordered {
					t.Errorf("counted lost %d, duplicates %d, reordered %d; injected %+v", lost, s.Duplicates, s.Reordered, counts)
				}
				if low := tr.Latency().Min(); low < int64(d.Delay)*999/1000 {
					t.Errorf("a frame took %d ns, and all are held up %d", low, d.Delay)
				}
			})
		})
	}
}

// across sends tagged frames through a pipe with faults and tracks the received frames.
func across(t *testing.T, d fault.Direction, frames int) (*measure.Tracker, fault.Counts) {
	t.Helper()
	p, err := frame.Compile(frame.UDP(false), frame.Options{Sizes: frame.FixedSize(64), Reserve: measure.TagLen})
	if err != nil {
		t.Fatal(err)
	}
	a, b := pipe.New(pipe.Config{Depth: 64})
	faulty := fault.New(a, fault.Config{Seed: 7, Send: d})
	tr := measure.NewTracker()
	done := make(chan struct{}) // closed by the receiver when it returns
	go func() {
		defer close(done)
		receive(t, b.Queues()[0], tr)
	}()
	q, f := faulty.Queues()[0], p.Filler(0, 1)
	for i := range frames {
		fr := link.NewFrame(p.MaxLen())
		fr.Resize(f.Next(fr.Bytes()))
		measure.Tag{Sequence: uint32(i), Sent: time.Now().UnixNano()}.Put(f.Body(fr.Bytes()))
		for {
			if n, err := q.Send([]*link.Frame{fr}); err != nil {
				t.Fatal(err)
			} else if n == 1 {
				break
			}
			<-q.Room()
		}
		time.Sleep(10 * time.Microsecond)
	}
	time.Sleep(time.Second) // waits until delayed frames have arrived
	sent, _ := faulty.Counts()
	faulty.Close()
	<-done
	b.Close()
	return tr, sent
}

func receive(t *testing.T, q link.Queue, tr *measure.Tracker) {
	fs := make([]*link.Frame, link.BatchSize)
	for {
		n, err := q.Recv(fs)
		for _, fr := range fs[:n] {
			payload := fr.Bytes()[wire.EthernetLen+wire.IPv4MinLen:]
			if !wire.UDPChecksumOK(payload, addr(1), addr(2)) {
				t.Error("the tag spoiled the checksum of its datagram")
			}
			if tag, ok := measure.ParseTag(payload[wire.UDPLen:]); ok {
				tr.Arrive(time.Now().UnixNano(), tag, fr.Len())
			}
			fr.Free()
		}
		if err != nil {
			return
		}
	}
}

// addr returns an address of package frame's default template.
func addr(last byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, last}) }
