// Package sink is the other end of a generator: it receives tagged frames and
// tells, for each flow, what was lost, doubled and put out of order, and how long
// it took.
//
// Read body.go (where the tag stands in a frame), id.go (what a flow is), this
// file (the goroutines), report.go.
//
//	receiver ──arrivals──> owner of the trackers ──> reports
//	receiver ──arrivals──>
package sink

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"loam/gen/measure"
	"loam/gen/method"
)

// MaxTracked bounds the flows that are followed, each in some 300 kB. Frames of
// others are counted only.
const MaxTracked = 256

// patience is how long a receiver sits in its method: how late it notices the end.
const patience = 20 * time.Millisecond

// lastFrames bounds how long a sink goes on receiving at its end, where frames
// never cease to come.
const lastFrames = time.Second

// batchSize is how many arrivals go through a channel at once.
const batchSize = 256

// arrival is a tagged frame.
type arrival struct {
	tag   measure.Tag
	at    int64
	bytes int
}

// batch goes round between a receiver and the owner.
type batch struct {
	n        int
	arrivals [batchSize]arrival
}

// Sink receives. It is made by Start and ended by Stop.
type Sink struct {
	receivers []method.Receiver
	start     time.Time

	// full: receivers send, the owner receives, Stop closes it when the receivers
	// are gone. With no place free they wait, and their rings fill.
	full chan *batch
	// free: the owner sends, receivers receive, nobody closes. It has room for all
	// batches that there are.
	free chan *batch
	// ask: Report sends and the owner receives; each request has a channel of one
	// place for its answer.
	ask chan chan Report
	// ended is closed by the owner when it returns.
	ended chan struct{}
	last  Report // what there was at the end: read after ended is closed

	other, received atomic.Uint64
	stop            atomic.Bool
	receiving       sync.WaitGroup
	mu              sync.Mutex // guards err
	err             error
}

// Start begins to receive from receivers, which the sink owns from now on and
// closes in Stop.
func Start(receivers ...method.Receiver) *Sink {
	s := &Sink{receivers: receivers, start: time.Now(), ask: make(chan chan Report), ended: make(chan struct{})}
	const each = 16 // batches a receiver
	s.full, s.free = make(chan *batch, each*len(receivers)), make(chan *batch, each*len(receivers))
	for range cap(s.free) {
		s.free <- new(batch)
	}
	for _, r := range receivers {
		s.receiving.Go(func() { s.receive(r) })
	}
	o := owner{sink: s, trackers: map[ID]*measure.Tracker{}}
	go o.loop()
	return s
}

// receive moves tags from a receiver to the owner.
func (s *Sink) receive(r method.Receiver) {
	b, other := <-s.free, uint64(0)
	got := func(frame []byte, at int64) {
		tag, ok := find(frame)
		if !ok {
			other++
			return
		}
		if at == 0 {
			at = time.Now().UnixNano()
		}
		if b.arrivals[b.n] = (arrival{tag, at, len(frame)}); b.n == batchSize-1 {
			b.n++
			s.full <- b
			b = <-s.free
			b.n = 0
			return
		}
		b.n++
	}
	var ending time.Time // when the end began
	for {
		n, err := r.Receive(patience, got)
		s.received.Add(uint64(n))
		if other > 0 {
			s.other.Add(other)
			other = 0
		}
		if b.n > 0 {
			s.full <- b
			b = <-s.free
			b.n = 0
		}
		if err != nil {
			s.fail(err)
			return
		}
		if s.stop.Load() {
			if ending.IsZero() {
				ending = time.Now()
			}
			if n == 0 || time.Since(ending) > lastFrames {
				return
			}
		}
	}
}

func (s *Sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// Err is the first error of a receiver, which receives no more.
func (s *Sink) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Received is how many frames have come, tagged or not.
func (s *Sink) Received() uint64 { return s.received.Load() }

// Report tells what there is until now.
func (s *Sink) Report() Report {
	answer := make(chan Report, 1)
	select {
	case s.ask <- answer:
		return <-answer
	case <-s.ended:
		return s.last
	}
}

// Stop receives what is still there, closes the receivers, and returns the last
// report and the first error of a receiver.
func (s *Sink) Stop() (Report, error) {
	s.stop.Store(true)
	s.receiving.Wait()
	close(s.full)
	<-s.ended
	for _, r := range s.receivers {
		r.Close()
	}
	return s.last, s.err
}

// owner has the trackers.
type owner struct {
	sink      *Sink
	trackers  map[ID]*measure.Tracker
	untracked uint64
}

func (o *owner) loop() {
	for {
		select {
		case b, ok := <-o.sink.full:
			if !ok {
				o.sink.last = o.report()
				close(o.sink.ended)
				return
			}
			o.take(b)
			o.sink.free <- b
		case answer := <-o.sink.ask:
			answer <- o.report()
		}
	}
}

func (o *owner) take(b *batch) {
	for i := range b.n {
		a := &b.arrivals[i]
		id := ID(a.tag.Stream)
		t := o.trackers[id]
		if t == nil {
			if len(o.trackers) == MaxTracked {
				o.untracked++
				continue
			}
			t = measure.NewTracker()
			o.trackers[id] = t
		}
		t.Arrive(a.at, a.tag, a.bytes)
	}
}

func (o *owner) report() Report {
	r := Report{Elapsed: time.Since(o.sink.start), Other: o.sink.other.Load(), Untracked: o.untracked}
	for _, rx := range o.sink.receivers {
		r.Dropped += rx.Drops()
		if p, ok := rx.(method.Passer); ok {
			r.Passed += p.Passed()
		}
	}
	var all *hdrhistogram.Histogram
	for id, t := range o.trackers {
		f := Flow{id, counts(t)}
		r.Flows = append(r.Flows, f)
		r.Total.add(&f.Counts)
		if all == nil {
			all = hdrhistogram.Import(t.Latency().Export())
		} else {
			all.Merge(t.Latency())
		}
	}
	if all != nil {
		r.Total.Latency = summary(all)
	}
	slices.SortFunc(r.Flows, func(a, b Flow) int { return int(a.ID) - int(b.ID) })
	return r
}
