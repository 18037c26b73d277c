package epoll

import (
	"fmt"
	"strings"
	"sync"

	"loam/abi/linux"
	"loam/posix/file"
)

// Event is struct epoll_event: a set of EPOLL* bits, and a value that epoll returns unchanged.
type Event struct {
	Events uint32
	Data   uint64
}

// Set is an epoll set (epoll(7)). Each item registers a watch in the queue of its file. When the file
// becomes ready, the watch puts the item on the ready list and wakes the waiters of the set. The set is
// itself a file.
//
// An item on the ready list is only a candidate: collect asks its file again. An item that is still
// ready and level-triggered returns to the list, so that the next call asks again. An item that is not
// ready leaves the list; the query has made its file report the next event.
type Set struct {
	q file.Queue

	mu    sync.Mutex // guards items and closed; acquired before ready.mu
	items itemTable
	// last is the item that was removed last, which Add uses again for the same file; nil: none. It keeps the memory of one
	// open file description until the next Remove or the end of the set. The file itself is closed without regard to it.
	last   *item
	closed bool

	ready readyList
}

// itemKey is the key of an item in a set: a descriptor number and its open file description.
type itemKey struct {
	fd   int
	open *file.Description
}

type item struct {
	itemKey
	set   *Set
	watch file.Watch
	// event is read with set.mu or set.ready.mu locked, and written with both locked.
	event Event
	// Guarded by set.ready.mu:
	queued bool // the item is on the ready list
	reuses uint // how often Add has used the item again
	gone   bool // the file has been closed, or the item has been removed from the set
	spent  bool // an event has been reported, and EPOLLONESHOT disables further ones
}

// readyList is the list of items that may be ready. Watches append to it from other goroutines. No other lock is acquired
// while its lock is held.
type readyList struct {
	mu    sync.Mutex
	items []*item
	spare []*item // empty slice for new items, whose storage is used again; nil while Collect uses the storage
	// sleeping is the number of threads in Set.Wait that found the list empty. Such a thread calls Collect before it returns, after
	// it no longer counts.
	sleeping int
}

// mostSpare is the maximum capacity of a slice that is kept in spare.
const mostSpare = 1024

// take takes all items off the list. If it returns any, the caller calls recycle.
func (r *readyList) take() []*item {
	r.mu.Lock()
	items := r.items
	if len(items) > 0 {
		r.items, r.spare = r.spare, nil
	}
	for _, it := range items {
		it.queued = false
	}
	r.mu.Unlock()
	return items
}

// recycle keeps the storage of a slice that take has returned. It reports whether items are on the list although threads sleep: they
// found the list empty after take, or have already been woken.
func (r *readyList) recycle(items []*item) (wake bool) {
	clear(items)
	r.mu.Lock()
	if cap(items) <= mostSpare {
		r.spare = items[:0]
	}
	wake = r.sleeping > 0 && len(r.items) > 0
	r.mu.Unlock()
	return wake
}

// Name implements file.Named.
func (e *Set) Name() string { return "anon_inode:[eventpoll]" }

// mostDetails is the maximum number of items that Details shows. A process may have a million descriptors, and each open file
// fdinfo keeps its text.
const mostDetails = 16384

// Details implements file.Detailed. It does not lock the ready list, whose lock the network takes, and holds mu only while it
// copies the items.
func (e *Set) Details() string {
	type registration struct {
		fd    int
		event Event
	}
	var all []registration
	e.mu.Lock()
	for it := range e.items.all() {
		if len(all) == mostDetails {
			break
		}
		all = append(all, registration{it.fd, it.event})
	}
	e.mu.Unlock()
	var b strings.Builder
	for _, r := range all {
		fmt.Fprintf(&b, "tfd: %8d events: %8x data: %16x\n", r.fd, r.event.Events|uint32(file.PollAlways), r.event.Data)
	}
	return b.String()
}

func (e *Set) Queue() *file.Queue                { return &e.q }
func (e *Set) Mode() uint32                      { return 0o600 }
func (e *Set) Read(b []byte) (int, linux.Errno)  { return 0, linux.EINVAL }
func (e *Set) Write(b []byte) (int, linux.Errno) { return 0, linux.EINVAL }

// wants reports whether events of the file may make the item ready. A socket that notifies of PollOut may also be ready for
// PollBand.
func (it *item) wants(ev file.Events) bool {
	if ev&file.PollOut != 0 {
		ev |= file.PollBand
	}
	return uint32(ev)&(it.event.Events|uint32(file.PollAlways)) != 0
}
func (it *item) exclusive() bool       { return it.event.Events&linux.EPOLLEXCLUSIVE != 0 }
func (it *item) edge() bool            { return it.event.Events&linux.EPOLLET != 0 }
func (it *item) interest() file.Events { return file.Events(it.event.Events)&0xffff | file.PollAlways }

// notice is called when the file of the item becomes ready. It puts the item on the ready list and wakes the waiters of the
// set. It reports whether this event serves a thread: one sleeps in Wait, has no other event, and will ask the file. So if the item
// is gone, or if the list was not empty, notice returns false.
func (it *item) notice(ev file.Events) bool {
	e := it.set
	e.ready.mu.Lock()
	if ev&file.PollGone != 0 {
		it.gone = true
	}
	ring := !it.queued && (it.gone || !it.spent && it.wants(ev))
	serves := ring && !it.gone && e.ready.sleeping > 0 && len(e.ready.items) == 0
	if ring {
		it.queued = true
		e.ready.items = append(e.ready.items, it)
	}
	e.ready.mu.Unlock()
	if ring {
		e.q.Notify(file.PollIn)
	}
	return serves
}

// Add implements EPOLL_CTL_ADD.
func (e *Set) Add(fd int, o *file.Description, ev Event) linux.Errno {
	key := itemKey{fd, o}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.items.find(key) != nil {
		return linux.EEXIST
	}
	it := e.newItem(key, ev)
	e.items.add(it)
	if it.edge() || it.exclusive() { // the next arrival may be for the waiter of another set
		o.Queue().WantEvery()
	}
	o.Queue().Add(&it.watch)
	it.notice(o.Events())
	return 0
}

// newItem returns an item for the set. Event loops remove a file and add it again for each request, so the item that was removed last
// is used again for the same file. It may still be on the ready list, and a late notification for it is about the same file.
// The caller holds mu.
func (e *Set) newItem(key itemKey, ev Event) *item {
	it := e.last
	if it == nil || it.itemKey != key || (it.event.Events^ev.Events)&linux.EPOLLEXCLUSIVE != 0 {
		it = &item{itemKey: key, set: e, event: ev}
		if it.exclusive() {
			it.watch.Exclusive = it.notice
		} else {
			it.watch.Notify = func(ev file.Events) { it.notice(ev) }
		}
		return it
	}
	e.last = nil
	e.ready.mu.Lock()
	it.event, it.gone, it.spent = ev, false, false
	it.reuses++
	queued := it.queued
	e.ready.mu.Unlock()
	if queued { // then a notice of the file wakes no waiter
		e.q.Notify(file.PollIn)
	}
	return it
}

// Change implements EPOLL_CTL_MOD. Errors: ENOENT, EINVAL for an exclusive item.
func (e *Set) Change(fd int, o *file.Description, ev Event) linux.Errno {
	e.mu.Lock()
	defer e.mu.Unlock()
	it := e.items.find(itemKey{fd, o})
	if it == nil {
		return linux.ENOENT
	}
	if it.exclusive() {
		return linux.EINVAL
	}
	e.ready.mu.Lock()
	it.event, it.spent = ev, false
	e.ready.mu.Unlock()
	if it.edge() {
		o.Queue().WantEvery()
	}
	it.notice(o.Events())
	return 0
}

// Remove implements EPOLL_CTL_DEL.
func (e *Set) Remove(fd int, o *file.Description) linux.Errno {
	it, errno := e.remove(itemKey{fd, o})
	if errno == 0 {
		it.passOn()
	}
	return errno
}

// passOn is called after an exclusive item has left its set. An event that was meant for a thread of the set may be unhandled, so
// passOn reports the events of the file to the exclusive items of other sets. The caller holds no lock.
func (it *item) passOn() {
	if it.exclusive() {
		if now := it.open.Events() & it.interest(); now != 0 {
			it.open.Queue().NotifyExclusive(now)
		}
	}
}

func (e *Set) remove(key itemKey) (*item, linux.Errno) {
	e.mu.Lock()
	defer e.mu.Unlock()
	it := e.items.find(key)
	if it == nil {
		return nil, linux.ENOENT
	}
	e.items.remove(it)
	key.open.Queue().Remove(&it.watch)
	e.ready.mu.Lock()
	it.gone = true
	e.ready.mu.Unlock()
	e.last = it
	return it, 0
}

// Collect stores the events of ready items in events and returns their number.
func (e *Set) Collect(events []Event) int {
	candidates := e.ready.take()
	if len(candidates) == 0 {
		return 0
	}
	n := 0
	for i, it := range candidates {
		if n == len(events) {
			e.putBack(candidates[i:])
			break
		}
		if ev, ok := e.ask(it); ok {
			events[n] = ev
			n++
		}
	}
	if e.ready.recycle(candidates) { // the caller may not return for these items soon
		e.q.Notify(file.PollIn)
	}
	return n
}

// Wait waits until items are ready, stores their events in events, and returns their number. The sleeper is registered with the queue
// of the set. If its time is up, Wait returns 0. Errors: EINTR, and EBADF if the set is closed. An event that served the thread while
// it was interrupted, or when its time was up, is returned, because no other thread may know it.
func (e *Set) Wait(events []Event, s *file.Sleeper) (int, linux.Errno) {
	for {
		errno := e.sleep(s)
		n := e.Collect(events)
		switch {
		case n > 0 || errno == linux.EAGAIN:
			return n, 0
		case errno != 0:
			return -1, errno
		case e.IsClosed():
			return -1, linux.EBADF
		}
	}
}

// sleep waits once if the ready list is empty, and returns the result of Sleeper.Sleep.
func (e *Set) sleep(s *file.Sleeper) linux.Errno {
	r := &e.ready
	r.mu.Lock()
	empty := len(r.items) == 0
	if empty {
		r.sleeping++
	}
	r.mu.Unlock()
	if !empty {
		return 0
	}
	errno := s.Sleep()
	r.mu.Lock()
	r.sleeping--
	r.mu.Unlock()
	return errno
}

// ask asks the file of an item from the ready list for its events. It returns these events, and whether the item is ready.
func (e *Set) ask(it *item) (Event, bool) {
	e.ready.mu.Lock()
	gone, spent, reuses := it.gone, it.spent, it.reuses
	e.ready.mu.Unlock()
	if gone {
		e.forget(it)
	}
	if gone || spent {
		return Event{}, false
	}
	now := it.open.Events()
	e.ready.mu.Lock()
	ev := Event{Events: uint32(now & it.interest()), Data: it.event.Data}
	again := it.reuses != reuses // then now may be older than the registration to which the event would belong
	if again {
		ev.Events = 0
	}
	switch {
	case again && !it.queued:
		it.queued = true
		e.ready.items = append(e.ready.items, it)
	case ev.Events == 0:
	case it.event.Events&linux.EPOLLONESHOT != 0:
		it.spent = true
	case !it.edge() && !it.queued:
		it.queued = true
		e.ready.items = append(e.ready.items, it)
	}
	e.ready.mu.Unlock()
	return ev, ev.Events != 0
}

// putBack inserts items at the front of the ready list, before items that have been reported. The result of the last call
// had no room for their events.
func (e *Set) putBack(items []*item) {
	e.ready.mu.Lock()
	defer e.ready.mu.Unlock()
	var front []*item
	for _, it := range items {
		if !it.queued {
			it.queued = true
			front = append(front, it)
		}
	}
	e.ready.items = append(front, e.ready.items...)
}

// forget removes an item whose file has been closed. It does nothing if Add uses the item again meanwhile.
func (e *Set) forget(it *item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ready.mu.Lock()
	gone := it.gone
	e.ready.mu.Unlock()
	if gone {
		e.items.remove(it)
	}
}

// Events reports the set as readable if its ready list is not empty. An item on the list may no longer be ready, so the
// report may be wrong. A ready item is never missed.
func (e *Set) Events() file.Events {
	e.ready.mu.Lock()
	defer e.ready.mu.Unlock()
	if len(e.ready.items) > 0 {
		return file.PollIn
	}
	return 0
}

func (e *Set) Close() {
	e.mu.Lock()
	items := e.items
	e.items, e.last, e.closed = itemTable{}, nil, true
	e.mu.Unlock()
	for it := range items.all() {
		it.open.Queue().Remove(&it.watch)
		it.passOn()
	}
	e.q.Notify(file.PollIn | file.PollHup)
}

// maxNesting is the number of sets that may be nested in another set.
const maxNesting = 4

// Reaches reports whether e contains inner, directly or through other sets. It also returns true if sets are nested more
// than maxNesting deep in e. Sets that contain e are not counted.
func (e *Set) Reaches(inner *Set, depth int) bool {
	if e == inner || depth > maxNesting {
		return true
	}
	e.mu.Lock()
	var sets []*Set
	for it := range e.items.all() {
		if s, ok := it.open.File.(*Set); ok {
			sets = append(sets, s)
		}
	}
	e.mu.Unlock()
	for _, s := range sets {
		if s.Reaches(inner, depth+1) {
			return true
		}
	}
	return false
}

func (e *Set) IsClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
