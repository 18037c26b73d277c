package posix

import (
	"net/netip"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
)

// process returns a process whose network has only a loopback interface.
func process(t testing.TB) *Process {
	t.Helper()
	s := stack.New(stack.Config{Shards: 2})
	t.Cleanup(func() { s.Close() })
	return New(Options{Network: s, Credentials: Credentials{PID: 7}})
}

// openFile opens a file and creates it if necessary.
func openFile(p *Process) (int, Errno) { return p.OpenAt(linux.AT_FDCWD, "/file", create, 0o600) }

// ok fails the test if errno is not 0.
func ok(t testing.TB, errno Errno) {
	t.Helper()
	if errno != 0 {
		t.Fatalf("errno %v", errno)
	}
}

func wantErrno(t testing.TB, got, want Errno, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: errno %v, want %v", what, got, want)
	}
}

// fd returns a descriptor, or fails the test if errno is not 0.
func fd(t testing.TB) func(int, Errno) int {
	return func(fd int, errno Errno) int {
		t.Helper()
		ok(t, errno)
		return fd
	}
}

func localhost(port uint16) Address {
	return socket.Inet(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
}

// tcpPair returns the two ends of a connection of p with itself. flags apply to both sockets.
func tcpPair(t testing.TB, p *Process, flags int) (client, server int) {
	t.Helper()
	l := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.Bind(l, localhost(0)))
	ok(t, p.Listen(l, 5))
	name, errno := p.GetSockName(l)
	ok(t, errno)
	client = fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.Connect(client, name))
	server, peer, errno := p.Accept4(l, flags)
	ok(t, errno)
	if mine, _ := p.GetSockName(client); mine != peer {
		t.Errorf("accept says the peer is %v, it is %v", peer, mine)
	}
	ok(t, p.Close(l))
	if flags&linux.SOCK_NONBLOCK != 0 {
		_, errno = p.Fcntl(client, linux.F_SETFL, linux.O_NONBLOCK)
		ok(t, errno)
	}
	ok(t, p.SetSockOpt(client, linux.IPPROTO_TCP, linux.TCP_NODELAY, socket.IntValue(1)))
	ok(t, p.SetSockOpt(server, linux.IPPROTO_TCP, linux.TCP_NODELAY, socket.IntValue(1)))
	return client, server
}

func unixPair(t testing.TB, p *Process, typ int) (a, b int) {
	t.Helper()
	fds, errno := p.SocketPair(linux.AF_UNIX, typ, 0)
	ok(t, errno)
	return fds[0], fds[1]
}

// The lowest free descriptor is allocated (open(2)).
func TestDescriptorsAreLowest(t *testing.T) {
	p := process(t)
	var fds []int
	for i := range 600 { // more descriptors than fit into two chunks of the descriptor table
		got := fd(t)(openFile(p))
		if got != i {
			t.Fatalf("descriptor %d is %d", i, got)
		}
		fds = append(fds, got)
	}
	for _, i := range []int{3, 500, 2} {
		ok(t, p.Close(fds[i]))
	}
	for _, i := range []int{2, 3, 500, 600} {
		if got := fd(t)(openFile(p)); got != i {
			t.Errorf("got descriptor %d, want %d", got, i)
		}
	}
	wantErrno(t, p.Close(601), linux.EBADF, "close of what is not open")
	wantErrno(t, p.Close(-1), linux.EBADF, "close of -1")
}

// A file stays open until its last descriptor is closed (dup(2)). FD_CLOEXEC belongs to the descriptor
// (fcntl(2)).
func TestDup(t *testing.T) {
	p := process(t)
	a, b := unixPair(t, p, linux.SOCK_STREAM|linux.SOCK_CLOEXEC)
	d := fd(t)(p.Dup(a))
	high := fd(t)(p.Fcntl(a, linux.F_DUPFD_CLOEXEC, 100))
	if high != 100 {
		t.Errorf("F_DUPFD_CLOEXEC gave %d", high)
	}
	for descriptor, want := range map[int]int{a: linux.FD_CLOEXEC, d: 0, high: linux.FD_CLOEXEC} {
		if got, errno := p.Fcntl(descriptor, linux.F_GETFD, 0); got != want || errno != 0 {
			t.Errorf("F_GETFD of %d: %d, %v, want %d", descriptor, got, errno, want)
		}
	}
	_, errno := p.Fcntl(a, linux.F_SETFL, linux.O_NONBLOCK)
	ok(t, errno)
	if flags, _ := p.Fcntl(d, linux.F_GETFL, 0); flags&linux.O_NONBLOCK == 0 {
		t.Error("O_NONBLOCK is not shared between duplicates")
	}
	ok(t, p.Close(a))
	ok(t, p.Close(high))
	if n, errno := p.Write(d, []byte("x")); n != 1 || errno != 0 {
		t.Errorf("write by the last duplicate: %d, %v", n, errno)
	}
	ok(t, p.Close(d))
	buf := make([]byte, 2)
	if n, errno := p.Read(b, buf); n != 1 || errno != 0 {
		t.Errorf("read: %d, %v", n, errno)
	}
	if n, errno := p.Read(b, buf); n != 0 || errno != 0 {
		t.Errorf("read behind the last close: %d, %v", n, errno)
	}
}

func TestDup3(t *testing.T) {
	p := process(t)
	a, b := unixPair(t, p, linux.SOCK_STREAM)
	sink := fd(t)(openFile(p))
	if got := fd(t)(p.Dup3(sink, b, 0, true)); got != b {
		t.Errorf("dup2 returned %d", got)
	}
	if n, errno := p.Read(a, make([]byte, 1)); n != 0 || errno != 0 {
		t.Errorf("dup2 did not close what was there: %d, %v", n, errno)
	}
	if got, errno := p.Dup3(a, a, 0, true); got != a || errno != 0 {
		t.Errorf("dup2 to itself: %d, %v", got, errno)
	}
	if _, errno := p.Dup3(999, 999, 0, false); errno != linux.EINVAL {
		t.Errorf("dup3 of a closed descriptor to itself: %v", errno)
	}
	_, errno := p.Dup3(a, a, 0, false)
	wantErrno(t, errno, linux.EINVAL, "dup3 to itself")
	if got, errno := p.Dup3(a, 1000, 0, true); got != 1000 || errno != 0 {
		t.Errorf("dup2 to a number far above: %d, %v", got, errno)
	}
}

func TestUnsupportedSockets(t *testing.T) {
	const protocolMPTCP = 262 // multipath TCP, which Go's net.Listen asks for first
	p := process(t)
	for _, c := range []struct {
		domain, typ, protocol int
		want                  Errno
	}{
		{linux.AF_BLUETOOTH, linux.SOCK_RAW, 0, linux.EAFNOSUPPORT},
		{linux.AF_INET, linux.SOCK_STREAM, protocolMPTCP, linux.EPROTONOSUPPORT},
		{linux.AF_INET, linux.SOCK_DGRAM, linux.IPPROTO_TCP, linux.EPROTONOSUPPORT},
		{linux.AF_INET, linux.SOCK_RAW, 0, linux.EPROTONOSUPPORT},
		{linux.AF_INET, linux.SOCK_DGRAM, linux.IPPROTO_ICMPV6, linux.EPROTONOSUPPORT},
		{linux.AF_INET, 99, 0, linux.ESOCKTNOSUPPORT},
		{linux.AF_UNIX, linux.SOCK_STREAM, 5, linux.EPROTONOSUPPORT},
		{linux.AF_NETLINK, linux.SOCK_RAW, linux.NETLINK_KOBJECT_UEVENT, linux.EPROTONOSUPPORT},
	} {
		_, errno := p.Socket(c.domain, c.typ, c.protocol)
		wantErrno(t, errno, c.want, "socket")
	}
	without := New(Options{})
	_, errno := without.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	wantErrno(t, errno, linux.EAFNOSUPPORT, "socket without a network")
}

// Reading and writing do not allocate.
func TestAllocs(t *testing.T) {
	p := process(t)
	client, server := tcpPair(t, p, linux.SOCK_NONBLOCK)
	empty := make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() { p.Read(server, empty) }); n != 0 {
		t.Errorf("a read that finds nothing allocates %v times", n)
	}
	sink := fd(t)(openFile(p))
	if n := testing.AllocsPerRun(100, func() { p.Write(sink, empty) }); n != 0 {
		t.Errorf("a write allocates %v times", n)
	}
	ok(t, p.Close(client))
}

// Exit closes all descriptors.
func TestExit(t *testing.T) {
	p := process(t)
	client, server := tcpPair(t, p, 0)
	p.Exit(0)
	for _, descriptor := range []int{client, server} {
		_, errno := p.Read(descriptor, make([]byte, 1))
		wantErrno(t, errno, linux.EBADF, "read after the end")
	}
}
