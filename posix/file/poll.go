package file

import (
	"time"

	"loam/abi/linux"
)

// PollFD is struct pollfd.
type PollFD struct {
	FD      int
	Events  Events
	Revents Events
}

// Poll implements poll(2) and ppoll(2), and select(2) once its sets have been decoded. It sets Revents
// and returns the number of entries with events. A negative timeout waits forever, and 0 does not
// wait. Errors: EINTR.
func (d *Table) Poll(fds []PollFD, timeout time.Duration, task Task) (int, linux.Errno) {
	c := polling{table: d, fds: fds, opens: make([]*Description, len(fds))}
	c.open()
	if timeout == 0 {
		return c.look(), 0
	}
	c.bell = make(chan struct{}, 1)
	c.watch.Notify = func(Events) { c.ring() }
	c.enter()
	defer c.leave()
	var expired <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}
	for {
		if n := c.look(); n > 0 {
			return n, 0
		}
		switch task.Wait(c.bell, expired) {
		case Late:
			return 0, 0
		case Interrupted:
			return 0, linux.EINTR
		}
	}
}

// polling is the state of one call of Poll.
type polling struct {
	table *Table
	fds   []PollFD
	opens []*Description // open file description of each entry; nil: the descriptor is not open
	watch Watch
	bell  chan struct{} // capacity 1; watches send, Poll receives; never closed; if it is full, Poll is about to check all entries
	fixed int           // number of entries whose descriptor is not open
	// watched contains the queues in which the watch is registered, so that it is registered once if several entries refer
	// to one file. nil: all entries refer to different files.
	watched map[*Queue]bool
}

func (c *polling) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// open finds the files of all entries.
func (c *polling) open() {
	for i := range c.fds {
		f := &c.fds[i]
		f.Revents = 0
		if f.FD < 0 {
			continue
		}
		if c.opens[i] = c.table.Get(f.FD); c.opens[i] == nil {
			f.Revents = PollNval
			c.fixed++
		}
	}
}

// enter registers the watch once with each file.
func (c *polling) enter() {
	const few = 8 // up to this number of entries, registering a file twice costs less than a map of the registered files
	if len(c.fds) > few {
		c.watched = make(map[*Queue]bool)
	}
	for _, o := range c.opens {
		if o == nil {
			continue
		}
		q := o.Queue()
		if c.watched == nil {
			q.Add(&c.watch)
		} else if !c.watched[q] {
			c.watched[q] = true
			q.Add(&c.watch)
		}
	}
}

// look sets Revents of all entries and returns the number of entries with events.
func (c *polling) look() int {
	n := c.fixed
	for i, o := range c.opens {
		if o == nil {
			continue
		}
		f := &c.fds[i]
		if f.Revents = o.Events() & (f.Events | PollAlways); f.Revents != 0 {
			n++
		}
	}
	return n
}

func (c *polling) leave() {
	for q := range c.watched {
		q.Remove(&c.watch)
	}
	if c.watched != nil {
		return
	}
	for _, o := range c.opens {
		if o != nil {
			o.Queue().Remove(&c.watch)
		}
	}
}
