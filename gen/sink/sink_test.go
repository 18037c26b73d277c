package sink

import (
	"testing"
	"testing/synctest"
	"time"

	"loam/gen/frame"
	"loam/gen/measure"
	"loam/gen/method"
	"loam/link"
	"loam/link/fault"
	"loam/link/pipe"
)

// pipeReceiver is a method.Receiver on a queue of an in-memory device.
type pipeReceiver struct {
	// in carries received frames. The goroutine of newPipeReceiver sends on it, and closes it when the device is
	// closed.
	in chan *link.Frame
}

func newPipeReceiver(q link.Queue) *pipeReceiver {
	r := &pipeReceiver{in: make(chan *link.Frame, 1024)}
	go func() {
		defer close(r.in)
		fs := make([]*link.Frame, link.BatchSize)
		for {
			n, err := q.Recv(fs)
			for _, f := range fs[:n] {
				r.in <- f
			}
			if err != nil {
				return
			}
		}
	}()
	return r
}

func (r *pipeReceiver) Receive(timeout time.Duration, got func([]byte, int64)) (n int, err error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case f, ok := <-r.in:
		if ok {
			got(f.Bytes(), 0)
			f.Free()
			return 1, nil
		}
		<-timer.C
	case <-timer.C:
	}
	return 0, nil
}

func (r *pipeReceiver) Drops() uint64 { return 0 }
func (r *pipeReceiver) Close() error  { return nil }

var _ method.Receiver = (*pipeReceiver)(nil)

// across sends frames of some flows over a wire with faults into a sink.
func across(t *testing.T, c fault.Config, frames, flows int) (Report, fault.Counts) {
	t.Helper()
	p, err := frame.Compile(frame.UDP(false), frame.Options{Sizes: frame.FixedSize(64), Reserve: measure.TagLen})
	if err != nil {
		t.Fatal(err)
	}
	a, b := pipe.New(pipe.Config{})
	faulty := fault.New(a, c)
	s := Start(newPipeReceiver(b.Queues()[0]))
	q, f := faulty.Queues()[0], p.Filler(0, 1)
	for i := range frames {
		fr := link.NewFrame(p.MaxLen())
		fr.Resize(f.Next(fr.Bytes()))
		measure.Tag{Stream: uint16(NewID(1, 0, i%flows)), Sequence: uint32(i / flows), Sent: time.Now().UnixNano()}.Put(f.Body(fr.Bytes()))
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
	r, err := s.Stop()
	if err != nil {
		t.Error(err)
	}
	b.Close()
	return r, sent
}

// The sink reports exactly the losses, duplicates and delays that a wire adds, for each flow. The test uses fake
// time.
func TestFaultsAreReported(t *testing.T) {
	for name, d := range map[string]fault.Direction{
		"nothing":             {},
		"loss":                {Loss: 0.02},
		"duplicates":          {Duplicate: 0.03},
		"loss and duplicates": {Loss: 0.05, Duplicate: 0.05},
		"delay":               {Delay: 7 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const frames = 10_000
				r, injected := across(t, fault.Config{Seed: 3, Send: d}, frames, 2)
				if len(r.Flows) != 2 || r.Other != 0 || r.Untracked != 0 {
					t.Fatalf("%+v", r)
				}
				if lost := frames - r.Total.Unique; lost != injected.Lost || r.Total.Duplicates != injected.Duplicated || r.Total.Reordered != 0 {
					t.Errorf("%+v, injected %+v", r.Total, injected)
				}
				if got := r.Flows[0].Unique + r.Flows[1].Unique; got != r.Total.Unique {
					t.Errorf("the flows have %d frames, together they have %d", got, r.Total.Unique)
				}
				// The histogram has three significant digits.
				if l := r.Total.Latency; l.Min < d.Delay*999/1000 || l.P50 > d.Delay*1001/1000 || l.P999 > d.Delay*1001/1000+time.Millisecond {
					t.Errorf("%+v, every frame was held up for %v", l, d.Delay)
				}
			})
		})
	}
}

// Frames reordered by a wire are counted within their flow.
func TestReorderingIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, injected := across(t, fault.Config{Seed: 3, Send: fault.Direction{Reorder: 0.01}}, 10_000, 2)
		// A frame that swaps places with a frame of the other flow is still in order in its own flow.
		if r.Total.Lost != 0 || r.Total.Reordered == 0 || r.Total.Reordered > injected.Reordered || r.Total.Extent == 0 {
			t.Errorf("%+v, injected %+v", r.Total, injected)
		}
	})
}

// The sink reports its counts while it runs and after it has stopped.
func TestReportAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe.New(pipe.Config{})
		s := Start(newPipeReceiver(b.Queues()[0]))
		f := link.NewFrame(60)
		clear(f.Bytes())
		a.Queues()[0].Send([]*link.Frame{f})
		synctest.Wait()
		time.Sleep(time.Second)
		if r := s.Report(); r.Other != 1 || r.Total.Received != 0 || s.Received() != 1 {
			t.Errorf("%+v", r)
		}
		a.Close()
		b.Close()
		last, _ := s.Stop()
		if again := s.Report(); again.Other != last.Other || again.Elapsed != last.Elapsed {
			t.Errorf("%+v after the end, %+v at the end", again, last)
		}
	})
}

// A tag is found after all headers that a template can contain.
func TestFindsTags(t *testing.T) {
	for _, text := range []string{
		"eth; ip; udp",
		"eth; ip6; udp",
		"eth; ip; tcp",
		"eth; ip; icmp",
		"eth; ip6; icmp6",
		"eth; vlan; ip; udp",
		"eth; qinq; vlan; ip6; tcp",
		"eth; mpls; mpls; ip; udp",
		"eth; mpls; ip6; udp",
		"eth; ip; gre; ip; udp",
		"eth; ip; gre key=1 seq=2; eth; ip6; udp",
		"eth; ip; udp; vxlan; eth; vlan; ip; udp",
		"eth; ip; udp; geneve; eth; vlan; ip; udp",
		"eth; ip6; udp; geneve; ip6; tcp",
		"eth; ip; udp; gtpu; ip6; udp",
		"eth; ip; ip6; udp",
		"eth; ip6; ip; udp",
		"eth",
		"eth type=0x1234",
		"eth; vlan",
		"eth; mpls",
		"eth; arp",
		"eth; ip",
		"eth; ip6 proto=133",
		"eth; ip; sctp; sctpdata",
		"eth; ip6; udp; sctp; sctpdata",
		"eth; ip; sctp",
		"eth; ip; gre",
	} {
		tpl, err := frame.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := frame.Compile(tpl, frame.Options{Sizes: frame.FixedSize(256), Reserve: measure.TagLen})
		if err != nil {
			t.Fatal(err)
		}
		f := p.Filler(0, 1)
		b := make([]byte, p.MaxLen())
		b = b[:f.Next(b)]
		want := measure.Tag{Stream: 5, Sequence: 77, Sent: 1234}
		want.Put(f.Body(b))
		if got, ok := find(b); !ok || got != want {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
}

// Frames of flows beyond MaxTracked are counted.
func TestFlowsAreBounded(t *testing.T) {
	o := newOwner(&Sink{})
	b := &batch{n: batchSize}
	for round := range 3 {
		for i := range b.arrivals {
			b.arrivals[i].tag.Stream = uint16(i + round*batchSize)
		}
		o.take(b)
	}
	if r := o.report(); len(r.Flows) != MaxTracked || r.Untracked != 3*batchSize-MaxTracked {
		t.Errorf("%d flows, %d untracked", len(r.Flows), r.Untracked)
	}
}

func TestID(t *testing.T) {
	id := NewID(31, 30, 63)
	if id.Stream() != 31 || id.Queue() != 30 || id.Flow() != 63 || id.String() != "31/30/63" {
		t.Error(id)
	}
}

// FuzzFind checks that find handles malformed frames without a panic.
func FuzzFind(f *testing.F) {
	for _, text := range []string{"eth; vlan; ip; udp", "eth; mpls; ip6; udp", "eth; ip; gre; eth; ip; udp; vxlan; eth; ip; tcp", "eth; ip; udp; geneve; ip; udp; gtpu; ip; udp"} {
		tpl, _ := frame.Parse(text)
		p, err := frame.Compile(tpl, frame.Options{Sizes: frame.FixedSize(256)})
		if err != nil {
			f.Fatal(err)
		}
		b := make([]byte, p.MaxLen())
		f.Add(b[:p.Filler(0, 1).Next(b)])
	}
	f.Fuzz(func(_ *testing.T, b []byte) { find(b) })
}
