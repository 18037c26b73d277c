package probe

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"loam/gen/method"
)

// receiveTimeout bounds how long a receiver sits in its method: it is how late it
// notices the end of the run, and how often it says that its ring is empty.
const receiveTimeout = 2 * time.Millisecond

// resultBatch is how many results go through a channel at once.
const resultBatch = 256

// results are pooled: receivers take them, the recorder puts them back.
var results = sync.Pool{New: func() any { s := make([]Result, 0, resultBatch); return &s }}

// runReceiver reads a ring until stop is closed.
func (r *run) runReceiver(i int, rx method.Receiver, stop chan struct{}) {
	out := results.Get().(*[]Result)
	got := func(frame []byte, at int64) {
		now := r.now()
		if at != 0 {
			now = at - r.start.UnixNano()
		}
		if res, ok := r.judge(frame, now); ok {
			*out = append(*out, res)
			if len(*out) == resultBatch {
				r.found <- record{results: out}
				out = results.Get().(*[]Result)
			}
		}
	}
	for {
		select {
		case <-stop:
			return
		default:
		}
		sent := r.sent.Load()
		_, err := rx.Receive(receiveTimeout, got)
		r.caught[i].Store(sent)
		select {
		case r.caughtUp <- struct{}{}:
		default:
		}
		if len(*out) > 0 {
			r.found <- record{results: out}
			out = results.Get().(*[]Result)
		}
		if err != nil {
			// The run ends, and until it has, nobody must wait for this ring.
			r.caught[i].Store(math.MaxUint64 / 2)
			r.cancel(fmt.Errorf("probe: receiving: %w", err))
			return
		}
	}
}

// judge counts a frame that arrived at now, and turns it into a result if it is
// one that the user wants and has not had.
func (r *run) judge(frame []byte, now int64) (res Result, wanted bool) {
	rep, v := r.form.read(frame, now)
	if v != genuine {
		r.counts.other[v].Add(1)
		return res, false
	}
	at, ok := r.space.position(rep.question)
	if !ok { // of another shard that was given our key
		r.counts.other[foreign].Add(1)
		return res, false
	}
	if rep.answer.Settles() && !r.seen.add(at) {
		r.counts.duplicates.Add(1)
		return res, false
	}
	r.counts.answers[rep.answer].Add(1)
	if rep.rtt >= 0 {
		r.counts.roundTrip(rep.rtt)
	}
	return Result{
		Addr: rep.addr, Port: rep.port, Answer: rep.answer, Code: rep.code, HopLimit: rep.hopLimit,
		RTT: time.Duration(rep.rtt), From: rep.from, At: r.start.Add(time.Duration(now)),
	}, r.All || rep.answer.Positive()
}

// counts are what receivers count together.
type counts struct {
	answers    [8]atomic.Uint64
	other      [forged + 1]atomic.Uint64 // by verdict
	duplicates atomic.Uint64
	// Round-trip times in nanoseconds.
	rtts           atomic.Uint64
	sumRTT         atomic.Int64
	minRTT, maxRTT atomic.Int64
}

func (c *counts) roundTrip(rtt int64) {
	c.rtts.Add(1)
	c.sumRTT.Add(rtt)
	for least := c.minRTT.Load(); rtt < least && !c.minRTT.CompareAndSwap(least, rtt); least = c.minRTT.Load() {
	}
	for most := c.maxRTT.Load(); rtt > most && !c.maxRTT.CompareAndSwap(most, rtt); most = c.maxRTT.Load() {
	}
}

func (c *counts) found() uint64 {
	return c.answers[EchoReply].Load() + c.answers[SYNACK].Load() + c.answers[Data].Load()
}

func (c *counts) summary() (s Summary) {
	for a := range c.answers {
		s.Answers[a] = c.answers[a].Load()
	}
	s.Duplicates, s.Forged = c.duplicates.Load(), c.other[forged].Load()
	s.Malformed, s.Foreign = c.other[malformed].Load(), c.other[foreign].Load()
	if n := c.rtts.Load(); n > 0 {
		s.RTT = Spread{
			Count: n, Min: time.Duration(c.minRTT.Load()), Max: time.Duration(c.maxRTT.Load()),
			Mean: time.Duration(c.sumRTT.Load() / int64(n)),
		}
	}
	return s
}
