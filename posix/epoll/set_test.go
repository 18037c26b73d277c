package epoll

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/internal/race"
	"loam/posix/file"
)

// source is a file that is ready when the test says so.
type source struct {
	q     file.Queue
	now   file.Events
	asked func() // called by the next call of Events, after it has determined its result
}

func (s *source) Events() file.Events {
	now, asked := s.now, s.asked
	if asked != nil { // only then: goroutines that share a source without the function do not race
		s.asked = nil
		asked()
	}
	return now
}

func (s *source) Queue() *file.Queue              { return &s.q }
func (s *source) Read([]byte) (int, linux.Errno)  { return 0, linux.EAGAIN }
func (s *source) Write([]byte) (int, linux.Errno) { return 0, linux.EAGAIN }
func (s *source) Close()                          {}
func (s *source) Mode() uint32                    { return 0 }

// become changes which events of the source are ready, and reports them.
func (s *source) become(e file.Events) {
	s.now = e
	s.q.Notify(e)
}

// ready returns the user data of the events that a set reports in one call, at most n.
func ready(e *Set, n int) (data []uint64) {
	events := make([]Event, n)
	for _, ev := range events[:e.Collect(events)] {
		data = append(data, ev.Data)
	}
	return data
}

func newSet(t *testing.T, n int, events uint32) (*Set, []*source, []*file.Description) {
	t.Helper()
	e := &Set{}
	var sources []*source
	var opens []*file.Description
	for i := range n {
		s := &source{}
		o := file.NewDescription(s, linux.O_RDWR)
		if errno := e.Add(i, o, Event{Events: events, Data: uint64(i)}); errno != 0 {
			t.Fatal(errno)
		}
		sources, opens = append(sources, s), append(opens, o)
	}
	return e, sources, opens
}

// A level-triggered item is reported as long as it is ready, an edge-triggered one once for each arrival, and one with
// EPOLLONESHOT once until it is changed.
func TestTriggers(t *testing.T) {
	for _, c := range []struct {
		flags uint32
		// counts has the numbers of events that four calls report: after an arrival, after nothing, after an arrival,
		// and after a change of the item.
		counts []int
	}{
		{0, []int{1, 1, 1, 1}}, {linux.EPOLLET, []int{1, 0, 1, 1}}, {linux.EPOLLONESHOT, []int{1, 0, 0, 1}},
	} {
		e, sources, opens := newSet(t, 1, uint32(file.PollIn)|c.flags)
		steps := []func(){
			func() { sources[0].become(file.PollIn) }, func() {}, func() { sources[0].become(file.PollIn) },
			func() { e.Change(0, opens[0], Event{Events: uint32(file.PollIn) | c.flags}) },
		}
		for i, step := range steps {
			step()
			if n := len(ready(e, 8)); n != c.counts[i] {
				t.Errorf("flags %#x, step %d: %d events, want %d", c.flags, i, n, c.counts[i])
			}
		}
	}
}

// Ready items that do not fit into the result of one call come first in the result of the next call.
func TestCollectIsFair(t *testing.T) {
	e, sources, _ := newSet(t, 5, uint32(file.PollIn))
	for _, s := range sources {
		s.become(file.PollIn)
	}
	var got []uint64
	for range 5 {
		got = append(got, ready(e, 2)...)
	}
	if want := []uint64{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A file that is removed and added again is reported as the second call of Add requires, also while it is on the ready list, and
// its item is used again. Each call of Add wakes waiters if the file is ready.
func TestAddAgain(t *testing.T) {
	e, sources, opens := newSet(t, 1, uint32(file.PollIn)|linux.EPOLLONESHOT)
	woken := 0
	w := &file.Watch{Notify: func(file.Events) { woken++ }}
	e.Queue().Add(w)
	sources[0].become(file.PollIn)
	for i, queued := range []bool{true, false, true} {
		if !queued {
			ready(e, 8)
		}
		woken = 0
		e.Remove(0, opens[0])
		if queued && len(ready(e, 0)) > 0 {
			t.Error("a removed file is reported")
		}
		e.Add(0, opens[0], Event{Events: uint32(file.PollIn), Data: uint64(10 + i)})
		if woken == 0 {
			t.Errorf("step %d: no waiter is woken", i)
		}
		if got := ready(e, 8); !slices.Equal(got, []uint64{uint64(10 + i)}) {
			t.Errorf("step %d: %v is reported", i, got)
		}
	}
	e.Remove(0, opens[0])
	other := file.NewDescription(&source{now: file.PollIn}, linux.O_RDWR)
	e.Add(0, other, Event{Events: uint32(file.PollIn), Data: 20})
	if got := ready(e, 8); !slices.Equal(got, []uint64{20}) {
		t.Errorf("another file with the same descriptor: %v", got)
	}
}

// A file that is removed and added again while a set asks it is not reported as it was before.
func TestAddAgainDuringQuery(t *testing.T) {
	e, sources, opens := newSet(t, 1, uint32(file.PollIn))
	s := sources[0]
	s.become(file.PollIn)
	s.asked = func() {
		e.Remove(0, opens[0])
		s.now = 0
		e.Add(0, opens[0], Event{Events: uint32(file.PollIn), Data: 1})
	}
	for range 2 {
		if got := ready(e, 8); got != nil {
			t.Errorf("%v is reported, although the file is not ready", got)
		}
	}
	s.become(file.PollIn)
	if got := ready(e, 8); !slices.Equal(got, []uint64{1}) {
		t.Errorf("%v is reported", got)
	}
}

// Waiters, changes and events may run at the same time.
func TestAddAgainWhileOthersCollect(t *testing.T) {
	e, sources, opens := newSet(t, 1, uint32(file.PollIn))
	stop := make(chan struct{})
	var others sync.WaitGroup
	for _, f := range []func(){func() { ready(e, 8) }, func() { sources[0].q.Notify(file.PollIn) }} {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	for range 2000 {
		if e.Remove(0, opens[0]) != 0 || e.Add(0, opens[0], Event{Events: uint32(file.PollIn)}) != 0 {
			t.Error("the item is lost")
			break
		}
	}
	close(stop)
	others.Wait()
	sources[0].now = file.PollIn
	sources[0].become(file.PollIn)
	if n := len(ready(e, 8)); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

// Items are found by descriptor and description: also large descriptors, and a descriptor that is used again while the file of
// its old item is open.
func TestItems(t *testing.T) {
	e, sources, opens := newSet(t, 2, uint32(file.PollIn))
	other := &source{}
	o := file.NewDescription(other, linux.O_RDWR)
	for _, fd := range []int{1, 1 << 20} {
		if errno := e.Add(fd, o, Event{Events: uint32(file.PollIn), Data: uint64(100 + fd)}); errno != 0 {
			t.Fatal(errno)
		}
		if errno := e.Add(fd, o, Event{}); errno != linux.EEXIST {
			t.Errorf("descriptor %d added twice: %v", fd, errno)
		}
	}
	sources[1].become(file.PollIn)
	other.become(file.PollIn)
	if got := ready(e, 8); !slices.Equal(got, []uint64{1, 101, 100 + 1<<20}) {
		t.Errorf("%v", got)
	}
	for _, errno := range []linux.Errno{e.Remove(1, o), e.Remove(1<<20, o), e.Change(1, opens[1], Event{Data: 5}), e.Remove(1, opens[1])} {
		if errno != 0 {
			t.Error(errno)
		}
	}
	if errno := e.Remove(1, o); errno != linux.ENOENT {
		t.Errorf("removed twice: %v", errno)
	}
	n := 0
	for range e.items.all() {
		n++
	}
	if n != 1 {
		t.Errorf("%d items, want 1", n)
	}
}

// The lines of fdinfo are made without the lock of the ready list, which a notification of a file needs.
func TestDetailsBlockNoNotice(t *testing.T) {
	e, _, _ := newSet(t, 2, uint32(file.PollIn))
	made := make(chan string, 1)
	e.ready.mu.Lock()
	go func() { made <- e.Details() }()
	select {
	case text := <-made:
		const want = "tfd:        0 events:       59 data:                0\ntfd:        1 events:       59 data:                1\n"
		if text != want {
			t.Errorf("%q, want %q", text, want)
		}
	case <-time.After(time.Minute):
		t.Error("Details waits for the lock of the ready list")
	}
	e.ready.mu.Unlock()
}

// The text of fdinfo is bounded.
func TestDetailsAreBounded(t *testing.T) {
	e := &Set{}
	for fd := range mostDetails + 10 {
		e.items.add(&item{itemKey: itemKey{fd: fd}})
	}
	if n := strings.Count(e.Details(), "\n"); n != mostDetails {
		t.Errorf("%d lines, want %d", n, mostDetails)
	}
}

// A closed file and a removed item are not reported, also if they were ready.
func TestGoneItems(t *testing.T) {
	e, sources, opens := newSet(t, 3, uint32(file.PollIn))
	for _, s := range sources {
		s.become(file.PollIn)
	}
	sources[0].become(file.PollIn | file.PollGone)
	if errno := e.Remove(1, opens[1]); errno != 0 {
		t.Error(errno)
	}
	if got := ready(e, 8); !slices.Equal(got, []uint64{2}) {
		t.Errorf("%v", got)
	}
	if errno := e.Remove(1, opens[1]); errno != linux.ENOENT {
		t.Errorf("removed twice: %v", errno)
	}
}

func TestCollectAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	e, sources, opens := newSet(t, 4, uint32(file.PollIn))
	events := make([]Event, 8)
	collect := func() {
		e.Remove(2, opens[2])
		e.Add(2, opens[2], Event{Events: uint32(file.PollIn)})
		for _, s := range sources {
			s.become(file.PollIn)
		}
		e.Collect(events)
	}
	collect()
	collect()
	if n := testing.AllocsPerRun(100, collect); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
