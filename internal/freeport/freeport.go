// Package freeport finds ports of this host for tests that have to name one to another
// process before anybody listens there.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
)

// Ports come from below the range from which Linux takes those of clients
// (net.ipv4.ip_local_port_range), so none of these gets one in between.
const (
	first = 20_000
	count = 12_000
	tries = 1_000
)

// given are those that this process has had, which its other tests may be about to use.
var given struct {
	sync.Mutex
	ports map[uint16]bool
}

// Next is a port of 127.0.0.1 that nobody has, for TCP and UDP, and that this process
// was not given before. Another process may still take it.
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

func free(at netip.AddrPort) bool {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return false
	}
	defer l.Close()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return false
	}
	c.Close()
	return true
}
