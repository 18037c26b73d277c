package posix

import (
	"testing"
	"time"

	"loam/abi/linux"
)

// epollWait collects events, and fails the test if it takes too long.
func epollWait(t testing.TB, p *Process, ep int, timeout time.Duration) []EpollEvent {
	t.Helper()
	events := make([]EpollEvent, 8)
	n, errno := p.EpollWait(ep, events, timeout)
	ok(t, errno)
	return events[:n]
}

const long = 10 * time.Second

// A level-triggered event is reported as long as it holds, an edge-triggered one when it begins, a
// one-shot event once (epoll(7)).
func TestEpollTriggers(t *testing.T) {
	for name, c := range map[string]struct {
		flags        uint32
		again, later int // number of events in a second wait, and in a wait after more data has arrived
	}{
		"level":    {0, 1, 1},
		"edge":     {linux.EPOLLET, 0, 1},
		"one shot": {linux.EPOLLONESHOT, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := process(t)
			client, server := tcpPair(t, p, linux.SOCK_NONBLOCK)
			ep := fd(t)(p.EpollCreate(0))
			ok(t, p.EpollCtl(ep, linux.EPOLL_CTL_ADD, server, EpollEvent{Events: uint32(PollIn) | c.flags, Data: 99}))
			if got := epollWait(t, p, ep, 0); len(got) != 0 {
				t.Errorf("before data: %v", got)
			}
			p.Write(client, []byte("one"))
			got := epollWait(t, p, ep, long)
			if len(got) != 1 || got[0] != (EpollEvent{Events: uint32(PollIn), Data: 99}) {
				t.Errorf("after data: %v", got)
			}
			if got := epollWait(t, p, ep, 0); len(got) != c.again {
				t.Errorf("again: %v, want %d", got, c.again)
			}
			p.Read(server, make([]byte, 10))
			p.Write(client, []byte("two"))
			timeout := long
			if c.later == 0 {
				timeout = 10 * time.Millisecond
			}
			if got := epollWait(t, p, ep, timeout); len(got) != c.later {
				t.Errorf("later: %v, want %d", got, c.later)
			}
		})
	}
}

func TestEpollControl(t *testing.T) {
	p := process(t)
	a, b := unixPair(t, p, linux.SOCK_STREAM)
	ep := fd(t)(p.EpollCreate(0))
	in := EpollEvent{Events: uint32(PollIn)}
	wantErrno(t, p.EpollCtl(ep, linux.EPOLL_CTL_MOD, a, in), linux.ENOENT, "change of what is not there")
	wantErrno(t, p.EpollCtl(ep, linux.EPOLL_CTL_DEL, a, in), linux.ENOENT, "removal of what is not there")
	ok(t, p.EpollCtl(ep, linux.EPOLL_CTL_ADD, a, in))
	wantErrno(t, p.EpollCtl(ep, linux.EPOLL_CTL_ADD, a, in), linux.EEXIST, "adding twice")
	wantErrno(t, p.EpollCtl(ep, linux.EPOLL_CTL_ADD, ep, in), linux.EINVAL, "adding itself")
	wantErrno(t, p.EpollCtl(a, linux.EPOLL_CTL_ADD, b, in), linux.EINVAL, "a socket as a set")
	wantErrno(t, p.EpollCtl(ep, linux.EPOLL_CTL_ADD, 63, in), linux.EBADF, "a descriptor that is not open")
	wantErrno(t, p.EpollCtl(ep, 77, a, in), linux.EINVAL, "another operation")
	p.Write(b, []byte("x"))
	if got := epollWait(t, p, ep, 0); len(got) != 1 {
		t.Errorf("readable: %v", got)
	}
	ok(t, p.EpollCtl(ep, linux.EPOLL_CTL_MOD, a, EpollEvent{Events: uint32(PollOut)}))
	if got := epollWait(t, p, ep, 0); len(got) != 1 || got[0].Events != uint32(PollOut) {
		t.Errorf("writable: %v", got)
	}
	ok(t, p.Close(a)) // closing the file removes its item from the set
	if got := epollWait(t, p, ep, 0); len(got) != 0 {
		t.Errorf("after close: %v", got)
	}
}

// An epoll set can be an item of another set, but sets cannot form a cycle.
func TestEpollNesting(t *testing.T) {
	p := process(t)
	a, b := unixPair(t, p, linux.SOCK_STREAM)
	inner, outer := fd(t)(p.EpollCreate(0)), fd(t)(p.EpollCreate(0))
	in := EpollEvent{Events: uint32(PollIn)}
	ok(t, p.EpollCtl(outer, linux.EPOLL_CTL_ADD, inner, in))
	wantErrno(t, p.EpollCtl(inner, linux.EPOLL_CTL_ADD, outer, in), linux.ELOOP, "a circle")
	ok(t, p.EpollCtl(inner, linux.EPOLL_CTL_ADD, a, in))
	p.Write(b, []byte("x"))
	if got := epollWait(t, p, outer, long); len(got) != 1 {
		t.Errorf("events: %v", got)
	}
	for range 3 { // five nested sets are the most that Linux allows. Loam checks this only below the set that is added
		next := fd(t)(p.EpollCreate(0))
		ok(t, p.EpollCtl(next, linux.EPOLL_CTL_ADD, outer, in))
		outer = next
	}
	wantErrno(t, p.EpollCtl(fd(t)(p.EpollCreate(0)), linux.EPOLL_CTL_ADD, outer, in), linux.ELOOP, "the sixth set")
}

// If more events are ready than fit, all are reported in turn.
func TestEpollFair(t *testing.T) {
	p := process(t)
	ep := fd(t)(p.EpollCreate(0))
	for i := range 5 {
		a, b := unixPair(t, p, linux.SOCK_STREAM)
		p.Write(b, []byte("x"))
		ok(t, p.EpollCtl(ep, linux.EPOLL_CTL_ADD, a, EpollEvent{Events: uint32(PollIn), Data: uint64(i)}))
	}
	seen := map[uint64]int{}
	for range 10 {
		events := make([]EpollEvent, 2)
		n, errno := p.EpollWait(ep, events, 0)
		ok(t, errno)
		for _, e := range events[:n] {
			seen[e.Data]++
		}
	}
	for i := range uint64(5) {
		if seen[i] != 4 {
			t.Errorf("events of each: %v", seen)
			break
		}
	}
}

func TestPoll(t *testing.T) {
	p := process(t)
	a, b := unixPair(t, p, linux.SOCK_STREAM)
	fds := []PollFD{{FD: a, Events: PollIn}, {FD: -1, Events: PollIn, Revents: 1}, {FD: 50, Events: PollIn}, {FD: 63}}
	if n, errno := p.Poll(fds, 0); n != 2 || errno != 0 || fds[0].Revents != 0 || fds[1].Revents != 0 || fds[2].Revents != PollNval || fds[3].Revents != PollNval {
		t.Errorf("%d, %v, %v", n, errno, fds)
	}
	fds = fds[:1]
	if n, errno := p.Poll(fds, time.Millisecond); n != 0 || errno != 0 {
		t.Errorf("timeout: %d, %v", n, errno)
	}
	go p.Write(b, []byte("x"))
	if n, errno := p.Poll(fds, -1); n != 1 || errno != 0 || fds[0].Revents != PollIn {
		t.Errorf("%d, %v, %v", n, errno, fds)
	}
	go p.Close(b)
	p.Read(a, make([]byte, 1))
	fds[0].Events = PollRdHup
	if n, errno := p.Poll(fds, -1); n != 1 || errno != 0 || fds[0].Revents&PollRdHup == 0 {
		t.Errorf("%d, %v, %v", n, errno, fds)
	}
}

// With EPOLLET, each arrival is an event, even if earlier data has not been read (epoll(7)).
func TestEpollEdgeTellsOfMore(t *testing.T) {
	for name, pair := range map[string]func(p *Process) (from, to int){
		"tcp":  func(p *Process) (int, int) { return tcpPair(t, p, linux.SOCK_NONBLOCK) },
		"unix": func(p *Process) (int, int) { return unixPair(t, p, linux.SOCK_STREAM) },
		"pipe": func(p *Process) (int, int) {
			fds, errno := p.Pipe2(0)
			ok(t, errno)
			return fds[1], fds[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := process(t)
			from, to := pair(p)
			ep := fd(t)(p.EpollCreate(0))
			ok(t, p.EpollCtl(ep, linux.EPOLL_CTL_ADD, to, EpollEvent{Events: uint32(PollIn) | linux.EPOLLET, Data: 99}))
			for i, data := range []string{"one", "two", "three"} {
				p.Write(from, []byte(data))
				if got := epollWait(t, p, ep, long); len(got) != 1 {
					t.Fatalf("after arrival %d: %v", i, got)
				}
				if got := epollWait(t, p, ep, 10*time.Millisecond); len(got) != 0 {
					t.Errorf("again after arrival %d: %v", i, got)
				}
				p.Read(to, make([]byte, 1))
			}
		})
	}
}
