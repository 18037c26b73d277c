// Package sink is the receiving end of a generator. It receives tagged frames and reports for each flow how many
// were lost, duplicated and reordered, and their latency.
//
// Reading order: body.go (finds the tag in a frame), id.go (identifies flows), this file (the goroutines), owner.go
// (owns the counters), report.go.
//
//	receiver ──arrivals──> owner of the trackers ──> reports
//	receiver ──arrivals──>
package sink

import (
	"sync"
	"sync/atomic"
	"time"

	"loam/gen/measure"
	"loam/gen/method"
)

// MaxTracked is the largest number of flows that are tracked at a time, each with about 300 kB. Frames of further
// flows are only counted.
const MaxTracked = 256

// patience is the longest single wait of a receiver, and so the delay until it notices a stop.
const patience = 20 * time.Millisecond

// lastFrames limits how long a sink continues to receive after Stop, in case frames never cease to arrive.
const lastFrames = time.Second

// batchSize is the number of arrivals passed through a channel at a time.
const batchSize = 256

// arrival is the arrival of one tagged frame. at is in nanoseconds since 1970.
type arrival struct {
	tag   measure.Tag
	at    int64
	bytes int
}

// batch is a buffer that circulates between a receiver and the owner.
type batch struct {
	n        int
	arrivals [batchSize]arrival
}

// Sink receives frames and counts them. Start creates it and Stop ends it.
type Sink struct {
	receivers []method.Receiver
	start     time.Time

	// full: receivers send, the owner receives, Stop closes it after the receivers have ended. If it is full,
	// receivers wait, and the rings of their methods fill up.
	full chan *batch
	// free: the owner sends, receivers receive, it is never closed. It has room for all batches.
	free chan *batch
	// ask: Report sends and the owner receives. Each request has a channel with a capacity of one for the answer.
	ask chan chan Report
	// ended is closed by the owner when it returns.
	ended chan struct{}
	last  Report // the final report; read only after ended is closed

	other, received atomic.Uint64
	stop            atomic.Bool
	receiving       sync.WaitGroup
	mu              sync.Mutex // guards err
	err             error
}

// Start begins to receive from the given receivers. The sink owns them from now on, and Stop closes them.
func Start(receivers ...method.Receiver) *Sink {
	s := &Sink{receivers: receivers, start: time.Now(), ask: make(chan chan Report), ended: make(chan struct{})}
	const each = 16 // batches per receiver
	s.full, s.free = make(chan *batch, each*len(receivers)), make(chan *batch, each*len(receivers))
	for range cap(s.free) {
		s.free <- new(batch)
	}
	for _, r := range receivers {
		s.receiving.Go(func() { s.receive(r) })
	}
	go newOwner(s).loop()
	return s
}

// receive is the goroutine of a receiver. It passes tags to the owner.
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
	var ending time.Time // when the stop was noticed
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

// Err returns the first error of a receiver. That receiver has ended.
func (s *Sink) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Received returns the number of frames received so far, tagged or not.
func (s *Sink) Received() uint64 { return s.received.Load() }

// Report returns a report of everything received so far. Any goroutine may call it.
func (s *Sink) Report() Report {
	answer := make(chan Report, 1)
	select {
	case s.ask <- answer:
		return <-answer
	case <-s.ended:
		return s.last
	}
}

// Stop receives the frames that are already available and closes the receivers. It returns the final report and the
// first error of a receiver.
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
