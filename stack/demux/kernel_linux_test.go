package demux

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/wire"
)

// Comparison with the kernel that runs the test: several sockets share a port of the loopback interface, and receive
// datagrams or accept connections.

const (
	soReusePort = 15 // the option's number, which package syscall lacks
	flows       = 40
)

func TestAgainstLinux(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		kind, sockets := randomSockets(r)
		to := []string{"127.0.0.1", "127.0.0.1", "::1"}[r.IntN(3)]
		made, got := linuxReceivers(t, kind, sockets, to)
		want := receivers(made, to, many(200)...)
		if want[0] < 0 {
			continue // the socket that would receive the flows could not be bound
		}
		for _, i := range got {
			if !slices.Contains(want, i) || len(want) > 1 && len(got) == 1 {
				t.Errorf("%v to %s: %q: Linux %v, the table %v", kind, to, made, got, want)
				break
			}
		}
	}
}

// randomSockets returns a protocol and up to six sockets of it. The letter a stands for SO_REUSEADDR.
func randomSockets(r *rand.Rand) (wire.Protocol, []string) {
	kind, options := wire.ProtoTCP, []string{"r", "rd", "r", "ro"}
	if r.IntN(2) == 0 {
		kind, options = wire.ProtoUDP, append(options, "ra", "a", "ad", "rad")
	}
	sockets := []string{":: r", "0.0.0.0 r"} // each destination has a receiver
	for range r.IntN(5) {
		address := []string{"0.0.0.0", "127.0.0.1", "::", "::ffff:127.0.0.1", "::1"}[r.IntN(5)]
		option := options[r.IntN(len(options))]
		if !strings.HasSuffix(address, ":") {
			option = strings.TrimSuffix(option, "o")
		}
		sockets = append(sockets, address+" "+option)
	}
	r.Shuffle(len(sockets), func(i, j int) { sockets[i], sockets[j] = sockets[j], sockets[i] })
	return kind, sockets
}

// linuxReceivers returns the sockets that could be bound, and which of these receive the flows to an address.
func linuxReceivers(t *testing.T, kind wire.Protocol, sockets []string, to string) (made []string, found []int) {
	var open []int
	defer func() {
		for _, fd := range open {
			syscall.Close(fd)
		}
	}()
	port, list := 0, []int(nil)
	for _, text := range sockets {
		fd := linuxSocket(t, kind, text)
		open = append(open, fd)
		address, _, _ := strings.Cut(text, " ")
		err := syscall.Bind(fd, sockaddr(netip.MustParseAddr(address), port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		check(t, err)
		if kind == wire.ProtoTCP {
			check(t, syscall.Listen(fd, flows))
		}
		port = portOf(t, fd)
		made, list = append(made, text), append(list, fd)
	}
	if receivers(made, to, 1)[0] < 0 {
		return made, nil
	}
	for range flows {
		open = append(open, linuxFlow(t, kind, to, port))
	}
	for n, end := 0, time.Now().Add(time.Minute); n < flows; {
		for i, fd := range list {
			for take(fd, kind) {
				if n++; !slices.Contains(found, i) {
					found = append(found, i)
				}
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d flows arrived at %q", n, flows, made)
		}
	}
	return made, found
}

// take reads a datagram, or accepts a connection, and reports whether there was one.
func take(fd int, kind wire.Protocol) bool {
	if kind == wire.ProtoUDP {
		_, _, err := syscall.Recvfrom(fd, make([]byte, 8), 0)
		return err == nil
	}
	conn, _, err := syscall.Accept4(fd, syscall.SOCK_CLOEXEC)
	if err == nil {
		syscall.Close(conn)
	}
	return err == nil
}

// linuxFlow sends a datagram or opens a connection, and returns its socket.
func linuxFlow(t *testing.T, kind wire.Protocol, to string, port int) int {
	addr := netip.MustParseAddr(to)
	fd, err := syscall.Socket(family(addr), typeOf(kind)|syscall.SOCK_CLOEXEC, 0)
	check(t, err)
	check(t, syscall.Connect(fd, sockaddr(addr, port)))
	if kind == wire.ProtoUDP {
		_, err := syscall.Write(fd, []byte("x"))
		check(t, err)
	}
	return fd
}

func linuxSocket(t *testing.T, kind wire.Protocol, text string) int {
	address, letters, _ := strings.Cut(text, " ")
	addr := netip.MustParseAddr(address)
	fd, err := syscall.Socket(family(addr), typeOf(kind)|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	check(t, err)
	set := func(level, option int, letter string) {
		on := 0
		if strings.Contains(letters, letter) {
			on = 1
		}
		check(t, syscall.SetsockoptInt(fd, level, option, on))
	}
	set(syscall.SOL_SOCKET, syscall.SO_REUSEADDR, "a")
	set(syscall.SOL_SOCKET, soReusePort, "r")
	if addr.Is6() {
		set(syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, "o")
	}
	if strings.Contains(letters, "d") {
		check(t, syscall.BindToDevice(fd, "lo"))
	}
	return fd
}

func portOf(t *testing.T, fd int) int {
	name, err := syscall.Getsockname(fd)
	check(t, err)
	if name, ok := name.(*syscall.SockaddrInet4); ok {
		return name.Port
	}
	return name.(*syscall.SockaddrInet6).Port
}

func family(a netip.Addr) int {
	if a.Is4() {
		return syscall.AF_INET
	}
	return syscall.AF_INET6
}

func typeOf(kind wire.Protocol) int {
	if kind == wire.ProtoUDP {
		return syscall.SOCK_DGRAM
	}
	return syscall.SOCK_STREAM
}

func sockaddr(a netip.Addr, port int) syscall.Sockaddr {
	if a.Is4() {
		return &syscall.SockaddrInet4{Port: port, Addr: a.As4()}
	}
	return &syscall.SockaddrInet6{Port: port, Addr: a.As16()}
}

// check skips the test if the host lacks IPv6, or does not permit SO_BINDTODEVICE.
func check(t *testing.T, err error) {
	t.Helper()
	switch {
	case errors.Is(err, syscall.EAFNOSUPPORT), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EPERM):
		t.Skipf("no such sockets here: %v", err)
	case err != nil:
		t.Fatal(err)
	}
}
