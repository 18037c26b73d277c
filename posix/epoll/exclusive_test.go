package epoll

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/posix/file"
)

// exclusiveSets returns n sets with the same source as an exclusive item. A thread waits in each set; the returned channel receives
// the number of the set when its thread has an event.
func exclusiveSets(t *testing.T, n int, flags uint32) (*source, []*Set, chan int) {
	s, woken := &source{}, make(chan int, n)
	o := file.NewDescription(s, linux.O_RDWR)
	sets := make([]*Set, n)
	for i := range sets {
		sets[i] = &Set{}
		if errno := sets[i].Add(3, o, Event{Events: uint32(linux.POLLIN) | linux.EPOLLEXCLUSIVE | flags}); errno != 0 {
			t.Fatal(errno)
		}
		wait(sets[i], func() { woken <- i })
	}
	synctest.Wait()
	return s, sets, woken
}

// wait lets a thread wait in a set, and calls then when it has an event.
func wait(e *Set, then func()) {
	go func() {
		sleeper := file.NewSleeper(e.Queue(), 0, file.Task{})
		defer sleeper.Leave()
		if n, errno := e.Wait(make([]Event, 1), sleeper); n == 1 && errno == 0 {
			then()
		}
	}()
}

// An event of an exclusive item wakes one thread, and each further event one more, in the order of registration. An error wakes
// all threads.
func TestExclusive(t *testing.T) {
	for _, flags := range []uint32{0, linux.EPOLLET} {
		synctest.Test(t, func(t *testing.T) {
			s, _, woken := exclusiveSets(t, 4, flags)
			for i := range 2 {
				s.become(file.PollIn)
				synctest.Wait()
				if got := <-woken; got != i || len(woken) != 0 {
					t.Errorf("flags %#x: event %d woke set %d and %d more", flags, i, got, len(woken))
				}
			}
			s.become(file.PollIn | file.PollHup)
			synctest.Wait()
			if len(woken) != 2 {
				t.Errorf("flags %#x: the end woke %d threads, want 2", flags, len(woken))
			}
		})
	}
}

// An event wakes no thread in vain: sets without a waiter do not use it up, but find it later. An ordinary item gets each event.
func TestExclusiveWithoutWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sets, woken := exclusiveSets(t, 3, 0)
		s.become(file.PollIn)
		synctest.Wait()
		<-woken // the thread of the first set is busy now

		ordinary := &Set{}
		ordinary.Add(4, file.NewDescription(s, linux.O_RDWR), Event{Events: uint32(linux.POLLIN)})
		s.become(file.PollIn)
		synctest.Wait()
		if got := <-woken; got != 1 || len(woken) != 0 {
			t.Errorf("woke set %d and %d more, want only set 1", got, len(woken))
		}
		if ready(ordinary, 1) == nil || ready(sets[0], 1) == nil {
			t.Error("a set without a waiter has no event")
		}
		s.become(file.PollHup) // ends the thread of the last set
	})
}

// A set that is not exclusive any more, because its item was removed and added again, gets all events.
func TestExclusiveAddedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		o := file.NewDescription(s, linux.O_RDWR)
		first, second := &Set{}, &Set{}
		woken := make(chan int, 2)
		first.Add(3, o, Event{Events: uint32(linux.POLLIN) | linux.EPOLLEXCLUSIVE})
		second.Add(3, o, Event{Events: uint32(linux.POLLIN) | linux.EPOLLEXCLUSIVE})
		second.Remove(3, o)
		second.Add(3, o, Event{Events: uint32(linux.POLLIN)})
		wait(first, func() { woken <- 0 })
		wait(second, func() { woken <- 1 })
		synctest.Wait()
		s.become(file.PollIn)
		synctest.Wait()
		if len(woken) != 2 {
			t.Errorf("%d threads were woken, want 2", len(woken))
		}
	})
}

// A thread that has other work, because it has just found an event, does not use up the next event.
func TestExclusiveWhileCollecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		o := file.NewDescription(s, linux.O_RDWR)
		busy, idle, woken := &Set{}, &Set{}, make(chan int, 2)
		for _, e := range []*Set{busy, idle} {
			e.Add(3, o, Event{Events: uint32(linux.POLLIN) | linux.EPOLLEXCLUSIVE | linux.EPOLLET})
		}
		s.become(file.PollIn)
		ready(idle, 1) // the event of an edge is over for this set, and the busy set has not asked yet
		wait(idle, func() { woken <- 1 })
		synctest.Wait()
		s.asked = func() { s.become(file.PollIn) }
		wait(busy, func() { woken <- 0 })
		synctest.Wait()
		if len(woken) != 2 {
			t.Errorf("%d threads were woken, want 2", len(woken))
		}
		idle.Close()
	})
}

// A notification that arrives after its item was removed does not use up the event, although a thread sleeps in the set.
func TestExclusiveRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, sets, _ := exclusiveSets(t, 1, 0)
		for it := range sets[0].items.all() {
			sets[0].Remove(it.fd, it.open)
			if it.watch.Exclusive(file.PollIn) {
				t.Error("the event is used up")
			}
		}
		sets[0].Close()
	})
}

// If the set of the woken thread is closed, or its item is removed, while the file is still ready, another set gets the event.
func TestExclusivePassedOn(t *testing.T) {
	for name, leave := range map[string]func(*Set, *file.Description){
		"close":  func(e *Set, _ *file.Description) { e.Close() },
		"remove": func(e *Set, o *file.Description) { e.Remove(3, o) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{}
			o := file.NewDescription(s, linux.O_RDWR)
			sets, woken := [3]Set{}, make(chan int, 3)
			for i := range sets {
				sets[i].Add(3, o, Event{Events: uint32(linux.POLLIN) | linux.EPOLLEXCLUSIVE})
				wait(&sets[i], func() { woken <- i })
			}
			synctest.Wait()
			s.become(file.PollIn)
			synctest.Wait()
			leave(&sets[0], o)
			synctest.Wait()
			if <-woken != 0 || len(woken) != 1 || <-woken != 1 {
				t.Errorf("%s: set 1 was not woken, or set 2 was", name)
			}
			sets[2].Close()
			sets[1].Close()
		})
	}
}

// EPOLL_CTL_MOD of an exclusive item is an error, as on Linux.
func TestExclusiveChange(t *testing.T) {
	e, o := &Set{}, file.NewDescription(&source{}, linux.O_RDWR)
	e.Add(3, o, Event{Events: uint32(linux.POLLIN) | linux.EPOLLEXCLUSIVE})
	if errno := e.Change(3, o, Event{Events: uint32(linux.POLLIN)}); errno != linux.EINVAL {
		t.Error(errno)
	}
}

// tokens is a file that is readable while it has tokens. Each call of put is an event.
type tokens struct {
	source
	left atomic.Int32
}

func (f *tokens) Events() file.Events {
	if f.left.Load() > 0 {
		return file.PollIn
	}
	return 0
}

func (f *tokens) put() {
	f.left.Add(1)
	f.q.Notify(file.PollIn)
}

// take takes a token, if one is left.
func (f *tokens) take() bool {
	for n := f.left.Load(); n > 0; n = f.left.Load() {
		if f.left.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// A thread takes one token and is then busy forever. No token is left over while a thread sleeps, whatever the number of sets and of
// threads for each, and even if a signal or the time ends the wait of the thread that was woken. Such a thread closes its set.
func TestNoLostWakeup(t *testing.T) {
	const sets, puts = 4, 6
	for seed := range 80 {
		flags := []uint32{linux.EPOLLEXCLUSIVE, linux.EPOLLEXCLUSIVE | linux.EPOLLET, 0, linux.EPOLLET}[seed%4]
		threads := 2 + seed/4%2*2
		if flags&linux.EPOLLET != 0 {
			threads = 1 // with edges, a thread must take all tokens
		}
		synctest.Test(t, func(t *testing.T) {
			f := &tokens{}
			o := file.NewDescription(f, linux.O_RDWR)
			var taken, sleeping atomic.Int32
			var interrupts [sets]*file.Interrupt
			var all [sets]Set
			for i := range all {
				e := &all[i]
				e.Add(3, o, Event{Events: uint32(linux.POLLIN) | flags})
				interrupts[i] = file.NewInterrupt()
				for j := range threads {
					task, timeout := file.Task{}, time.Duration(0)
					if j == 0 {
						task.Interrupt = interrupts[i]
						timeout = time.Duration(i%2) * time.Second
					}
					go func() {
						sleeping.Add(1)
						defer sleeping.Add(-1)
						for {
							sleeper := file.NewSleeper(e.Queue(), timeout, task)
							n, errno := e.Wait(make([]Event, 1), sleeper)
							sleeper.Leave()
							if errno == linux.EBADF {
								return
							}
							if n <= 0 {
								if j == 0 && threads == 1 {
									e.Close()
								}
								return
							}
							for f.take() {
								taken.Add(1)
								if flags&linux.EPOLLET == 0 {
									return
								}
							}
						}
					}()
				}
			}
			synctest.Wait()
			if seed%8 >= 4 {
				time.Sleep(time.Second - time.Nanosecond)
				go func() { time.Sleep(time.Nanosecond); interrupts[0].Raise() }()
				time.Sleep(time.Nanosecond)
			}
			for range puts / 2 {
				go f.put()
				go f.put()
			}
			synctest.Wait()
			if sleeping.Load() > 0 && f.left.Load() > 0 {
				t.Errorf("flags %#x, %d threads in each set: %d tokens are left, %d threads sleep", flags, threads, f.left.Load(), sleeping.Load())
			}
			for i := range all {
				all[i].Close()
			}
		})
	}
}

// A set with several threads: while one of them asks the files, another one begins to sleep. It gets what the first thread leaves: an
// event for which its result has no room, and a file that is still ready.
func TestSecondThread(t *testing.T) {
	for n := range 2 {
		synctest.Test(t, func(t *testing.T) {
			e, woken := &Set{}, make(chan int, 1)
			var sources [2]source
			for i := range n + 1 {
				e.Add(i, file.NewDescription(&sources[i], linux.O_RDWR), Event{Events: uint32(linux.POLLIN)})
				sources[i].become(file.PollIn)
			}
			sources[0].asked = func() {
				wait(e, func() { woken <- 1 })
				synctest.Wait()
			}
			ready(e, 1)
			synctest.Wait()
			if len(woken) != 1 {
				t.Errorf("%d items: the second thread sleeps", n+1)
			}
			e.Close()
		})
	}
}

// If a signal, or the end of its time, wakes a thread together with an event, then the thread returns the event, or another set gets it.
func TestExclusiveInterrupted(t *testing.T) {
	for i := range 40 {
		synctest.Test(t, func(t *testing.T) {
			s, interrupt, timeout := &source{now: file.PollIn}, file.NewInterrupt(), time.Duration(0)
			o := file.NewDescription(s, linux.O_RDWR)
			end := func(file.Events) { interrupt.Raise() }
			if i%2 == 1 {
				timeout, end = time.Second, func(file.Events) {}
			}
			s.q.Add(&file.Watch{Notify: end})
			var sets [2]Set
			woken := make(chan int, 2)
			for i := range sets {
				sets[i].Add(3, o, Event{Events: uint32(linux.POLLIN) | linux.EPOLLEXCLUSIVE | linux.EPOLLET})
				ready(&sets[i], 1)
			}
			go func() {
				sleeper := file.NewSleeper(sets[0].Queue(), timeout, file.Task{Interrupt: interrupt})
				defer sleeper.Leave()
				if n, _ := sets[0].Wait(make([]Event, 1), sleeper); n == 1 {
					woken <- 0
				}
			}()
			wait(&sets[1], func() { woken <- 1 })
			synctest.Wait()
			time.Sleep(timeout)
			s.q.Notify(file.PollIn)
			synctest.Wait()
			if len(woken) == 0 {
				t.Error("no thread has the event")
			}
			sets[1].Close()
		})
	}
}
