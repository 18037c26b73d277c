package posix

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/posix/socket"
)

// fastListener returns a listener with TCP_FASTOPEN, and its address. Both bits of tcp_fastopen are set.
func fastListener(t *testing.T, p *Process) (int, Address) {
	t.Helper()
	p.Inet().FastOpen.Store(3)
	l := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.SetSockOpt(l, linux.IPPROTO_TCP, linux.TCP_FASTOPEN, socket.IntValue(5)))
	ok(t, p.Bind(l, localhost(0)))
	ok(t, p.Listen(l, 5))
	name, errno := p.GetSockName(l)
	ok(t, errno)
	return l, name
}

// acceptFast accepts a connection, and checks its data and TCPI_OPT_SYN_DATA.
func acceptFast(t *testing.T, p *Process, l int, want string, synData bool) {
	t.Helper()
	c, _, errno := p.Accept4(l, 0)
	ok(t, errno)
	b := make([]byte, 100)
	if n, errno := p.Read(c, b); errno != 0 || string(b[:n]) != want {
		t.Fatalf("read %q, %v, want %q", b[:n], errno, want)
	}
	info, errno := p.GetSockOpt(c, linux.IPPROTO_TCP, linux.TCP_INFO)
	ok(t, errno)
	const options, optSYNData = 5, 32
	if got := info[options]&optSYNData != 0; got != synData {
		t.Errorf("TCPI_OPT_SYN_DATA is %v, want %v", got, synData)
	}
	ok(t, p.Close(c))
}

// MSG_FASTOPEN of send(2): the first connection requests a cookie, and the second sends data in its SYN.
func TestSendFastOpen(t *testing.T) {
	p := process(t)
	l, name := fastListener(t, p)
	hello := []byte("hello")
	send := func(s int, b []byte) (int, Errno) {
		return p.Send(s, b, Outgoing{To: name, Flags: linux.MSG_FASTOPEN})
	}
	for _, synData := range []bool{false, true} {
		c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
		if n, errno := send(c, hello); n != len(hello) || errno != 0 {
			t.Fatalf("sent %d bytes, %v", n, errno)
		}
		if _, errno := p.GetPeerName(c); errno != 0 {
			t.Errorf("after a blocking send, the handshake is not complete: %v", errno)
		}
		acceptFast(t, p, l, "hello", synData)
		ok(t, p.Close(c))
	}
	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0))
	long := bytes.Repeat([]byte("x"), 1<<20)
	if n, errno := send(c, long); errno != 0 || n <= 0 || n >= len(long) {
		t.Errorf("a SYN has %d bytes, %v", n, errno)
	}
	_, errno := send(c, hello)
	if errno != linux.EALREADY && errno != linux.EISCONN {
		t.Errorf("a second MSG_FASTOPEN: %v", errno)
	}
	p.Inet().FastOpen.Store(0)
	fresh := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	_, errno = send(fresh, hello)
	wantErrno(t, errno, linux.EOPNOTSUPP, "tcp_fastopen is 0")
	wantErrno(t, p.SetSockOpt(fresh, linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT, socket.IntValue(1)), linux.EOPNOTSUPP, "tcp_fastopen is 0")
}

// A non-blocking MSG_FASTOPEN without a cookie returns EINPROGRESS, and sends no data.
func TestSendFastOpenWithoutCookie(t *testing.T) {
	p := process(t)
	_, name := fastListener(t, p)
	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0))
	_, errno := p.Send(c, []byte("hello"), Outgoing{To: name, Flags: linux.MSG_FASTOPEN})
	wantErrno(t, errno, linux.EINPROGRESS, "no cookie")
	ok(t, p.Close(c))
}

// TCP_FASTOPEN_CONNECT: if there is a cookie, connect(2) returns at once and the first write opens the connection.
func TestFastOpenConnect(t *testing.T) {
	p := process(t)
	l, name := fastListener(t, p)
	for _, synData := range []bool{false, true} {
		c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
		ok(t, p.SetSockOpt(c, linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT, socket.IntValue(1)))
		ok(t, p.Connect(c, name))
		if synData {
			wantErrno(t, p.Connect(c, name), linux.EISCONN, "a second connect")
		}
		if n, errno := p.Write(c, []byte("hello")); n != 5 || errno != 0 {
			t.Fatalf("wrote %d bytes, %v", n, errno)
		}
		acceptFast(t, p, l, "hello", synData)
		ok(t, p.Close(c))
	}
}

// learnFast gets a cookie of the listener for the host.
func learnFast(t *testing.T, p *Process, l int, name Address) {
	t.Helper()
	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	if n, errno := p.Send(c, []byte("x"), Outgoing{To: name, Flags: linux.MSG_FASTOPEN}); n != 1 || errno != 0 {
		t.Fatalf("sent %d bytes, %v", n, errno)
	}
	acceptFast(t, p, l, "x", false)
	ok(t, p.Close(c))
}

// postponed returns a socket whose first write will open the connection.
func postponed(t *testing.T, p *Process, name Address) int {
	t.Helper()
	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.SetSockOpt(c, linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT, socket.IntValue(1)))
	ok(t, p.Connect(c, name))
	return c
}

// answerFast accepts a connection, reads a request and writes an answer.
func answerFast(t *testing.T, p *Process, l int) {
	t.Helper()
	c, _, errno := p.Accept4(l, 0)
	ok(t, errno)
	if n, errno := p.Read(c, make([]byte, 100)); n <= 0 || errno != 0 {
		t.Fatalf("the server has read %d bytes, %v", n, errno)
	}
	if n, errno := p.Write(c, []byte("answer")); n != 6 || errno != 0 {
		t.Fatalf("the server has written %d bytes, %v", n, errno)
	}
}

// epoll_wait(2) reports the answer to a program that registers its socket after a postponed connect(2), and then writes.
func TestFastOpenConnectAndEpoll(t *testing.T) {
	for name, events := range map[string]uint32{"level": uint32(PollIn), "edge": uint32(PollIn) | linux.EPOLLET, "both": uint32(PollIn|PollOut) | linux.EPOLLET} {
		t.Run(name, func(t *testing.T) {
			p := process(t)
			l, name := fastListener(t, p)
			learnFast(t, p, l, name)
			c := postponed(t, p, name)
			set := fd(t)(p.EpollCreate(0))
			ok(t, p.EpollCtl(set, linux.EPOLL_CTL_ADD, c, EpollEvent{Events: events}))
			list := make([]EpollEvent, 1)
			p.EpollWait(set, list, 0)
			if n, errno := p.Write(c, []byte("hello")); n != 5 || errno != 0 {
				t.Fatalf("wrote %d bytes, %v", n, errno)
			}
			p.EpollWait(set, list, 0)
			answerFast(t, p, l)
			for list[0].Events&uint32(PollIn) == 0 {
				if n, errno := p.EpollWait(set, list, 10*time.Second); n != 1 || errno != 0 {
					t.Fatalf("no event for the answer: %v", errno)
				}
			}
		})
	}
}

// A thread that reads after a postponed connect(2) waits for the answer to what another thread writes.
func TestFastOpenConnectAndRead(t *testing.T) {
	p := process(t)
	l, name := fastListener(t, p)
	learnFast(t, p, l, name)
	c := postponed(t, p, name)
	ok(t, p.SetSockOpt(c, linux.SOL_SOCKET, linux.SO_RCVTIMEO, socket.TimeValue(10*time.Second)))
	got := make(chan string)
	go func() {
		b := make([]byte, 100)
		n, errno := p.Read(c, b)
		got <- fmt.Sprintf("%q %v", b[:max(n, 0)], errno)
	}()
	time.Sleep(20 * time.Millisecond)
	if n, errno := p.Write(c, []byte("hello")); n != 5 || errno != 0 {
		t.Fatalf("wrote %d bytes, %v", n, errno)
	}
	answerFast(t, p, l)
	if have, want := <-got, fmt.Sprintf("%q %v", "answer", Errno(0)); have != want {
		t.Errorf("read %s, want %s", have, want)
	}
}

// Several threads may write first: none gets an error, and no data is lost.
func TestFastOpenConnectAndWriters(t *testing.T) {
	p := process(t)
	l, name := fastListener(t, p)
	learnFast(t, p, l, name)
	const writers = 3
	for range 200 {
		c := postponed(t, p, name)
		start, errs := make(chan struct{}), make(chan error, writers)
		for range writers {
			go func() {
				<-start
				n, errno := p.Write(c, []byte("x"))
				if n != 1 || errno != 0 {
					errs <- fmt.Errorf("wrote %d bytes, %v", n, errno)
					return
				}
				errs <- nil
			}()
		}
		close(start)
		for range writers {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		ok(t, p.Close(c))
		d, _, errno := p.Accept4(l, 0)
		ok(t, errno)
		b, all := make([]byte, 100), 0
		for n, errno := p.Read(d, b); n > 0; n, errno = p.Read(d, b) {
			ok(t, errno)
			all += n
		}
		if all != writers {
			t.Fatalf("%d bytes have arrived", all)
		}
		ok(t, p.Close(d))
	}
}

// A blocking send returns the error of the handshake, even if it has sent data in the SYN. After success, connect(2) returns
// EISCONN.
func TestFastOpenErrors(t *testing.T) {
	p := process(t)
	l, name := fastListener(t, p)
	learnFast(t, p, l, name)
	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	hello := []byte("hello")
	send := func(c int) (int, Errno) { return p.Send(c, hello, Outgoing{To: name, Flags: linux.MSG_FASTOPEN}) }
	if n, errno := send(c); n != 5 || errno != 0 {
		t.Fatalf("sent %d bytes, %v", n, errno)
	}
	wantErrno(t, p.Connect(c, name), linux.EISCONN, "the send has waited for the handshake")
	late := postponed(t, p, name)
	ok(t, p.Close(l))
	c = fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	_, errno := send(c)
	wantErrno(t, errno, linux.ECONNREFUSED, "MSG_FASTOPEN to a closed port")
	_, errno = p.Write(late, hello)
	wantErrno(t, errno, linux.ECONNREFUSED, "the first write to a closed port")
}

// tcp(7), and the checks of Linux.
func TestFastOpenOptions(t *testing.T) {
	p := process(t)
	client, _ := tcpPair(t, p, 0)
	fresh := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	set := func(s, name int, value []byte) Errno { return p.SetSockOpt(s, linux.IPPROTO_TCP, name, value) }
	wantErrno(t, set(client, linux.TCP_FASTOPEN, socket.IntValue(1)), linux.EINVAL, "a connection")
	wantErrno(t, set(fresh, linux.TCP_FASTOPEN, socket.IntValue(-1)), linux.EINVAL, "a negative limit")
	wantErrno(t, set(fresh, linux.TCP_FASTOPEN_NO_COOKIE, socket.IntValue(2)), linux.EINVAL, "neither on nor off")
	wantErrno(t, set(fresh, linux.TCP_FASTOPEN_KEY, make([]byte, 15)), linux.EINVAL, "a key of 15 bytes")
	key := []byte("0123456789abcdef")
	for name, value := range map[int][]byte{
		linux.TCP_FASTOPEN: socket.IntValue(7), linux.TCP_FASTOPEN_NO_COOKIE: socket.IntValue(1), linux.TCP_FASTOPEN_KEY: append(key, key...),
	} {
		ok(t, set(fresh, name, value))
		if got, errno := p.GetSockOpt(fresh, linux.IPPROTO_TCP, name); errno != 0 || !bytes.Equal(got, value) {
			t.Errorf("option %d: % x, %v, want % x", name, got, errno, value)
		}
	}
}

// Without the bit of tcp_fastopen for servers, a listener accepts data of SYNs only after an ordinary handshake.
func TestFastOpenServerIsOff(t *testing.T) {
	p := process(t)
	l, name := fastListener(t, p)
	p.Inet().FastOpen.Store(1)
	ok(t, p.SetSockOpt(l, linux.IPPROTO_TCP, linux.TCP_FASTOPEN, socket.IntValue(5)))
	for range 2 {
		c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
		if n, errno := p.Send(c, []byte("hello"), Outgoing{To: name, Flags: linux.MSG_FASTOPEN}); n != 5 || errno != 0 {
			t.Fatalf("sent %d bytes, %v", n, errno)
		}
		acceptFast(t, p, l, "hello", false)
		ok(t, p.Close(c))
	}
}
