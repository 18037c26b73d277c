package posix

import (
	"testing"

	"loam/abi/linux"
	"loam/posix/handed"
)

// A host connection that Go's runtime poller watches is read only after the poller has reported that it may have
// data.
func TestHandedIsAskedWhenThereIsInput(t *testing.T) {
	p, l := handedProcess(t, anyPort80, 5)
	f := handTo(t, p, 1)
	fd, _, errno := p.Accept4(l, linux.SOCK_NONBLOCK)
	ok(t, errno)
	arrivals := new(Arrivals)
	tell := func(bits uint32) { arrivals.Word.Store(arrivals.Word.Load() + 2 | bits) }
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
	step("nobody is told of input", "", linux.EAGAIN, 1)
	step("again", "", linux.EAGAIN, 1)

	_, is := p.AttachHost(fd, arrivals)
	if !is {
		t.Fatal("not attached")
	}
	step("nothing is known yet", "", linux.EAGAIN, 1)
	step("nothing has come", "", linux.EAGAIN, 0)
	tell(0)
	step("a request", "GET", 0, 1)
	step("all of it has been read", "", linux.EAGAIN, 0)
	step("what came is told later", "GET", linux.EAGAIN, 0)
	tell(0)
	step("now it is", "", 0, 1)
	tell(0)
	step("the buffer is full", "12345678", 0, 1)
	step("so there may be more", "", linux.EAGAIN, 1)
	if _, errno := p.Read(fd, nil); errno != 0 && errno != linux.EAGAIN {
		t.Errorf("of no bytes: %v", errno)
	}
	tell(handed.Ended)
	step("the last bytes", "bye", 0, 1)
	step("the end comes after them", "", linux.EAGAIN, 1) // the fake connection has no end of stream, and returns EAGAIN
	step("and stays", "", linux.EAGAIN, 1)
}

// After a shutdown for reading, a read reaches the host without a notification of the poller.
func TestHandedIsShutForReading(t *testing.T) {
	p, l := handedProcess(t, anyPort80, 5)
	f := handTo(t, p, 1)
	fd, _, errno := p.Accept4(l, linux.SOCK_NONBLOCK)
	ok(t, errno)
	if _, is := p.AttachHost(fd, new(Arrivals)); !is {
		t.Fatal("not attached")
	}
	p.Read(fd, make([]byte, 1))
	ok(t, p.Shutdown(fd, linux.SHUT_RD))
	before := f.reads
	p.Read(fd, make([]byte, 1))
	if f.reads == before {
		t.Error("the host is not asked")
	}
}
