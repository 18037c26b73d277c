package block

import (
	"testing"
	"testing/synctest"
	"time"
)

// The times of requests add up, and the device is busy while at least one is in flight.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Counters
		to := NewCompletions()
		read, write := &Request{Op: Read, To: to}, &Request{Op: Write, To: to}
		time.Sleep(time.Second)
		c.Begin(read)
		time.Sleep(20 * time.Millisecond)
		c.Begin(write)
		time.Sleep(5 * time.Millisecond)
		c.Finish(read, nil)
		time.Sleep(5 * time.Millisecond)
		if s := c.Stats(); s.InFlight != 1 || s.Busy != 30*time.Millisecond {
			t.Errorf("with a write in flight: %d in flight, busy for %v", s.InFlight, s.Busy)
		}
		c.Finish(write, nil)
		time.Sleep(time.Second)
		s := c.Stats()
		if s.Times[Read] != 25*time.Millisecond || s.Times[Write] != 10*time.Millisecond || s.InFlight != 0 || s.Busy != 30*time.Millisecond {
			t.Errorf("reads took %v, writes %v, busy for %v, %d in flight", s.Times[Read], s.Times[Write], s.Busy, s.InFlight)
		}
		c.Begin(read)
		time.Sleep(time.Millisecond)
		copied := *read
		var under Counters
		under.Finish(&copied, nil)
		if s := under.Stats(); s.InFlight != 0 || s.Busy != 0 || s.Done[Read] != 1 {
			t.Errorf("a copy of a request of another device: %+v", s)
		}
		c.Finish(read, ErrClosed)
		if s := c.Stats(); s.Times[Read] != 25*time.Millisecond || s.InFlight != 0 || s.Busy != 31*time.Millisecond {
			t.Errorf("after a failed request: reads took %v, busy for %v, %d in flight", s.Times[Read], s.Busy, s.InFlight)
		}
		c.Finish(&Request{Op: Flush, To: to}, nil)
		if s := c.Stats(); s.Times[Flush] != 0 || s.InFlight != 0 || s.Done[Flush] != 1 {
			t.Errorf("a flush without Begin: %v, %d in flight", s.Times[Flush], s.InFlight)
		}
	})
}
