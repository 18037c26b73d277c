package port

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"loam/wire"
)

// Comparison with the kernel that runs the test: two sockets, one after the other, on a port of the loopback
// interface, with every combination of addresses and options. Another program may use the port, so a
// difference must appear on several ports.

const soReusePort = 15 // the option's number, which package syscall lacks

// step is one socket: its address, its options, and whether it listens.
type step struct {
	addr   netip.Addr
	o      Options
	listen bool
}

// outcome records which calls of two sockets succeeded.
type outcome struct{ firstBind, firstListen, secondBind, secondListen bool }

func TestAgainstLinux(t *testing.T) {
	for _, proto := range []wire.Protocol{wire.ProtoTCP, wire.ProtoUDP} {
		eachPair(proto, func(a, b step) {
			want := inTable(proto, a, b)
			var got outcome
			for try := 0; ; try++ {
				port, err := freePort(proto)
				if err != nil {
					t.Skipf("no sockets here: %v", err)
				}
				if got, err = inLinux(proto, port, a, b); err != nil {
					t.Skipf("no such sockets here: %v", err)
				}
				if got == want {
					return
				}
				if try == 3 {
					break
				}
			}
			t.Errorf("protocol %d, %+v then %+v: Linux %+v, the table %+v", proto, a, b, got, want)
		})
	}
}

// eachPair calls f with every pair of sockets.
func eachPair(proto wire.Protocol, f func(a, b step)) {
	var steps []step
	for _, address := range []string{"0.0.0.0", "127.0.0.1", "127.0.0.2", "::", "::1"} {
		for bits := range 16 {
			s := step{
				addr:   addr(address),
				o:      Options{ReuseAddr: bits&1 != 0, ReusePort: bits&2 != 0, V6Only: bits&4 != 0},
				listen: bits&8 != 0,
			}
			if s.o.V6Only && s.addr.Is4() || s.listen && proto != wire.ProtoTCP {
				continue
			}
			steps = append(steps, s)
		}
	}
	for _, a := range steps {
		for _, b := range steps {
			f(a, b)
		}
	}
}

func inTable(proto wire.Protocol, a, b step) (got outcome) {
	table := NewTable(Config{})
	run := func(s step) (bind, listen bool) {
		binding, err := table.Bind(proto, netip.AddrPortFrom(s.addr, 1000), s.o)
		if err != nil {
			return false, false
		}
		return true, s.listen && table.Listen(binding) == nil
	}
	got.firstBind, got.firstListen = run(a)
	got.secondBind, got.secondListen = run(b)
	return got
}

func inLinux(proto wire.Protocol, port int, a, b step) (got outcome, err error) {
	var open []int
	defer func() {
		for _, fd := range open {
			syscall.Close(fd)
		}
	}()
	run := func(s step) (bind, listen bool) {
		fd, socketErr := socket(proto, s)
		if socketErr != nil {
			err = socketErr
			return false, false
		}
		open = append(open, fd)
		bindErr := syscall.Bind(fd, sockaddr(s.addr, port))
		if bindErr != nil && !errors.Is(bindErr, syscall.EADDRINUSE) {
			err = fmt.Errorf("bind %v: %w", s.addr, bindErr)
		}
		return bindErr == nil, bindErr == nil && s.listen && syscall.Listen(fd, 1) == nil
	}
	got.firstBind, got.firstListen = run(a)
	got.secondBind, got.secondListen = run(b)
	return got, err
}

func socket(proto wire.Protocol, s step) (int, error) {
	family, kind := syscall.AF_INET, syscall.SOCK_STREAM
	if s.addr.Is6() {
		family = syscall.AF_INET6
	}
	if proto == wire.ProtoUDP {
		kind = syscall.SOCK_DGRAM
	}
	fd, err := syscall.Socket(family, kind|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	set := func(level, option int, on bool) {
		if on && err == nil {
			err = syscall.SetsockoptInt(fd, level, option, 1)
		}
	}
	set(syscall.SOL_SOCKET, syscall.SO_REUSEADDR, s.o.ReuseAddr)
	set(syscall.SOL_SOCKET, soReusePort, s.o.ReusePort)
	if s.addr.Is6() && err == nil { // sets IPV6_V6ONLY, whose default depends on the host
		v6Only := 0
		if s.o.V6Only {
			v6Only = 1
		}
		err = syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, v6Only)
	}
	if err != nil {
		syscall.Close(fd)
		return -1, fmt.Errorf("setsockopt: %w", err)
	}
	return fd, nil
}

func sockaddr(a netip.Addr, port int) syscall.Sockaddr {
	if a.Is4() {
		return &syscall.SockaddrInet4{Port: port, Addr: a.As4()}
	}
	return &syscall.SockaddrInet6{Port: port, Addr: a.As16()}
}

// freePort returns a port that was unused a moment ago.
func freePort(proto wire.Protocol) (int, error) {
	fd, err := socket(proto, step{addr: netip.IPv6Unspecified()})
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, sockaddr(netip.IPv6Unspecified(), 0)); err != nil {
		return 0, fmt.Errorf("bind: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("getsockname: %w", err)
	}
	return name.(*syscall.SockaddrInet6).Port, nil
}
