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

// The goroutines of a run. Each owns what it works on; what more than one looks
// at is atomic and stands in run.
//
//	scheduler  plan, throttle, the clock of passes. It is Run itself.
//	lane       one for each pair of a method.Sender and a method.Receiver: lane.go
//	recorder   the results and the checkpoints
//
// How no answer is lost in our rings: a probe has one answer, rarely two, so the
// answers that a ring may hold are no more than the probes sent since it was last
// seen empty. A lane that is about to look notes how many had been sent; when
// it has read all that was there, the answers up to that number that have arrived
// are out of the ring. The scheduler stops when it is Window probes ahead of the
// note. Answers of slow targets come later than that, but not in a burst.

// batchSize is how many probes go through a channel at once, at the most: so many
// that a lane seldom needs the scheduler, which has to have a processor for that.
// burstSize is how many go to a Sender at once.
const (
	batchSize = 1024
	burstSize = 64
)

// batch is a piece of work for a lane. It goes round: the scheduler fills it, a
// lane empties it and gives it back.
type batch struct {
	n         int
	positions [batchSize]uint64
}

// run is what the goroutines of a run share.
type run struct {
	Config
	space *space
	form  *form
	seen  *seen
	start time.Time

	// work: the scheduler sends and closes, lanes receive. It has one place for each
	// sender; full, the scheduler waits.
	work chan *batch
	// free: lanes send, the scheduler receives, nobody closes. It has room for all
	// batches that there are.
	free chan *batch
	// found: lanes and the scheduler send, the recorder receives, Run closes it when
	// all of them are gone. Full, they wait, and so send nothing.
	found chan record
	// caughtUp has one place: lanes ring it, never waiting, when they have emptied
	// their ring; the scheduler receives.
	caughtUp chan struct{}

	sent   atomic.Uint64 // probes handed over
	caught []atomic.Uint64

	known  uint64 // answers of earlier runs
	counts counts
	cancel context.CancelCauseFunc // ends the run with an error
}

// Run asks all questions of c and returns when the answers are in, or when ctx is
// done: then it stops sending, waits a little for the answers under way, and the
// summary says where to go on. It closes neither senders nor receivers.
//
// An error that a sender, a receiver or Record reports stops the run in the same
// way; the summary holds what there was until then.
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

// at is the i-th of list, or none.
func at[T any](list []T, i int) (one T) {
	if i < len(list) {
		one = list[i]
	}
	return one
}

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

// now is the time since the run began, in nanoseconds.
func (r *run) now() int64 { return int64(time.Since(r.start)) }

// behind is how many probes had been sent when the slowest receiver last looked
// into its ring before emptying it.
func (r *run) behind() uint64 {
	least := r.caught[0].Load()
	for i := range r.caught[1:] {
		least = min(least, r.caught[i+1].Load())
	}
	return least
}

// remember takes in the answer of an earlier run.
func (r *run) remember(addr netip.Addr, port uint16) {
	if at, ok := r.space.position(question{addr, port}); ok && r.seen.add(at) {
		r.known++
	}
}
