package posix

import (
	"bytes"
	"testing"

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
