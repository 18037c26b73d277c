package probe

import (
	"context"
	"time"
)

// scheduler decides which question (address and port) is asked next, and when.
type scheduler struct {
	*run
	plan     plan
	throttle *throttle
	batches  int // number of batches in all

	dispatched uint64 // number of probes passed to lanes
	passSent   []uint64
	sending    time.Duration
	stopped    Checkpoint
	finished   bool

	// Checkpoints are reported with a delay, so that the answers to all earlier probes have been recorded. marks
	// contains the positions at the last ticks, the oldest first.
	marks    [2]Checkpoint
	nextTick time.Duration
	lastSent uint64
}

const (
	tick     = time.Second
	pollFull = 5 * time.Millisecond // polling interval while waiting for answers
)

// loop runs all passes, or until ctx is done.
func (s *scheduler) loop(ctx context.Context) {
	s.marks = [2]Checkpoint{s.place(), s.place()}
	s.nextTick = tick
	for {
		began, before := s.elapsed(), s.dispatched
		ok := s.sendPass(ctx)
		s.collect()
		s.sending += s.elapsed() - began
		s.passSent = append(s.passSent, s.dispatched-before)
		s.stopped = s.place()
		if !ok {
			return
		}
		if s.plan.pass+1 < s.plan.passes && !s.await(ctx, s.RetryAfter) {
			return
		}
		if !s.plan.turn() {
			s.finished = true
			return
		}
	}
}

func (s *scheduler) elapsed() time.Duration { return time.Duration(s.now()) }

func (s *scheduler) place() Checkpoint {
	c := Checkpoint{Pass: s.plan.pass, Next: s.plan.next, Sent: s.dispatched}
	if s.From != nil {
		c.Sent += s.From.Sent
	}
	return c
}

// sendPass sends the remaining probes of one pass over all addresses and ports. It returns false if ctx is done before
// the end of the pass.
func (s *scheduler) sendPass(ctx context.Context) bool {
	for {
		s.tick(false)
		n, ok := s.permits(ctx)
		if !ok {
			return false
		}
		var b *batch
		select {
		case b = <-s.free:
		case <-ctx.Done():
			return false
		}
		b.n = s.plan.take(b.positions[:n])
		if b.n == 0 {
			s.free <- b
			return true
		}
		s.throttle.spend(b.n)
		s.dispatched += uint64(b.n)
		s.work <- b
	}
}

// permits waits until probes may be sent and returns their number. ok is false if ctx is done.
func (s *scheduler) permits(ctx context.Context) (n int, ok bool) {
	for ctx.Err() == nil {
		room := int64(s.behind()) + int64(s.Window) - int64(s.dispatched)
		if room < burstSize {
			select {
			case <-s.caughtUp:
			case <-ctx.Done():
			}
			continue
		}
		now := s.elapsed()
		if s.throttle.due(now) {
			s.throttle.check(now, s.dispatched, s.losses())
		}
		n, wait := s.throttle.allow(now, int(min(room, batchSize)))
		if n > 0 {
			return n, true
		}
		s.pause(ctx, wait)
		s.tick(false)
	}
	return 0, false
}

// losses returns the number of frames that were lost on this machine, as far as it is known.
func (s *scheduler) losses() uint64 {
	if s.Losses == nil {
		return 0
	}
	return s.Losses()
}

// collect waits until the lanes have returned all batches.
func (s *scheduler) collect() {
	held := make([]*batch, 0, s.batches)
	for range s.batches {
		held = append(held, <-s.free)
	}
	for _, b := range held {
		s.free <- b
	}
}

// await waits for answers until d has passed or all questions are answered. It returns false if ctx is done first.
func (s *scheduler) await(ctx context.Context, d time.Duration) bool {
	for end := s.elapsed() + d; s.seen.len() < s.plan.size; {
		left := end - s.elapsed()
		if left <= 0 || ctx.Err() != nil {
			break
		}
		s.pause(ctx, min(left, pollFull))
		s.tick(true)
	}
	return ctx.Err() == nil
}

// lastAnswers waits for answers that are on their way at the end of a run. If ctx is already done, it waits a shorter
// time.
func (s *scheduler) lastAnswers(ctx context.Context) {
	d := s.Wait
	if ctx.Err() != nil {
		d, ctx = min(d, tick), context.Background()
	}
	if !s.await(ctx, d) {
		s.await(context.Background(), min(d, tick))
	}
}

func (s *scheduler) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// tick reports a checkpoint and the progress, once per second.
func (s *scheduler) tick(waiting bool) {
	now := s.elapsed()
	if now < s.nextTick {
		return
	}
	if s.Mark != nil {
		mark := s.marks[0]
		s.found <- record{mark: &mark}
	}
	s.marks[0], s.marks[1] = s.marks[1], s.place()
	if s.Progress != nil {
		since := (now - s.nextTick + tick).Seconds()
		s.Progress(Status{
			Elapsed: now, Pass: s.plan.pass, Done: float64(s.plan.next) / float64(s.plan.size),
			Sent: s.dispatched, Rate: float64(s.dispatched-s.lastSent) / since,
			Found: s.counts.found(), Waiting: waiting,
		})
	}
	s.lastSent = s.dispatched
	s.nextTick = now + tick
}

func (s *scheduler) summary() Summary {
	sum := s.counts.summary()
	sum.Asked, sum.Absent = s.space.size-s.absent, s.absent
	sum.Known, sum.Sent, sum.PassSent = s.known, s.sent.Load(), s.passSent
	sum.LinkDrops, sum.Slowed = s.losses(), s.throttle.decreased
	sum.Sending, sum.Elapsed = s.sending, s.elapsed()
	sum.Finished, sum.Stopped = s.finished, s.stopped
	return sum
}
