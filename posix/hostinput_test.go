package posix

import (
	"syscall"
	"testing"
)

// A connection that is attached to the runtime's poller is asked no more often than it may
// have something to tell.
func TestHandedIsAskedWhenThereIsInput(t *testing.T) {
	p, l := handedProcess(t, anyPort80, 5)
	f := handTo(t, p, 1)
	fd, _, errno := p.Accept4(l, syscall.SOCK_NONBLOCK)
	ok(t, errno)
	arrivals := new(Arrivals)
	tell := func(bits uint32) { arrivals.word.Store(arrivals.word.Load() + 2 | bits) }
	buf := make([]byte, 8)
	step := func(what, came string, want Errno, asks int) {
		t.Helper()
		f.mu.Lock()
		f.held = append(f.held, came...)
		before := f.reads
		f.mu.Unlock()
		n, errno := p.Read(fd, buf)
		if errno != want {
			t.Errorf("%s: %v, want %v", what, errno, want)
		}
		if f.reads-before != asks {
			t.Errorf("%s: the host is asked %d times, want %d (%d bytes)", what, f.reads-before, asks, n)
		}
	}
	step("nobody is told of input", "", syscall.EAGAIN, 1)
	step("again", "", syscall.EAGAIN, 1)

	_, is := p.AttachHost(fd, arrivals)
	if !is {
		t.Fatal("not attached")
	}
	step("nothing is known yet", "", syscall.EAGAIN, 1)
	step("nothing has come", "", syscall.EAGAIN, 0)
	tell(0)
	step("a request", "GET", 0, 1)
	step("all of it has been read", "", syscall.EAGAIN, 0)
	step("what came is told later", "GET", syscall.EAGAIN, 0)
	tell(0)
	step("now it is", "", 0, 1)
	tell(0)
	step("the buffer is full", "12345678", 0, 1)
	step("so there may be more", "", syscall.EAGAIN, 1)
	if _, errno := p.Read(fd, nil); errno != 0 && errno != syscall.EAGAIN {
		t.Errorf("of no bytes: %v", errno)
	}
	tell(ended)
	step("the last bytes", "bye", 0, 1)
	step("the end comes after them", "", syscall.EAGAIN, 1) // of the fake, which knows no end
	step("and stays", "", syscall.EAGAIN, 1)
}

// Who has shut a connection for reading is not told of it by the poller first.
func TestHandedIsShutForReading(t *testing.T) {
	p, l := handedProcess(t, anyPort80, 5)
	f := handTo(t, p, 1)
	fd, _, errno := p.Accept4(l, syscall.SOCK_NONBLOCK)
	ok(t, errno)
	if _, is := p.AttachHost(fd, new(Arrivals)); !is {
		t.Fatal("not attached")
	}
	p.Read(fd, make([]byte, 1))
	ok(t, p.Shutdown(fd, syscall.SHUT_RD))
	before := f.reads
	p.Read(fd, make([]byte, 1))
	if f.reads == before {
		t.Error("the host is not asked")
	}
}
