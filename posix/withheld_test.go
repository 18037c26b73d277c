package posix

import (
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/posix/socket"
)

// deferring returns a process that listens with a TCP_DEFER_ACCEPT of three seconds.
func deferring(t *testing.T) (p *Process, listener int) {
	p, l := handedProcess(t, anyPort80, 5)
	ok(t, p.SetSockOpt(l, linux.IPPROTO_TCP, linux.TCP_DEFER_ACCEPT, socket.IntValue(3)))
	return p, l
}

func wantNobody(t *testing.T, sentence string, p *Process, listener int) {
	t.Helper()
	if _, _, errno := p.Accept4(listener, 0); errno != linux.EAGAIN {
		t.Errorf("%s: accept says %v", sentence, errno)
	}
}

// A connection is offered to the program when data arrives.
func TestHandedIsDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, l := deferring(t)
		var told Events
		ok(t, p.Attach(l, func(e Events) { told |= e }))
		f := handTo(t, p, 20000)
		wantNobody(t, "at once", p, l)
		if told != 0 {
			t.Errorf("who waits is told %v", told)
		}
		f.Write([]byte("hello"))
		if told&PollIn == 0 {
			t.Error("who waits is not told of a connection that brings something")
		}
		fd, _, errno := p.Accept4(l, linux.SOCK_NONBLOCK)
		ok(t, errno)
		b := make([]byte, 9)
		if n, errno := p.Read(fd, b); n != 5 || errno != 0 {
			t.Errorf("it brings %d bytes, %v", n, errno)
		}
		told = 0
		ok(t, p.Attach(fd, func(e Events) { told |= e }))
		f.Write([]byte("more"))
		if told&PollIn == 0 {
			t.Error("what comes later is not told of")
		}
		ok(t, p.Close(fd))
		f.wantClosed(false, false)
		time.Sleep(time.Minute)
		wantNobody(t, "it comes once", p, l)
	})
}

// A connection without data is offered to the listening socket when the time of TCP_DEFER_ACCEPT is over, as on Linux. A
// connection that already has data is offered at once.
func TestHandedIsDeferredNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, l := deferring(t)
		f := handTo(t, p, 20000)
		time.Sleep(3*time.Second - time.Millisecond)
		synctest.Wait()
		wantNobody(t, "before its time", p, l)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		fd, _, errno := p.Accept4(l, 0)
		ok(t, errno)
		ok(t, p.Close(fd))
		f.wantClosed(false, false)

		early := &fakeTCP{t: t, held: []byte("hello")}
		p.Hand(early, Way{At: anyPort80, From: anyPort80})
		fd, _, errno = p.Accept4(l, 0)
		ok(t, errno)
		ok(t, p.Close(fd))
	})
}

func TestHandedIsDeferredForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, l := deferring(t)
		f := handTo(t, p, 20000)
		ok(t, p.Close(l))
		f.Write([]byte("hello"))
		f.wantClosed(true, true)
		time.Sleep(time.Minute)
		f.wantClosed(true, true)
	})
}
