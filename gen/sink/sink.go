// Package sink receives the frames of a generator. It reports for each flow the number of frames that were lost,
// duplicated and reordered, and their latency.
//
// Reading order: body.go (finds the tag in a frame), id.go (identifies flows), sink.go (the goroutines), owner.go (owns
// the counters), report.go.
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

// MaxTracked is the maximum number of flows that are tracked at a time. Each uses about 300 kB. Tagged frames of other
// flows are only counted.
const MaxTracked = 256

// patience is the maximum time that a receiver waits for a frame, which is also the delay until it notices that the
// sink is being stopped.
const patience = 20 * time.Millisecond

// lastFrames is the maximum time for which a sink continues to receive after Stop, since frames may never cease to
// arrive.
const lastFrames = time.Second

// batchSize is the number of arrivals that are sent over a channel at a time.
const batchSize = 256

// arrival describes the arrival of one tagged frame. at is in nanoseconds since 1970.
type arrival struct {
	tag   measure.Tag
	at    int64
	bytes int
}

// batch is a buffer of arrivals. A receiver fills it, and the owner empties and returns it.
type batch struct {
	n        int
	arrivals [batchSize]arrival
}

// Sink receives frames and counts them. Start creates it and Stop ends it.
type Sink struct {
	receivers []method.Receiver
	start     time.Time

	// full: receivers send, the owner receives. Stop closes it after the receivers have ended. If it is full, receivers
	// wait, and meanwhile their receive rings fill up.
	full chan *batch
	// free: the owner sends, receivers receive. It is never closed. It has room for all batches.
	free chan *batch
	// ask: the method Report sends, and the owner receives. Each request is a channel with a capacity of one, to which
	// the owner sends the report.
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

// Start begins to receive from the given receivers. The sink then owns them; Stop closes them.
func Start(receivers ...method.Receiver) *Sink {
	s := &Sink{receivers: receivers, start: time.Now(), ask: make(chan chan Report), ended: make(chan struct{})}
	const each = 16 // number of batches per receiver
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

// receive is the goroutine for one receiver. It sends the tags of received frames to the owner.
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
	var ending time.Time // time at which the goroutine noticed the stop
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

// Err returns the first error of a receiver, or nil. That receiver has stopped receiving.
func (s *Sink) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Received returns the number of frames received so far, tagged or not.
func (s *Sink) Received() uint64 { return s.received.Load() }

// Report returns a report of all frames received so far. Any goroutine may call it.
func (s *Sink) Report() Report {
	answer := make(chan Report, 1)
	select {
	case s.ask <- answer:
		return <-answer
	case <-s.ended:
		return s.last
	}
}

// Stop receives the frames that are already available, and then closes the receivers. It returns the final report, and
// the first error of a receiver.
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
