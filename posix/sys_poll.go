package posix

import (
	"syscall"
	"time"
)

// PollFD is struct pollfd.
type PollFD struct {
	FD      int
	Events  Events
	Revents Events
}

// Poll is poll(2) and ppoll(2), and select(2) once its sets have been read. It
// may mix descriptors of ours and of the host. A timeout below zero means for
// ever. Signals do not interrupt it.
func (p *Process) Poll(fds []PollFD, timeout time.Duration) (int, Errno) {
	c := polling{p: p, fds: fds, opens: make([]*open, len(fds)), bell: make(chan struct{}, 1)}
	defer c.leave()
	c.watch.f = func(Events) { c.ring() }
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
		select {
		case <-c.bell:
		case <-expired:
			return 0, 0
		}
	}
}

// polling is one call of Poll.
type polling struct {
	p      *Process
	fds    []PollFD
	opens  []*open // ours, nil for others
	watch  watch
	bell   chan struct{} // sent to by files and the host's poller, received by Poll, never closed; full: it will look anyway
	poller HostPoller
	fixed  int // entries whose Revents are known from the start
}

func (c *polling) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// enter leaves a watch with every file.
func (c *polling) enter() {
	for i := range c.fds {
		f := &c.fds[i]
		f.Revents = 0
		switch {
		case f.FD < 0:
		case f.FD < c.p.fds.base:
			c.enterHost(i)
		default:
			if c.opens[i] = c.p.fds.get(f.FD); c.opens[i] == nil {
				f.Revents = PollNval
				c.fixed++
				continue
			}
			c.opens[i].queue().add(&c.watch)
		}
	}
}

// enterHost adds a descriptor of the host to an epoll set of the host. Files
// that epoll does not take are always ready.
func (c *polling) enterHost(i int) {
	f := &c.fds[i]
	var errno Errno = syscall.EBADF
	if host := c.p.options.Host; host != nil {
		errno = 0
		if c.poller == nil {
			c.poller, errno = host.NewPoller()
		}
		if errno == 0 {
			errno = c.poller.Control(syscall.EPOLL_CTL_ADD, f.FD, EpollEvent{Events: uint32(f.Events), Data: uint64(i)})
		}
	}
	switch errno {
	case 0, syscall.EEXIST: // a second entry for one descriptor hears nothing
	case syscall.EPERM:
		f.Revents = f.Events & (PollIn | PollOut)
		c.fixed++
	default:
		f.Revents = PollNval
		c.fixed++
	}
}

// look fills in Revents and returns how many entries have some.
func (c *polling) look() int {
	n := c.fixed
	for i, o := range c.opens {
		if o == nil {
			continue
		}
		f := &c.fds[i]
		if f.Revents = o.events() & (f.Events | pollAlways); f.Revents != 0 {
			n++
		}
	}
	if c.poller == nil {
		return n
	}
	var events [32]EpollEvent
	got, _ := c.poller.Poll(events[:])
	for _, ev := range events[:got] {
		c.fds[ev.Data].Revents = Events(ev.Events)
	}
	if got == 0 && n == 0 {
		c.poller.Arm(c.ring)
	}
	return n + got
}

func (c *polling) leave() {
	for _, o := range c.opens {
		if o != nil {
			o.queue().remove(&c.watch)
		}
	}
	if c.poller != nil {
		c.poller.Close()
	}
}
