package posix

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// deferring is a process that listens with TCP_DEFER_ACCEPT of three seconds.
func deferring(t *testing.T) (p *Process, listener int) {
	p, l := handedProcess(t, anyPort80, 5)
	ok(t, p.SetSockOpt(l, syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, intValue(3)))
	return p, l
}

func wantNobody(t *testing.T, sentence string, p *Process, listener int) {
	t.Helper()
	if _, _, errno := p.Accept4(listener, 0); errno != syscall.EAGAIN {
		t.Errorf("%s: accept says %v", sentence, errno)
	}
}

// A connection is given to the program with what it brings.
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
		fd, _, errno := p.Accept4(l, syscall.SOCK_NONBLOCK)
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

// One that brings nothing is given all the same when the time is over, as Linux does; and one that has
// brought something before is at once.
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
		p.Hand(early, Way{anyPort80, anyPort80})
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
