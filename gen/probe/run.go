package probe

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/gen/method"
)

// The goroutines of a run. Each goroutine owns the data that it works on. Data that several of them share is atomic,
// and is in the struct run.
//
//	scheduler  plan, throttle and the timing of passes; it runs on the goroutine of Run
//	lane       one for each pair of a method.Sender and a method.Receiver: lane.go
//	recorder   results and checkpoints
//
// Why no answer is lost in the receivers' rings: there is one answer to a probe, rarely two. So a ring contains at most
// as many answers as probes were sent since the ring was last empty. Before a lane receives, it notes the number of
// probes that were sent up to then. When it has read all available frames, all answers to these probes that had arrived
// are out of the ring. The scheduler stops when it is Window probes ahead of that number. Answers of slow targets
// arrive later, but not in a burst.

// batchSize is the maximum number of probes that are sent over a channel at a time. It is large, so that lanes seldom
// wait for the scheduler, which needs a processor to make the next batch. burstSize is the maximum number of probes in
// one call of a Sender.
const (
	batchSize = 1024
	burstSize = 64
)

// batch is a piece of work for a lane. Batches are reused: the scheduler fills a batch, and a lane sends its probes and
// returns it.
type batch struct {
	n         int
	positions [batchSize]uint64
}

// run is the state that the goroutines of a run share.
type run struct {
	Config
	space *space
	form  *form
	seen  *seen
	start time.Time

	// work: the scheduler sends and closes, lanes receive. Its capacity is the number of senders. If it is full, the
	// scheduler waits.
	work chan *batch
	// free: lanes send, the scheduler receives. It is never closed. It has room for all batches.
	free chan *batch
	// found: lanes and the scheduler send, the recorder receives. Run closes it after all of them have ended. If it is
	// full, the sending goroutines wait, and so no probes are sent.
	found chan record
	// caughtUp has a capacity of one. A lane sends to it, without blocking, when it has emptied its ring; the scheduler
	// receives.
	caughtUp chan struct{}

	sent   atomic.Uint64 // number of probes that the senders have accepted
	caught []atomic.Uint64

	known  uint64 // number of answers in the results of earlier runs
	absent uint64 // number of questions (address and port) whose target is not in Config.Neighbours
	counts counts
	cancel context.CancelCauseFunc // ends the run with an error
}

// Run asks all questions of c: it sends a probe to each port of each address. It returns when all have been asked and
// the answers have arrived. If ctx is done, it stops sending, and waits a short time for answers that are on their way;
// the summary then contains the position at which to resume. It closes neither senders nor receivers.
//
// An error from a sender, a receiver, Record or Mark stops the run in the same way. The summary covers the run up to
// that time.
func Run(ctx context.Context, c *Config, senders []method.Sender, receivers []method.Receiver) (Summary, error) {
	r, err := newRun(c, len(senders), len(receivers))
	if err != nil {
		return Summary{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cancel = cancel

	var sending, lanes, recording sync.WaitGroup
	stop := make(chan struct{}) // closed when no more answers are waited for
	for i := range max(len(senders), len(receivers)) {
		l := r.newLane(i, at(senders, i), at(receivers, i))
		sending.Add(1)
		lanes.Go(func() { l.loop(stop, sending.Done) })
	}
	recording.Go(r.runRecorder)

	s := scheduler{run: r, throttle: newThrottle(r.Rate), batches: 2 * len(senders)}
	s.plan = plan{size: r.space.size, passes: 1 + r.Retries, seen: r.seen}
	s.plan.from(r.From)
	s.loop(ctx)
	close(r.work)
	sending.Wait()
	s.lastAnswers(ctx)
	close(stop)
	lanes.Wait()
	if r.Mark != nil && !s.finished {
		r.found <- record{mark: &s.stopped}
	}
	close(r.found)
	recording.Wait()

	sum := s.summary()
	for _, rx := range receivers {
		sum.RingDrops += rx.Drops()
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return sum, err
	}
	return sum, nil
}

// at returns element i of list, or the zero value if there is none.
func at[T any](list []T, i int) (one T) {
	if i < len(list) {
		one = list[i]
	}
	return one
}

// newRun checks c and creates the state of the run: the channels, the batches and the record of answers. The run's
// clock starts in newRun.
func newRun(c *Config, senders, receivers int) (*run, error) {
	r := &run{Config: c.withDefaults()}
	if err := r.check(senders, receivers); err != nil {
		return nil, err
	}
	if senders == 0 || receivers == 0 {
		return nil, errors.New("probe: a run needs a sender and a receiver")
	}
	var err error
	if r.space, err = newSpace(r.Addresses, r.Ports, r.Seed, r.Shard, r.Shards); err != nil {
		return nil, err
	}
	if r.Most > 0 {
		r.space.size = min(r.space.size, r.Most)
	}
	r.form = newForm(&r.Config, tagger{r.Key, r.Kind})
	r.seen = newSeen(r.space.size)
	if r.Neighbours != nil {
		r.leaveOutAbsent()
	}
	if r.Answered != nil {
		r.Answered(r.remember)
	}
	r.work = make(chan *batch, senders)
	r.free = make(chan *batch, 2*senders)
	for range cap(r.free) {
		r.free <- new(batch)
	}
	r.found = make(chan record, 16)
	r.caughtUp = make(chan struct{}, 1)
	r.caught = make([]atomic.Uint64, receivers)
	r.counts.minRTT.Store(math.MaxInt64)
	r.start = time.Now()
	return r, nil
}

// leaveOutAbsent marks the questions to targets whose Ethernet address is unknown as answered.
func (r *run) leaveOutAbsent() {
	for at := range r.space.size {
		if _, ok := r.Neighbours[r.space.at(at).addr]; !ok && r.seen.add(at) {
			r.absent++
		}
	}
}

// now returns the time since the start of the run in nanoseconds.
func (r *run) now() int64 { return int64(time.Since(r.start)) }

// behind returns the smallest value in caught: the number of probes that had been sent when the slowest receiver last
// began to empty its ring.
func (r *run) behind() uint64 {
	least := r.caught[0].Load()
	for i := range r.caught[1:] {
		least = min(least, r.caught[i+1].Load())
	}
	return least
}

// remember marks the question of a result of an earlier run as answered.
func (r *run) remember(addr netip.Addr, port uint16) {
	if at, ok := r.space.position(question{addr, port}); ok && r.seen.add(at) {
		r.known++
	}
}
