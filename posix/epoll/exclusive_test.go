package epoll

import (
	"testing"
	"testing/synctest"

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
