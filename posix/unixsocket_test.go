package posix

import (
	"bytes"
	"encoding/binary"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/posix/unix"
)

func abstract(name string) Address { return Address{Family: linux.AF_UNIX, Name: "\x00" + name} }

// A stream socket has no boundaries between writes. Datagrams keep their boundaries, and the part that does not fit
// into the reader's buffer is lost (unix(7), recvmsg(2)).
func TestUnixBoundaries(t *testing.T) {
	p := process(t)
	for _, c := range []struct {
		typ         int
		first, rest string
	}{
		{linux.SOCK_STREAM, "one", "two"},
		{linux.SOCK_SEQPACKET, "one", "t"},
		{linux.SOCK_DGRAM, "one", "t"},
	} {
		a, b := unixPair(t, p, c.typ|linux.SOCK_NONBLOCK)
		p.Write(a, []byte("one"))
		p.Write(a, []byte("two"))
		buf := make([]byte, 3)
		r, errno := p.Recv(b, buf, linux.MSG_PEEK)
		ok(t, errno)
		if string(buf[:r.N]) != c.first {
			t.Errorf("type %d: peek %q", c.typ, buf[:r.N])
		}
		r, _ = p.Recv(b, buf, 0)
		if string(buf[:r.N]) != c.first {
			t.Errorf("type %d: first %q", c.typ, buf[:r.N])
		}
		r, _ = p.Recv(b, buf[:len(c.rest)], 0)
		if string(buf[:r.N]) != c.rest || r.Len != 3 || (r.Flags&linux.MSG_TRUNC != 0) != (len(c.rest) < 3) {
			t.Errorf("type %d: rest %q, %+v", c.typ, buf[:r.N], r)
		}
		_, errno = p.Recv(b, buf, 0)
		wantErrno(t, errno, linux.EAGAIN, "nothing left")
	}
}

// A full socket rejects data and notifies the writer when there is room.
func TestUnixRoom(t *testing.T) {
	p := process(t)
	for _, typ := range []int{linux.SOCK_STREAM, linux.SOCK_DGRAM} {
		a, b := unixPair(t, p, typ|linux.SOCK_NONBLOCK)
		block := make([]byte, 10_000)
		total := 0
		var errno Errno
		for errno == 0 {
			var n int
			if n, errno = p.Write(a, block); errno == 0 {
				total += n
			}
		}
		wantErrno(t, errno, linux.EAGAIN, "full")
		if total < 100_000 || total > unix.DefaultBuffer+len(block) {
			t.Errorf("%d bytes fit", total)
		}
		told := make(chan Events, 100)
		ok(t, p.Attach(a, func(e Events) { told <- e }))
		if e := <-told; e&PollOut != 0 {
			t.Errorf("a full socket is writable: %x", e)
		}
		p.Read(b, make([]byte, 20_000))
		if e := <-told; e&PollOut == 0 {
			t.Errorf("told %x when there is room", e)
		}
		ok(t, p.Close(b))
		if typ == linux.SOCK_STREAM { // a datagram socket may have other senders
			if e := <-told; e&(PollHup|PollOut|PollIn) == 0 {
				t.Errorf("told %x when the peer closes", e)
			}
		}
	}
	_, errno := p.Write(0, make([]byte, 1<<20))
	wantErrno(t, errno, linux.EPIPE, "write to nobody")
}

// The end of a stream reads as 0 bytes, or as ECONNRESET if the peer left data unread. Writing to a
// closed peer returns EPIPE.
func TestUnixEnds(t *testing.T) {
	p := process(t)
	a, b := unixPair(t, p, linux.SOCK_STREAM)
	p.Write(a, []byte("x"))
	ok(t, p.Shutdown(a, linux.SHUT_WR))
	_, errno := p.Write(a, []byte("y"))
	wantErrno(t, errno, linux.EPIPE, "write after shutdown")
	buf := make([]byte, 4)
	if n, errno := p.Read(b, buf); n != 1 || errno != 0 {
		t.Errorf("read: %d, %v", n, errno)
	}
	if n, errno := p.Read(b, buf); n != 0 || errno != 0 {
		t.Errorf("end: %d, %v", n, errno)
	}
	p.Write(b, []byte("unread"))
	ok(t, p.Close(a))
	_, errno = p.Read(b, buf)
	wantErrno(t, errno, linux.ECONNRESET, "the peer did not read")
	_, errno = p.Write(b, buf)
	wantErrno(t, errno, linux.EPIPE, "the peer has gone")
}

// A negative backlog is the largest one, as on Linux. php-fpm listens with -1.
func TestUnixBacklogNegative(t *testing.T) {
	p := process(t)
	l := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0))
	ok(t, p.Bind(l, abstract("x")))
	ok(t, p.Listen(l, -1))
	for range 10 {
		c := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0))
		ok(t, p.Connect(c, abstract("x")))
	}
}

func TestUnixNamesAreUnique(t *testing.T) {
	p := process(t)
	for _, name := range []Address{abstract("x"), {Family: linux.AF_UNIX, Name: "/x"}} {
		l := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0))
		ok(t, p.Bind(l, name))
		other := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0))
		wantErrno(t, p.Bind(other, name), linux.EADDRINUSE, "second bind")
		wantErrno(t, p.Connect(other, name), linux.ECONNREFUSED, "nobody listens yet")
		ok(t, p.Listen(l, 0))
		ok(t, p.Connect(other, name))
		wantErrno(t, p.Connect(other, name), linux.EISCONN, "connect twice")
		if peer, errno := p.GetPeerName(other); peer != name || errno != 0 {
			t.Errorf("peer %+v, %v", peer, errno)
		}
		// The queue holds one connection more than the backlog. The next connection finds it full.
		third := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0))
		wantErrno(t, p.Connect(third, name), linux.EAGAIN, "backlog")
		dgram := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_DGRAM, 0))
		wantErrno(t, p.Connect(dgram, name), linux.EPROTOTYPE, "another type")
		ok(t, p.Close(l))
		if name.Name[0] != 0 { // a socket with a path: close does not remove its file
			wantErrno(t, p.Bind(third, name), linux.EADDRINUSE, "the file of a socket that was closed")
			ok(t, p.RenameAt(linux.AT_FDCWD, name.Name, linux.AT_FDCWD, "/old", 0))
			wantErrno(t, p.Connect(third, Address{Family: linux.AF_UNIX, Name: "/old"}), linux.ECONNREFUSED, "nobody is there")
		}
		ok(t, p.Bind(third, name))
	}
	auto := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(auto, Address{Family: linux.AF_UNIX}))
	if a, _ := p.GetSockName(auto); len(a.Name) != 6 || a.Name[0] != 0 {
		t.Errorf("autobind gave %q", a.Name)
	}
}

// Passed descriptors arrive as new descriptors of the same file. Descriptors that are never received
// are closed.
func TestPassDescriptors(t *testing.T) {
	p := process(t)
	a, b := unixPair(t, p, linux.SOCK_STREAM)
	x, y := unixPair(t, p, linux.SOCK_STREAM)
	rights := func(fds ...int) []Control {
		c := Control{Level: linux.SOL_SOCKET, Type: linux.SCM_RIGHTS}
		for _, n := range fds {
			c.Data = binary.NativeEndian.AppendUint32(c.Data, uint32(n))
		}
		return []Control{c}
	}
	_, errno := p.Send(a, []byte("m"), Outgoing{Control: rights(x)})
	ok(t, errno)
	ok(t, p.Close(x))
	r, errno := p.Recv(b, make([]byte, 10), linux.MSG_CMSG_CLOEXEC)
	ok(t, errno)
	if len(r.Control) != 1 || !p.InstallPassed(&r.Control[0], 1, r.Flags&linux.MSG_CMSG_CLOEXEC != 0) {
		t.Fatalf("control %+v", r.Control)
	}
	got := int(binary.NativeEndian.Uint32(r.Control[0].Data))
	if flags, _ := p.Fcntl(got, linux.F_GETFD, 0); flags != linux.FD_CLOEXEC {
		t.Error("MSG_CMSG_CLOEXEC was not heard")
	}
	p.Write(got, []byte("passed"))
	buf := make([]byte, 10)
	if n, _ := p.Read(y, buf); string(buf[:n]) != "passed" {
		t.Errorf("read %q", buf[:n])
	}
	_, errno = p.Send(a, []byte("m"), Outgoing{Control: rights(got)})
	ok(t, errno)
	ok(t, p.Close(got))
	ok(t, p.Close(b)) // the socket is closed while a message with a descriptor is in its queue
	if n, errno := p.Read(y, buf); n != 0 || errno != 0 {
		t.Errorf("a descriptor that nobody received is still open: %d, %v", n, errno)
	}
	_, errno = p.Send(y, []byte("m"), Outgoing{Control: rights(99)})
	wantErrno(t, errno, linux.EBADF, "passing what is not open")
}

func TestCredentials(t *testing.T) {
	p := New(Options{Credentials: Credentials{PID: 7, UID: 8, GID: 9}})
	a, b := unixPair(t, p, linux.SOCK_STREAM)
	want := []byte{7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0}
	if got, errno := p.GetSockOpt(a, linux.SOL_SOCKET, linux.SO_PEERCRED); !bytes.Equal(got, want) || errno != 0 {
		t.Errorf("SO_PEERCRED % x, %v", got, errno)
	}
	ok(t, p.SetSockOpt(b, linux.SOL_SOCKET, linux.SO_PASSCRED, socket.IntValue(1)))
	p.Write(a, []byte("x"))
	r, errno := p.Recv(b, make([]byte, 1), 0)
	if errno != 0 || len(r.Control) != 1 || !bytes.Equal(r.Control[0].Data, want) {
		t.Errorf("%+v, %v", r, errno)
	}
}

// With SO_PASSCRED or SO_PASSPIDFD, MSG_WAITALL does not return bytes of two senders.
func TestWaitAllOfTwoSenders(t *testing.T) {
	for _, option := range []int{linux.SO_PASSCRED, linux.SO_PASSPIDFD} {
		p := New(Options{Credentials: Credentials{PID: 7}})
		q := p.Fork(8, ShareDescriptors)
		a, b := unixPair(t, p, linux.SOCK_STREAM)
		receive := func(what string, want int) {
			t.Helper()
			if r, errno := p.Recv(b, make([]byte, 2), linux.MSG_WAITALL); r.N != want || errno != 0 {
				t.Errorf("option %d, %s: %d bytes, %v, want %d", option, what, r.N, errno, want)
			}
		}
		p.Write(a, []byte("x"))
		q.Write(a, []byte("y"))
		receive("not set", 2)
		ok(t, p.SetSockOpt(b, linux.SOL_SOCKET, option, socket.IntValue(1)))
		p.Write(a, []byte("x"))
		q.Write(a, []byte("y"))
		receive("two senders", 1)
		q.Write(a, []byte("y"))
		receive("one sender", 2)
	}
}
