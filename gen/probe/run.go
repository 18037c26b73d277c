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

// The goroutines of a run. Each owns the data that it works on. Data shared by several is atomic and part of run.
//
//	scheduler  plan, throttle and the timing of passes; it runs on the goroutine of Run
//	lane       one for each pair of a method.Sender and a method.Receiver: lane.go
//	recorder   results and checkpoints
//
// How no answer is lost in the receivers' rings: a probe has one answer, rarely two. A ring therefore holds at most
// as many answers as probes were sent since it was last empty. A lane that is about to receive notes the number of
// probes sent so far. When it has read everything available, all arrived answers to those probes are out of the
// ring. The scheduler stops when it is Window probes ahead of the note. Answers of slow targets arrive later, but
// not in a burst.

// batchSize is the largest number of probes passed through a channel at a time. It is large, so that a lane seldom
// waits for the scheduler, which needs a processor to answer. burstSize is the number of probes passed to a Sender
// at a time.
const (
	batchSize = 1024
	burstSize = 64
)

// batch is a piece of work for a lane. It circulates: the scheduler fills it, and a lane empties and returns it.
type batch struct {
	n         int
	positions [batchSize]uint64
}

// run is the state shared by the goroutines of a run.
type run struct {
	Config
	space *space
	form  *form
	seen  *seen
	start time.Time

	// work: the scheduler sends and closes, lanes receive. Its capacity is one per sender. If it is full, the
	// scheduler waits.
	work chan *batch
	// free: lanes send, the scheduler receives, it is never closed. It has room for all batches.
	free chan *batch
	// found: lanes and the scheduler send, the recorder receives, Run closes it after all of them have ended. If it
	// is full they wait, and so send no probes.
	found chan record
	// caughtUp has a capacity of one. A lane signals it without blocking when it has emptied its ring; the
	// scheduler receives.
	caughtUp chan struct{}

	sent   atomic.Uint64 // probes handed over
	caught []atomic.Uint64

	known  uint64 // answers of earlier runs
	absent uint64 // questions to absent neighbours
	counts counts
	cancel context.CancelCauseFunc // ends the run with an error
}

// Run asks all questions of c and returns when the answers have arrived. If ctx is done, it stops sending and waits
// a short time for answers in flight; the summary then says where to resume. It closes neither senders nor
// receivers.
//
// An error from a sender, a receiver, Record or Mark stops the run in the same way. The summary covers everything
// up to then.
func Run(ctx context.Context, c *Config, senders []method.Sender, receivers []method.Receiver) (Summary, error) {
	r, err := newRun(c, len(senders), len(receivers))
	if err != nil {
		return Summary{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cancel = cancel

	var sending, lanes, recording sync.WaitGroup
	stop := make(chan struct{}) // closed when no more answers are wanted
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

// newRun checks c and creates the channels, the batches and the record of answers. The run's clock starts here.
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

// leaveOutAbsent marks the questions to targets without an Ethernet address as answered.
func (r *run) leaveOutAbsent() {
	for at := range r.space.size {
		if _, ok := r.Neighbours[r.space.at(at).addr]; !ok && r.seen.add(at) {
			r.absent++
		}
	}
}

// now returns the time since the start of the run in nanoseconds.
func (r *run) now() int64 { return int64(time.Since(r.start)) }

// behind returns the smallest caught value of all receivers: the number of probes sent when the slowest receiver
// last began to empty its ring.
func (r *run) behind() uint64 {
	least := r.caught[0].Load()
	for i := range r.caught[1:] {
		least = min(least, r.caught[i+1].Load())
	}
	return least
}

// remember marks the question of an earlier run's result as answered.
func (r *run) remember(addr netip.Addr, port uint16) {
	if at, ok := r.space.position(question{addr, port}); ok && r.seen.add(at) {
		r.known++
	}
}
