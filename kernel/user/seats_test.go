package user

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bound returns a context with a CPU set, outside of ring 3.
func bound(set uint64) *Context {
	c := &Context{page: new(page)}
	c.Bind(set)
	c.Settle()
	return c
}

// enters enters ring 3 on a CPU as the assembly does, and reports whether the thread may run there. A thread that must not is
// left as it is.
func (c *Context) enters(cpu int) bool {
	if atomic.LoadUint32(&c.page.stop) != 0 {
		c.Settle()
	}
	seat := atomic.LoadUint32(&c.page.seat)
	return seat == 0 || seat == uint32(cpu+1)
}

// compute makes threads look as if they were in ring 3 whenever they have a seat.
func compute(threads ...*Context) {
	for _, c := range threads {
		atomic.StoreUint32(&c.page.cpu, 1)
	}
}

// A thread takes the seat of its CPU if that is in its set, or else another one of its set. A seat has one owner.
func TestSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seats
		a, b, c := bound(0b1010), bound(0b1010), bound(0b1000)
		if !s.take(a, 3) || !a.enters(3) || a.enters(1) {
			t.Error("the CPU of the caller is not preferred")
		}
		if s.take(c, 1) {
			t.Error("a seat has two owners")
		}
		s.leave(c)
		if !s.take(b, 3) || !b.enters(1) {
			t.Error("a free seat is not found")
		}
		s.leave(a)
		if !s.take(c, 0) || !c.enters(3) || len(s.waiting) != 0 {
			t.Error("a seat is not free after its owner has left")
		}
		time.Sleep(time.Minute) // the timers have nothing to do
		synctest.Wait()
		if !c.enters(3) || s.seats[3].armed {
			t.Error("a thread loses its seat, for which no thread waits")
		}
	})
}

// Threads that wait for a seat get it in the order of arrival, each when the owner leaves or has had it for a slice. The owner is
// kicked then.
func TestSeatPassesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seats
		all := []*Context{bound(2), bound(2), bound(2), bound(2)}
		compute(all...)
		for i, c := range all {
			if s.take(c, 1) != (i == 0) {
				t.Fatalf("thread %d", i)
			}
		}
		s.stay(all[0]) // has no effect on an owner
		for i := range all[1:] {
			began := time.Now()
			<-all[i+1].woken
			if passed := time.Since(began); passed != slice || !all[i+1].enters(1) {
				t.Errorf("thread %d waits for %v", i+1, passed)
			}
			s.proceed(all[i+1], false)
			if all[i].enters(1) || all[i].page.placed != 0 {
				t.Errorf("thread %d has lost its seat and runs", i)
			}
		}
		if s.take(all[0], 1) {
			t.Error("a seat has two owners")
		}
		s.leave(all[3])
		if <-all[0].woken; !all[0].enters(1) {
			t.Error("the seat of a thread that leaves is not passed on")
		}
		s.leave(all[0])
		time.Sleep(time.Minute)
	})
}

// A thread that is kicked while it waits does not get a seat later.
func TestKickEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := bound(1), bound(1)
		for range 2 {
			places.take(a, 0)
			done := make(chan struct{})
			go func() {
				b.find(0)
				close(done)
			}()
			synctest.Wait()
			b.Kick()
			<-done
			a.Rest()
			if b.enters(0) || !places.take(a, 0) {
				t.Error("a thread that no longer waits gets a seat")
			}
			a.Rest()
		}
		b.Kick()
		places.take(a, 0)
		b.find(0) // does not wait: the kick comes first
		a.Rest()
	})
}

// A thread that is outside of ring 3 for some time, for example because a page fault or a read waits for a disk, loses a seat for
// which another thread waits. A thread that makes system calls keeps the seat for its slice.
func TestSeatOfAbsent(t *testing.T) {
	for _, calls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s seats
			a, b := bound(1), bound(1)
			s.take(a, 0)
			s.take(b, 0)
			atomic.AddUint64(&a.page.used, 1000) // a has entered ring 3, and has left it
			began := time.Now()
			for !b.enters(0) {
				if time.Sleep(look / 5); calls {
					atomic.AddUint64(&a.page.used, 1000)
				}
			}
			passed, want := time.Since(began), 2*look
			if calls {
				want = slice
			}
			if passed > want+look/5 || passed < want || a.enters(0) {
				t.Errorf("calls %v: the seat passes on after %v, want %v", calls, passed, want)
			}
		})
	}
}

// A thread that has got a seat keeps it until its goroutine has continued and a slice has passed.
func TestSliceBeginsInThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seats
		a, b, c := bound(1), bound(1), bound(1)
		compute(a, b, c)
		s.take(a, 0)
		s.take(b, 0)
		s.take(c, 0)
		time.Sleep(20 * slice) // the goroutine of b is runnable, and other goroutines run
		synctest.Wait()
		if a.enters(0) || !b.enters(0) {
			t.Fatal("a thread loses its seat before it has continued")
		}
		s.proceed(b, s.stay(b))
		began := time.Now()
		<-c.woken
		if passed := time.Since(began); passed != slice || b.enters(0) || !c.enters(0) {
			t.Errorf("the slice ends after %v", passed)
		}
	})
}

// Threads that pass on a seat yield once in a turn.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seats
		all := []*Context{bound(1), bound(1), bound(1)}
		compute(all...)
		for _, c := range all {
			s.take(c, 0)
		}
		for i := range 12 {
			c := all[(i+1)%3]
			<-c.woken
			yields := s.stay(c)
			if want := i%4 == 3; yields != want {
				t.Errorf("hand-over %d: yields %v", i, yields)
			}
			s.proceed(c, yields)
			s.take(all[i%3], 0)
		}
	})
}

// A thread that is kicked while it waits, and then waits again, has the same place, except after it has had a seat.
func TestKickKeepsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seats
		all := []*Context{bound(1), bound(1), bound(1), bound(1)}
		for _, c := range all {
			s.take(c, 0)
		}
		for i, kicked := range []int{2, 1, 3} { // to the middle, to the front and to the end
			if s.stay(all[kicked]); s.take(all[kicked], 0) {
				t.Errorf("%d: a seat has two owners", i)
			}
		}
		for i := range 8 {
			s.leave(all[i%4])
			next := all[(i+1)%4]
			if !next.enters(0) {
				t.Fatalf("hand-over %d goes to another thread", i)
			}
			s.proceed(next, s.stay(next))
			s.take(all[i%4], 0)
		}
	})
}

// Threads with a set that compute, and pass on their seat, make progress beside threads without a set that compute.
func TestBoundBesideUnbound(t *testing.T) {
	const bounds, unbounds, rounds, part = 3, 8, 5, slice / 3
	var all, others sync.WaitGroup
	var done atomic.Bool
	for range unbounds {
		others.Go(func() {
			for !done.Load() {
			}
		})
	}
	for range bounds {
		all.Go(func() {
			c := bound(1)
			for left := rounds * part; left > 0; {
				for began := time.Now(); left > 0 && c.enters(0); began = time.Now() {
					for time.Since(began) < part/10 && atomic.LoadUint32(&c.page.stop) == 0 {
					}
					left -= min(time.Since(began), part)
				}
				if left > 0 {
					c.find(0)
				}
			}
			places.leave(c)
		})
	}
	all.Wait()
	done.Store(true)
	others.Wait()
}

// Threads change their sets, wait and end in any order: a seat has at most one owner, which has the CPU in its set, and no thread
// waits for ever.
func TestSeatsAtRandom(t *testing.T) {
	const threads, turns = 8, 3000
	var all sync.WaitGroup
	for n := range threads {
		all.Go(func() {
			c := bound(uint64(n%7 + 1))
			for turn := range turns {
				here := (n + turn) % 3
				for !c.enters(here) {
					if atomic.LoadUint32(&c.page.seat) == unseated {
						c.find(here)
					}
					if seat := atomic.LoadUint32(&c.page.seat); seat != unseated && seat != 0 {
						here = int(seat - 1)
					}
				}
				if c.set>>here&1 == 0 {
					t.Errorf("a thread with the set %b runs on CPU %d", c.set, here)
				}
				switch turn % 5 {
				case 0:
					c.Rest()
				case 1:
					c.Bind(uint64((n+turn)%7 + 1))
				}
			}
			c.Rest()
			places.leave(c)
		})
	}
	all.Wait()
	places.mu.Lock()
	defer places.mu.Unlock()
	if len(places.waiting) != 0 || slices.ContainsFunc(places.seats[:], func(s seat) bool { return s.owner != nil }) {
		t.Error("a seat has an owner after all threads have ended")
	}
}
