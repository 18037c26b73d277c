package posix

import (
	"time"

	"loam/abi/linux"
	"loam/posix/file"
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
func (p *Process) Poll(fds []PollFD, timeout time.Duration) (int, Errno) {
	c := polling{p: p, fds: fds, opens: make([]*file.Description, len(fds)), bell: make(chan struct{}, 1)}
	defer c.leave()
	c.watch.Notify = func(Events) { c.ring() }
	c.enter()
	var expired <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}
	for {
		if n := c.look(); n > 0 || timeout == 0 {
			return n, 0
		}
		if done, errno := p.awaitEvent(c.bell, expired); done {
			return 0, errno
		}
	}
}

// awaitEvent waits for an event. It returns true if the time is up, or with EINTR for an interrupt.
func (p *Process) awaitEvent(bell <-chan struct{}, expired <-chan time.Time) (done bool, errno Errno) {
	p.who.asleep(true)
	defer p.who.asleep(false)
	select {
	case <-bell:
		return false, 0
	case <-expired:
		return true, 0
	case <-p.interrupt:
		return true, linux.EINTR
	}
}

// polling is one call of Poll.
type polling struct {
	p     *Process
	fds   []PollFD
	opens []*file.Description // nil for a descriptor that is not open
	watch file.Watch
	bell  chan struct{} // capacity 1; watches send, Poll receives; never closed; full: Poll will look anyway
	fixed int           // entries for descriptors that are not open
}

func (c *polling) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// enter registers the watch with every file.
func (c *polling) enter() {
	for i := range c.fds {
		f := &c.fds[i]
		f.Revents = 0
		if f.FD < 0 {
			continue
		}
		if c.opens[i] = c.p.fds.Get(f.FD); c.opens[i] == nil {
			f.Revents = PollNval
			c.fixed++
			continue
		}
		c.opens[i].Queue().Add(&c.watch)
	}
}

// look sets Revents and returns the number of entries with events.
func (c *polling) look() int {
	n := c.fixed
	for i, o := range c.opens {
		if o == nil {
			continue
		}
		f := &c.fds[i]
		if f.Revents = o.Events() & (f.Events | file.PollAlways); f.Revents != 0 {
			n++
		}
	}
	return n
}

func (c *polling) leave() {
	for _, o := range c.opens {
		if o != nil {
			o.Queue().Remove(&c.watch)
		}
	}
}
