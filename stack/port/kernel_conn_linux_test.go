package port

import (
	"net/netip"
	"syscall"
	"testing"

	"loam/wire"
)

// These tests check whether a port with connections can be bound, and compare the result
// with the kernel's.

var loopback = addr("127.0.0.1")

// eachOption calls f with each combination of options of a connection's socket and a new socket.
func eachOption(f func(old, fresh Options)) {
	for bits := range 16 {
		f(Options{ReuseAddr: bits&1 != 0, ReusePort: bits&2 != 0},
			Options{ReuseAddr: bits&4 != 0, ReusePort: bits&8 != 0})
	}
}

// kernel makes sockets, and closes those still open at the end of the test.
type kernel struct {
	t    *testing.T
	open map[int]bool
}

func newKernel(t *testing.T) kernel {
	k := kernel{t, make(map[int]bool)}
	t.Cleanup(func() {
		for fd := range k.open {
			syscall.Close(fd)
		}
	})
	return k
}

func (k kernel) close(fd int) {
	delete(k.open, fd)
	syscall.Close(fd)
}

func (k kernel) check(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Skipf("no such sockets here: %v", err)
	}
}

func (k kernel) socket(o Options) int {
	k.t.Helper()
	fd, err := socket(wire.ProtoTCP, step{addr: loopback, o: o})
	k.check(err)
	k.open[fd] = true
	return fd
}

// listen listens on a free port.
func (k kernel) listen(o Options) (fd, port int) {
	k.t.Helper()
	fd = k.socket(o)
	k.check(syscall.Bind(fd, sockaddr(loopback, 0)))
	k.check(syscall.Listen(fd, 4))
	return fd, k.port(fd)
}

func (k kernel) port(fd int) int {
	k.t.Helper()
	name, err := syscall.Getsockname(fd)
	k.check(err)
	return name.(*syscall.SockaddrInet4).Port
}

func (k kernel) canBind(port int, o Options) bool {
	return syscall.Bind(k.socket(o), sockaddr(loopback, port)) == nil
}

func canBind(t *Table, port uint16, o Options) bool {
	_, err := t.Bind(wire.ProtoTCP, netip.AddrPortFrom(loopback, port), o)
	return err == nil
}

// A server closes its listener, and its connections stay open. Whether a new listener can bind the port is compared
// with Linux.
func TestAcceptedConnectionsAgainstLinux(t *testing.T) {
	eachOption(func(old, fresh Options) {
		k := newKernel(t)
		listener, port := k.listen(old)
		client := k.socket(Options{})
		k.check(syscall.Connect(client, sockaddr(loopback, port)))
		accepted, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC)
		k.check(err)
		k.open[accepted] = true
		during := k.canBind(port, fresh)
		k.close(listener)
		after := k.canBind(port, fresh)

		table := NewTable(Config{})
		local, remote := netip.AddrPortFrom(loopback, 80), netip.AddrPortFrom(loopback, 50000)
		b, _ := table.Bind(wire.ProtoTCP, local, old)
		table.Listen(b)
		f, err := table.Connect(wire.ProtoTCP, local, remote, b, old)
		if err != nil {
			t.Fatal(err)
		}
		if got := canBind(table, 80, fresh); got != during {
			t.Errorf("%+v, then %+v, while the first listens: %v, Linux %v", old, fresh, got, during)
		}
		if during {
			return // the socket of the first try still blocks the second try
		}
		table.Release(b)
		if got := canBind(table, 80, fresh); got != after {
			t.Errorf("%+v, then %+v, with connections left: %v, Linux %v", old, fresh, got, after)
		}
		table.Close(f)
	})
}

// Whether a socket can bind the port of an outgoing connection is compared with Linux.
func TestOutgoingConnectionAgainstLinux(t *testing.T) {
	eachOption(func(old, fresh Options) {
		k := newKernel(t)
		want := false
		for try := 0; try < 5 && !want; try++ { // connections of other programs may also use the port and its neighbours
			_, port := k.listen(Options{})
			client := k.socket(old)
			k.check(syscall.Connect(client, sockaddr(loopback, port)))
			want = k.canBind(k.port(client), fresh)
		}

		table := NewTable(Config{})
		f, err := table.Connect(wire.ProtoTCP, netip.AddrPortFrom(loopback, 0), netip.AddrPortFrom(loopback, 80), nil, old)
		if err != nil {
			t.Fatal(err)
		}
		if got := canBind(table, f.Local().Port(), fresh); got != want {
			t.Errorf("%+v, then %+v: %v, Linux %v", old, fresh, got, want)
		}
	})
}
