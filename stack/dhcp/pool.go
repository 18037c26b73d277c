package dhcp

import (
	"encoding/binary"
	"net/netip"

	"loam/wire"
)

// The address pool of a server and its bindings (RFC 2131 section 4.3.1).
//
// A pool is a slice with one binding per address, and an index by client. It needs no timer: an expired binding counts as
// free. Such a binding is kept nevertheless, so that a returning client gets its earlier address unless another client needs
// the address. The search for an address scans the slice. maxPool therefore also limits the cost of a flood of DISCOVERs
// from invented clients.

// maxPool is the maximum number of addresses in a pool.
const maxPool = 4096

// maxClientID is the maximum length of a client identifier in bytes.
const maxClientID = 255

type bindingState uint8

const (
	free       bindingState = iota
	offered                 // offered to a client
	leased                  // leased to a client
	quarantine              // a client has reported that another host uses the address
)

// binding is the state of one address of the pool.
type binding struct {
	state  bindingState
	until  Time     // time at which the state ends; not used in the state free
	client string   // key (clientKey) of the client that has the address or had it last; empty: none yet
	mac    wire.MAC // MAC address of that client
}

// pool is a range of addresses.
type pool struct {
	first    uint32
	bindings []binding
	byClient map[string]int
}

func newPool(first, last netip.Addr) pool {
	from, to := number(first), number(last)
	return pool{first: from, bindings: make([]binding, to-from+1), byClient: map[string]int{}}
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func (p *pool) addr(i int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], p.first+uint32(i))
	return netip.AddrFrom4(b)
}

// index returns the index of an address. ok is false if it is not in the pool.
func (p *pool) index(a netip.Addr) (i int, ok bool) {
	if !a.Is4() {
		return 0, false
	}
	i = int(int64(number(a)) - int64(p.first))
	return i, i >= 0 && i < len(p.bindings)
}

// clientKey returns the key of a client: its identifier, or else its hardware address (RFC 2131 section 4.2).
// ok is false if the identifier is too long.
func clientKey(m *wire.DHCPv4) (key string, ok bool) {
	if id := m.ClientID(); id != nil {
		return "id" + string(id), len(id) <= maxClientID
	}
	return "hw" + string(m.CHAddr[:]), true
}

// inUse reports whether a binding must not be given to another client.
func (b *binding) inUse(now Time) bool { return b.state != free && now < b.until }

// of returns the index of the address that a client has or had last.
func (p *pool) of(client string) (i int, ok bool) {
	i, ok = p.byClient[client]
	return i, ok
}

// choose selects an address for a client, in the order of RFC 2131 section 4.3.1: its current or earlier
// address, the requested one, one that was never used, and last the one that has been free for longest.
func (p *pool) choose(now Time, client string, wanted netip.Addr) (i int, ok bool) {
	if i, ok = p.of(client); ok {
		return i, true
	}
	if i, ok = p.index(wanted); ok && !p.bindings[i].inUse(now) {
		return i, true
	}
	best := -1
	for i := range p.bindings {
		b := &p.bindings[i]
		if b.inUse(now) {
			continue
		}
		if b.client == "" && b.state == free {
			return i, true
		}
		if best < 0 || b.until < p.bindings[best].until {
			best = i
		}
	}
	return best, best >= 0
}

// bind assigns address i to a client until the given time.
func (p *pool) bind(i int, state bindingState, until Time, client string, mac wire.MAC) {
	b := &p.bindings[i]
	if b.client != client {
		if old, ok := p.byClient[client]; ok { // a client has at most one address, so its old binding ends
			p.bindings[old] = binding{}
		}
		delete(p.byClient, b.client)
		p.byClient[client] = i
	}
	*b = binding{state: state, until: until, client: client, mac: mac}
}

// release frees address i at the time now. The binding still names its client.
func (p *pool) release(i int, now Time) {
	p.bindings[i].state, p.bindings[i].until = free, now
}

// setAside removes the client of address i and blocks the address until the given time.
func (p *pool) setAside(i int, until Time) {
	delete(p.byClient, p.bindings[i].client)
	p.bindings[i] = binding{state: quarantine, until: until}
}
