package block

import (
	"sync/atomic"
	"time"
)

// Stats are counters of a device since it was opened.
type Stats struct {
	Done       [Ops]uint64 // requests that completed without an error, by operation
	Failed     uint64      // requests that completed with an error of the device
	Rejected   uint64      // requests that Check rejected, or that were submitted after the end of the device
	ReadBytes  uint64
	WriteBytes uint64 // bytes of Write; those of WriteZeroes are not counted
	Discarded  uint64 // bytes of Discard
	Copied     uint64 // number of requests whose data was copied because its alignment does not suit the hardware
	Resizes    uint64

	Times    [Ops]time.Duration // sum of the times from Submit to the completion of requests, by operation
	InFlight int                // number of requests that the device has accepted and not returned
	Busy     time.Duration      // time during which requests were in flight
}

// Counters are the counters of Stats in a form that several goroutines may add to.
type Counters struct {
	done                                     [Ops]atomic.Uint64
	failed, readBytes, writeBytes, discarded atomic.Uint64
	Rejected, Copied, Resizes                atomic.Uint64

	times  [Ops]atomic.Int64 // in nanoseconds
	flight atomic.Int64      // number of requests in flight
	busy   atomic.Int64      // see Stats.Busy, in nanoseconds; it contains the time before the field until
	until  atomic.Int64      // time since start in nanoseconds; meaningless while flight is 0
}

// start is the time from which this package measures.
var start = time.Now()

// now returns the time since start in nanoseconds, at least 1.
func now() int64 { return int64(time.Since(start)) + 1 }

// Begin records that the device has accepted a request, which takes time from now on. A device need not call it for requests
// that it completes at once.
func (c *Counters) Begin(r *Request) {
	r.began = now()
	if c.flight.Add(1) == 1 {
		c.until.Store(r.began)
	}
}

// end counts the time of a request that Begin has recorded.
func (c *Counters) end(r *Request) {
	if r.began == 0 {
		return
	}
	t := now()
	c.times[r.Op].Add(t - r.began)
	r.began = 0
	c.busy.Add(t - c.until.Swap(t))
	c.flight.Add(-1)
}

// Finish counts a request by its result and returns it to its user.
func (c *Counters) Finish(r *Request, err error) {
	c.end(r)
	if err != nil {
		c.failed.Add(1)
	} else {
		c.done[r.Op].Add(1)
		switch r.Op {
		case Read:
			c.readBytes.Add(uint64(r.Bytes()))
		case Write:
			c.writeBytes.Add(uint64(r.Bytes()))
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
		Failed: c.failed.Load(), Rejected: c.Rejected.Load(), ReadBytes: c.readBytes.Load(),
		WriteBytes: c.writeBytes.Load(), Discarded: c.discarded.Load(), Copied: c.Copied.Load(), Resizes: c.Resizes.Load(),
		InFlight: int(c.flight.Load()), Busy: time.Duration(c.busy.Load()),
	}
	for i := range s.Done {
		s.Done[i] = c.done[i].Load()
		s.Times[i] = time.Duration(c.times[i].Load())
	}
	if s.InFlight > 0 {
		s.Busy += time.Duration(max(0, now()-c.until.Load()))
	}
	return s
}
