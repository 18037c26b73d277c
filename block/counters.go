package block

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats are counters of a device since it was opened.
type Stats struct {
	Done       [Ops]uint64 // requests that completed without an error, by operation
	Failed     uint64      // requests that completed with an error of the device
	Rejected   uint64      // requests that Check rejected, or that were submitted after the end of the device
	ReadBytes  uint64
	WriteBytes uint64 // bytes of Write
	Zeroed     uint64 // bytes of WriteZeroes
	Discarded  uint64 // bytes of Discard
	Copied     uint64 // number of requests whose data was copied because its alignment does not suit the hardware
	Resizes    uint64

	Times    [Ops]time.Duration // sum of the times from Submit to the completion of the requests that Done counts
	InFlight int                // number of requests that the device has accepted and not returned
	Busy     time.Duration      // time during which requests were in flight
}

// Counters are the counters of Stats in a form that several goroutines may add to.
type Counters struct {
	done                                             [Ops]atomic.Uint64
	failed, readBytes, writeBytes, zeroed, discarded atomic.Uint64
	Rejected, Copied, Resizes                        atomic.Uint64

	mu     sync.Mutex // guards the fields below; no other lock is taken while it is held
	times  [Ops]time.Duration
	flight int           // number of requests in flight
	busy   time.Duration // see Stats.Busy, without the time since the field since
	since  time.Time     // meaningless while flight is 0
}

// Begin records that the device has accepted a request, which takes time from now on. A device need not call it for requests
// that it completes at once.
func (c *Counters) Begin(r *Request) {
	now := time.Now()
	r.began, r.by = now, c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flight == 0 {
		c.since = now
	}
	c.flight++
}

// end counts the time of a request that Begin has recorded. A copy of a request may come from a device that has begun the original.
func (c *Counters) end(r *Request, err error) {
	if r.by != c {
		return
	}
	r.by = nil
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.times[r.Op] += now.Sub(r.began)
	}
	c.busy += now.Sub(c.since)
	c.since = now
	c.flight--
}

// Finish counts a request by its result and returns it to its user.
func (c *Counters) Finish(r *Request, err error) {
	c.end(r, err)
	if err != nil {
		c.failed.Add(1)
	} else {
		c.done[r.Op].Add(1)
		switch r.Op {
		case Read:
			c.readBytes.Add(uint64(r.Bytes()))
		case Write:
			c.writeBytes.Add(uint64(r.Bytes()))
		case WriteZeroes:
			c.zeroed.Add(uint64(r.Length))
		case Discard:
			c.discarded.Add(uint64(r.Length))
		}
	}
	r.Complete(err)
}

// Reject counts a request that the device did not start and returns it to its user.
func (c *Counters) Reject(r *Request, err error) {
	c.Rejected.Add(1)
	r.Complete(err)
}

// Stats returns the counters.
func (c *Counters) Stats() Stats {
	s := Stats{
		Failed: c.failed.Load(), Rejected: c.Rejected.Load(), ReadBytes: c.readBytes.Load(), WriteBytes: c.writeBytes.Load(),
		Zeroed: c.zeroed.Load(), Discarded: c.discarded.Load(), Copied: c.Copied.Load(), Resizes: c.Resizes.Load(),
	}
	for i := range s.Done {
		s.Done[i] = c.done[i].Load()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Times, s.InFlight, s.Busy = c.times, c.flight, c.busy
	if c.flight > 0 {
		s.Busy += time.Since(c.since)
	}
	return s
}
