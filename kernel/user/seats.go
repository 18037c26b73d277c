package user

import (
	"container/list"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"loam/arch/amd64"
	"loam/kernel"
)

// CPU sets (sched_setaffinity(2)). A set matters only in ring 3. Each CPU has one seat. A thread with a set enters ring 3
// only with the seat of a CPU of its set, and only on this CPU. While another thread has the seat, the goroutine is parked. So a
// thread that waits for its CPU keeps no P and no M, and the CPUs outside the set serve other goroutines meanwhile.
//
// The assembly compares the CPU with page.seat. If they differ, Reason takes a seat (find), and asks package kernel to
// continue on the CPU of the seat, in exchange with the thread that runs there (kernel.CallMove). Two threads with sets never
// exchange the same CPU in turn, because only one of them has the seat.
//
// A thread gives up its seat when it waits in a call (Rest), or if another thread waits for the seat: when it has had the seat for a
// slice of time, or when it has been outside of ring 3 for a while, for example to wait for a disk. The seat then passes to the thread that has waited longest. A thread can lose its seat at any time outside of ring 3:
// page.seat is changed first, and Kick then makes the thread look at it.
//
// The slice begins when the thread that has got the seat continues, however long its goroutine was runnable before. A thread that
// is kicked while it waits keeps its rank. A computing thread without a set takes a turn of the Go scheduler at a time; the
// threads that pass on a seat together take one turn, too, and then yield.
//
// Threads without a set need no seat, and run on all CPUs.

const (
	cpus     = 64        // CPUs in a set, and the maximum of the kernel
	unseated = 1<<32 - 1 // value of page.seat for a thread that has a set and no seat
)

// slice is the time for which a thread keeps its seat while another thread waits for it.
const slice = 3 * time.Millisecond

// look is the interval at which the owner of a seat for which another thread waits is looked at. An owner that has been outside of ring 3
// at two looks, and between them, loses the seat.
const look = slice / 6

// turn is the time after which threads that pass on a seat yield to other goroutines: the time slice of the Go scheduler.
const turn = 10 * time.Millisecond

// places are the seats of the machine.
var places seats

// seats holds the seats of all CPUs. A seat without an owner has no waiting thread.
type seats struct {
	mu      sync.Mutex
	seats   [cpus]seat
	waiting map[uint64]*list.List // of *Context, by the set for whose seats they wait, in the order of arrival
	arrived uint64                // number of threads that have waited
}

// seat is the right to run a thread with a set on one CPU.
type seat struct {
	owner *Context
	since time.Time // when the owner got the seat, or continued with it
	began time.Time // when the turn began of the threads that pass on the seat
	fresh bool      // the owner has waited for the seat, and has not continued yet
	armed bool      // a timer will call expire
	away  bool      // the owner was outside of ring 3 at the last look
	used  uint64    // page.used of the owner at the last look
	begin uint64    // page.used of the owner when its slice began
}

// absent looks at the owner, and reports whether it has been outside of ring 3 since the last look. An owner that has not yet entered ring
// 3 in its slice is not absent. Each entry to ring 3, and each return,
// changes page.used.
func (s *seat) absent() bool {
	page := s.owner.page
	used := atomic.LoadUint64(&page.used) // before the load of cpu: a thread that enters ring 3 changes cpu first
	away := atomic.LoadUint32(&page.cpu) == 0
	was := s.away && used == s.used && used != s.begin
	s.away, s.used = away, used
	return was && away
}

// take gives a thread a free seat of its set, preferably the seat of the CPU here. It returns false if there is none. Then the
// thread waits for a seat until leave.
func (s *seats) take(c *Context, here int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for set := bits.RotateLeft64(c.set, -here); set != 0; set &= set - 1 {
		if cpu := (bits.TrailingZeros64(set) + here) % cpus; s.seats[cpu].owner == nil {
			s.give(c, cpu)
			s.seats[cpu].began = s.seats[cpu].since
			return true
		}
	}
	s.queue(c)
	for set := c.set; set != 0; set &= set - 1 {
		s.arm(bits.TrailingZeros64(set))
	}
	return false
}

// queue adds a thread to the waiting threads. A thread whose wait was ended by Kick returns to its place.
func (s *seats) queue(c *Context) {
	if s.waiting == nil {
		s.waiting = map[uint64]*list.List{}
	}
	line := s.waiting[c.set]
	if line == nil {
		line = list.New()
		s.waiting[c.set] = line
	}
	if c.arrival == 0 {
		s.arrived++
		c.arrival, c.place = s.arrived, line.PushBack(c)
		return
	}
	e := line.Front()
	for e != nil && e.Value.(*Context).arrival < c.arrival {
		e = e.Next()
	}
	if e == nil {
		c.place = line.PushBack(c)
	} else {
		c.place = line.InsertBefore(c, e)
	}
}

// leave ends the wait of a thread, or takes its seat away. The goroutine of the thread calls it.
func (s *seats) leave(c *Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unqueue(c)
	c.arrival = 0
	if seat := atomic.LoadUint32(&c.page.seat); seat != 0 && seat != unseated {
		s.vacate(int(seat - 1))
	}
}

// stay ends the wait of a thread, unless the thread has got a seat. It reports whether the thread has to yield before it calls
// proceed.
func (s *seats) stay(c *Context) (yields bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unqueue(c)
	select {
	case <-c.woken: // the seat and a Kick have both ended the wait
	default:
	}
	yields, c.yields = c.yields, false
	return yields
}

// proceed begins the slice of a thread that has waited, if it has got a seat.
func (s *seats) proceed(c *Context, yielded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seat := atomic.LoadUint32(&c.page.seat)
	if seat == unseated {
		return
	}
	cpu := int(seat - 1)
	own := &s.seats[cpu]
	own.away, own.begin = false, atomic.LoadUint64(&c.page.used)
	if own.fresh, own.since = false, time.Now(); yielded {
		own.began = own.since
	}
	if s.next(cpu) != nil {
		s.arm(cpu)
	}
}

// unqueue removes a thread from the waiting threads.
func (s *seats) unqueue(c *Context) {
	if c.place == nil {
		return
	}
	line := s.waiting[c.set]
	line.Remove(c.place)
	if c.place = nil; line.Len() == 0 {
		delete(s.waiting, c.set)
	}
}

// give gives a thread the free seat of a CPU.
func (s *seats) give(c *Context, cpu int) {
	seat := &s.seats[cpu]
	seat.owner, seat.since, seat.fresh, seat.away = c, time.Now(), false, false
	seat.begin = atomic.LoadUint64(&c.page.used)
	c.arrival = 0
	atomic.StoreUint32(&c.page.seat, uint32(cpu+1))
}

// vacate takes the seat of a CPU from its owner, and gives it to the thread that has waited longest.
func (s *seats) vacate(cpu int) {
	atomic.StoreUint32(&s.seats[cpu].owner.page.seat, unseated)
	s.seats[cpu].owner = nil
	c := s.next(cpu)
	if c == nil {
		return
	}
	s.unqueue(c)
	s.give(c, cpu)
	s.seats[cpu].fresh = true
	c.wake()
}

// next returns the thread that has waited longest for the seat of a CPU; nil if there is none. Its time is proportional to the number
// of different sets of waiting threads, which is at most the number of these threads.
func (s *seats) next(cpu int) (first *Context) {
	for set, line := range s.waiting {
		if c := line.Front().Value.(*Context); set>>cpu&1 != 0 && (first == nil || c.arrival < first.arrival) {
			first = c
		}
	}
	return first
}

// arm makes expire run at the next look, or when the owner of the seat of a CPU has had it for a slice. If the seat is fresh, proceed
// calls arm later.
func (s *seats) arm(cpu int) {
	if seat := &s.seats[cpu]; !seat.armed && !seat.fresh {
		seat.armed = true
		time.AfterFunc(min(look, slice-time.Since(seat.since)), func() { s.expire(cpu) })
	}
}

// expire passes the seat of a CPU on if another thread waits for it, and its owner has had it for a slice or is absent.
func (s *seats) expire(cpu int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seat := &s.seats[cpu]
	seat.armed = false
	switch {
	case seat.fresh || s.next(cpu) == nil:
	case time.Since(seat.since) < slice && !seat.absent():
		s.arm(cpu)
	default:
		old := seat.owner
		s.vacate(cpu)
		seat.owner.yields = time.Since(seat.began) >= turn
		old.Kick()
	}
}

// Bind makes the thread run only on the CPUs of a set; 0 means all CPUs. Bit n of the set stands for CPU n. When Bind returns, the
// thread is in ring 3 on no other CPU. Any goroutine may call Bind, before Close.
func (c *Context) Bind(set uint64) {
	if c.wanted.Swap(set) == set {
		return
	}
	c.Kick()
	for set != 0 {
		n := atomic.LoadUint32(&c.page.cpu)
		if n == 0 || set>>(n-1)&1 != 0 {
			return
		}
		runtime.Gosched() // the interrupt that Kick has sent ends ring 3 soon
	}
}

// rebind puts the set of the last Bind into force. A thread with a set compares its CPU on the next entry to ring 3.
func (c *Context) rebind() {
	if set := c.wanted.Load(); set != c.set {
		places.leave(c)
		seat := uint32(0)
		if c.set = set; set != 0 {
			seat = unseated
			if c.woken == nil {
				c.woken = make(chan struct{}, 1)
			}
		}
		atomic.StoreUint32(&c.page.seat, seat)
		c.observe()
	}
	if c.set != 0 {
		c.page.placed = 0
	}
}

// observe makes enter compare the CPU if necessary.
func (c *Context) observe() {
	c.page.watched = 0
	if c.watches || c.set != 0 {
		c.page.watched = 1
	}
}

// Rest lets other threads use the CPU of a thread with a set. The caller is about to wait, or to let other threads run.
func (c *Context) Rest() {
	if c.set == 0 || atomic.LoadUint32(&c.page.seat) == unseated {
		return
	}
	places.leave(c)
	c.page.placed = 0
}

// find makes the goroutine, which is on the CPU here, continue on the CPU of the thread's seat. The goroutine waits until the
// thread has a seat, or until Kick is called.
func (c *Context) find(here int) {
	if atomic.LoadUint32(&c.page.seat) == unseated && !places.take(c, here) {
		c.park()
	}
	seat := atomic.LoadUint32(&c.page.seat)
	if seat == unseated || int(seat-1) == here {
		return
	}
	saveOwn(c.page) // the other CPU would have to interrupt this one for the x87 state
	kernelCall(kernel.CallMove, uintptr(seat-1), 0)
}

// park waits until the thread has a seat, or until Kick is called. The wait is not CPU time.
//
// The Go scheduler runs a goroutine that was woken before all others. So the goroutine yields at the end of a turn: otherwise threads
// that pass on a seat would keep other goroutines waiting.
func (c *Context) park() {
	began := amd64.Timestamp()
	c.parked.Store(true) // before the load of stop: Kick stores to stop before it loads parked
	if atomic.LoadUint32(&c.page.stop) == 0 {
		<-c.woken
	}
	c.parked.Store(false)
	yields := places.stay(c)
	if yields {
		runtime.Gosched()
	}
	places.proceed(c, yields)
	c.since += amd64.Timestamp() - began
}

// wake ends park.
func (c *Context) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}
