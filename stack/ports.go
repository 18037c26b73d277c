package stack

import (
	"math/rand/v2"
	"net/netip"
	"sync"
)

// portTable knows which local addresses and ports are taken, and by which
// connections. It is shared by all programs and shards, under one lock.
type portTable struct {
	mu    sync.Mutex
	tcp   map[netip.AddrPort]int
	udp   map[netip.AddrPort]int
	flows map[flow]struct{}
	pings map[uint16]struct{}
}

func (t *portTable) init() {
	t.tcp = make(map[netip.AddrPort]int)
	t.udp = make(map[netip.AddrPort]int)
	t.flows = make(map[flow]struct{})
	t.pings = make(map[uint16]struct{})
}

func (t *portTable) bind(m map[netip.AddrPort]int, local netip.AddrPort, share bool) (netip.AddrPort, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if local.Port() != 0 {
		if m[local] > 0 && !share {
			return local, ErrInUse
		}
		m[local]++
		return local, nil
	}
	for range 30000 {
		l := netip.AddrPortFrom(local.Addr(), uint16(32768+rand.IntN(28232)))
		if m[l] == 0 {
			m[l]++
			return l, nil
		}
	}
	return local, ErrInUse
}

func (t *portTable) release(m map[netip.AddrPort]int, local netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m[local]--; m[local] == 0 {
		delete(m, local)
	}
}

func (t *portTable) bindTCP(local netip.AddrPort, o TCPOptions) (netip.AddrPort, error) {
	return t.bind(t.tcp, local, o.ReusePort)
}
func (t *portTable) releaseTCP(local netip.AddrPort, o TCPOptions) { t.release(t.tcp, local) }
func (t *portTable) bindUDP(local netip.AddrPort, o UDPOptions) (netip.AddrPort, error) {
	return t.bind(t.udp, local, o.ReusePort || o.ReuseAddr)
}
func (t *portTable) releaseUDP(local netip.AddrPort) { t.release(t.udp, local) }

func (t *portTable) takeFlow(local, remote netip.AddrPort, bound bool) (netip.AddrPort, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if local.Port() != 0 {
		if _, taken := t.flows[flowOf(local, remote)]; taken {
			return local, ErrInUse
		}
		t.flows[flowOf(local, remote)] = struct{}{}
		return local, nil
	}
	for range 30000 {
		l := netip.AddrPortFrom(local.Addr(), uint16(32768+rand.IntN(28232)))
		if _, taken := t.flows[flowOf(l, remote)]; !taken && t.tcp[l] == 0 {
			t.flows[flowOf(l, remote)] = struct{}{}
			return l, nil
		}
	}
	return local, ErrNotAvailable
}

func (t *portTable) releaseFlow(local, remote netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flows, flowOf(local, remote))
}

func (t *portTable) takePing(id uint16) (uint16, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range 65536 {
		n := id
		if id == 0 {
			n = uint16(rand.IntN(65535) + 1)
		}
		if _, taken := t.pings[n]; !taken {
			t.pings[n] = struct{}{}
			return n, nil
		}
		if id != 0 {
			break
		}
	}
	return 0, ErrInUse
}

func (t *portTable) releasePing(id uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pings, id)
}
