// Package freeport finds free ports of this host, for tests that must pass a port to another process
// before anything listens on it.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"
)

// The ports that Next returns are below the range from which Linux assigns client ports
// (net.ipv4.ip_local_port_range), so that no client is assigned one in the meantime.
const (
	first = 20_000
	count = 12_000
	tries = 1_000
)

// given are the ports that this process has returned, because other tests of the process may be about
// to use them.
var given struct {
	sync.Mutex
	ports map[uint16]bool
}

// Next returns a port of 127.0.0.1 that is free for TCP and UDP, and that this process has not returned
// before. Another process may still take it.
func Next() (netip.AddrPort, error) {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = map[uint16]bool{}
	}
	for range tries {
		port := uint16(first + rand.IntN(count))
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
		if !given.ports[port] && free(at) {
			given.ports[port] = true
			return at, nil
		}
	}
	return netip.AddrPort{}, errors.New("freeport: no port of the loopback is free")
}

// free reports whether a port is free. No process is forked meanwhile: a child has copies of the sockets until it runs its
// program, and a socket that is still open there would take the port.
func free(at netip.AddrPort) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return binds(syscall.SOCK_STREAM, at) && binds(syscall.SOCK_DGRAM, at)
}

// binds reports whether a socket of a type can be bound to an address. The socket is not one of package net: an epoll_wait of
// another thread would refer to it for a moment after it was closed, and Linux would release the port only then.
func binds(kind int, at netip.AddrPort) bool {
	fd, err := syscall.Socket(syscall.AF_INET, kind|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	return syscall.Bind(fd, &syscall.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}) == nil
}
