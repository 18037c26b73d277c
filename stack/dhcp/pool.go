package dhcp

import (
	"encoding/binary"
	"net/netip"

	"loam/wire"
)

// The addresses of a server and who has them (RFC 2131 section 4.3.1).
//
// A pool is a slice with one binding for each address and an index by client. It
// needs no timer: a binding that is past its time is as good as free, and is
// kept nevertheless, so that a client that comes back gets the address that it
// had, until somebody else needs it. Looking for an address walks the slice; so
// maxPool also bounds what a stream of DISCOVERs from invented clients costs.

// maxPool is the largest number of addresses in a pool.
const maxPool = 4096

// maxClientID is the longest client identifier that is remembered.
const maxClientID = 255

type bindingState uint8

const (
	free       bindingState = iota
	offered                 // a client was told of it
	leased                  // a client has it
	quarantine              // a client found somebody else using it
)

// binding is one address of the pool.
type binding struct {
	state  bindingState
	until  Time     // states other than free end then
	client string   // who has, or last had, the address: see clientKey; empty: nobody yet
	mac    wire.MAC // of that client
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

// index finds an address in the pool.
func (p *pool) index(a netip.Addr) (i int, ok bool) {
	if !a.Is4() {
		return 0, false
	}
	i = int(int64(number(a)) - int64(p.first))
	return i, i >= 0 && i < len(p.bindings)
}

// clientKey says who a client is: its identifier, or else its hardware address
// (RFC 2131 section 4.2). ok is false if the identifier is too long.
func clientKey(m *wire.DHCPv4) (key string, ok bool) {
	if id := m.ClientID(); id != nil {
		return "id" + string(id), len(id) <= maxClientID
	}
	return "hw" + string(m.CHAddr[:]), true
}

// inUse reports whether a binding must not be given to another client.
func (b *binding) inUse(now Time) bool { return b.state != free && now < b.until }

// of finds the address that a client has or last had.
func (p *pool) of(client string) (i int, ok bool) {
	i, ok = p.byClient[client]
	return i, ok
}

// choose picks an address for a client, in the order of RFC 2131 section 4.3.1:
// the one that it has or had, the one that it asks for, one that nobody has had,
// and at last the one that has been free for the longest time.
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

// bind gives address i to a client until a time.
func (p *pool) bind(i int, state bindingState, until Time, client string, mac wire.MAC) {
	b := &p.bindings[i]
	if b.client != client {
		if old, ok := p.byClient[client]; ok { // a client has one address
			p.bindings[old] = binding{}
		}
		delete(p.byClient, b.client)
		p.byClient[client] = i
	}
	*b = binding{state: state, until: until, client: client, mac: mac}
}

// release frees address i at now; its client is remembered.
func (p *pool) release(i int, now Time) {
	p.bindings[i].state, p.bindings[i].until = free, now
}

// setAside takes address i from its client, and from everybody until a time.
func (p *pool) setAside(i int, until Time) {
	delete(p.byClient, p.bindings[i].client)
	p.bindings[i] = binding{state: quarantine, until: until}
}
