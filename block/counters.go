package block

import "sync/atomic"

// Stats are counters of a device since it was opened.
type Stats struct {
	Done       [Ops]uint64 // requests that completed without an error, by operation
	Failed     uint64      // requests that completed with an error of the device
	Rejected   uint64      // requests that Check rejected, or that were submitted after the end of the device
	ReadBytes  uint64
	WriteBytes uint64 // bytes of Write; WriteZeroes and Discard are not counted
	Copied     uint64 // number of requests whose data was copied because its alignment does not suit the hardware
	Resizes    uint64
}

// Counters are the counters of Stats in a form that several goroutines may add to.
type Counters struct {
	done                          [Ops]atomic.Uint64
	failed, readBytes, writeBytes atomic.Uint64
	Rejected, Copied, Resizes     atomic.Uint64
}

// Finish counts a request by its result and returns it to its user.
func (c *Counters) Finish(r *Request, err error) {
	if err != nil {
		c.failed.Add(1)
	} else {
		c.done[r.Op].Add(1)
		switch r.Op {
		case Read:
			c.readBytes.Add(uint64(r.Bytes()))
		case Write:
			c.writeBytes.Add(uint64(r.Bytes()))
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
		WriteBytes: c.writeBytes.Load(), Copied: c.Copied.Load(), Resizes: c.Resizes.Load(),
	}
	for i := range s.Done {
		s.Done[i] = c.done[i].Load()
	}
	return s
}
