package port

import (
	"errors"
	"math/rand/v2"
	"net/netip"

	"loam/internal/list"
	"loam/internal/siphash"
	"loam/wire"
)

// Errors of Bind, Listen and Connect, with the error number for programs.
var (
	ErrInUse        = errors.New("port: address already in use")            // EADDRINUSE
	ErrNotAvailable = errors.New("port: no port left for this destination") // EADDRNOTAVAIL
)

// Config configures a Table.
type Config struct {
	// First and Last are the range of ephemeral ports. Zero means 32768 and 60999, as in Linux's
	// ip_local_port_range.
	First, Last uint16
	// Seed makes the choice of ports unpredictable. It must be secret and random.
	Seed [32]byte
}

// Table holds all ports of a host. It belongs to one goroutine at a time.
type Table struct {
	first   uint16
	count   uint64 // number of ephemeral ports
	changed bool   // SetRange was called: peers may count connections from ports outside of the range
	ports   map[number]*portState
	flows   map[flow]struct{}
	peers   map[flow]uint64 // number of connections from ephemeral ports to each peer; the key is a flow with local port 0
	key     siphash.Key
	random  *rand.ChaCha8
	offsets [offsetPlaces]uint64 // counters of the double-hash algorithm: see ephemeral.go
}

// number identifies a port of one protocol.
type number struct {
	proto wire.Protocol
	port  uint16
}

// portState holds the bindings of a port. It exists while the port has any.
type portState struct {
	bindings list.List[Binding]
	bound    int // number of bindings that Bind has made
}

// flow is the unique key of a connection.
type flow struct {
	proto         wire.Protocol
	local, remote netip.AddrPort
}

// Binding is a local address and port in use.
type Binding struct {
	number
	claim Claim
	bound bool // Bind has made the binding; otherwise, Connect has made it for one Flow
	users int  // number of users: the program's socket, and each Flow
	node  list.Node[Binding]
}

// Flow is a reserved connection.
type Flow struct {
	flow
	binding   *Binding
	ephemeral bool // Connect has chosen the local port
}

// NewTable returns a table in which every port is free.
func NewTable(c Config) *Table {
	if c.First == 0 {
		c.First = 32768
	}
	if c.Last == 0 {
		c.Last = 60999
	}
	t := &Table{
		first:  c.First,
		count:  uint64(c.Last) - uint64(c.First) + 1,
		ports:  make(map[number]*portState),
		flows:  make(map[flow]struct{}),
		peers:  make(map[flow]uint64),
		random: rand.NewChaCha8(c.Seed),
	}
	t.key = siphash.Key{K0: t.random.Uint64(), K1: t.random.Uint64()}
	return t
}

// Range returns the range of ephemeral ports, and SetRange changes it for later calls. first is not above last.
func (t *Table) Range() (first, last uint16) { return t.first, t.first + uint16(t.count-1) }

func (t *Table) SetRange(first, last uint16) {
	t.first, t.count, t.changed = first, uint64(last-first)+1, true
}

// Local returns the local address and port.
func (b *Binding) Local() netip.AddrPort { return netip.AddrPortFrom(b.claim.Addr, b.port) }

// Local returns the local end of the connection.
func (f *Flow) Local() netip.AddrPort { return f.local }

// Remote returns the peer's end of the connection.
func (f *Flow) Remote() netip.AddrPort { return f.remote }

// Bind reserves a local address, which may be unspecified, and a port. Port 0 selects an ephemeral port that
// no other socket has. The error is ErrInUse.
func (t *Table) Bind(proto wire.Protocol, local netip.AddrPort, o Options) (*Binding, error) {
	claim := Claim{Addr: local.Addr(), Options: o}
	port := local.Port()
	if port == 0 {
		var ok bool
		if port, ok = t.unused(proto, claim); !ok {
			return nil, ErrInUse
		}
	} else if t.conflict(number{proto, port}, claim, nil) {
		return nil, ErrInUse
	}
	return t.take(number{proto, port}, claim, true), nil
}

// Listen marks b as accepting connections. It can fail with ErrInUse even if Bind did not: of the sockets
// that share a port by SO_REUSEADDR, only one may listen.
func (t *Table) Listen(b *Binding) error {
	claim := b.claim
	claim.Listening = true
	if t.conflict(b.number, claim, b) {
		return ErrInUse
	}
	b.claim = claim
	return nil
}

// SetInterface restricts b to the interface with an index; 0 removes the restriction (SO_BINDTODEVICE). As on Linux, it does
// not check for conflicts with existing bindings.
func (t *Table) SetInterface(b *Binding, index int) { b.claim.Interface = index }

// Release gives up a Binding and stops listening. If it has connections, the port stays in use until they are
// closed.
func (t *Table) Release(b *Binding) {
	b.claim.Listening = false
	t.leave(b)
}

// Connect reserves a connection from local to remote. b is the Binding of the socket if the program has bound
// it or a listener accepts the connection; local must then match b. Without a Binding, port 0 selects an
// ephemeral port, which connections to different destinations may share.
//
// It returns ErrNotAvailable if the connection exists or no port is left, and ErrInUse if the given port is
// in use.
func (t *Table) Connect(proto wire.Protocol, local, remote netip.AddrPort, b *Binding, o Options) (*Flow, error) {
	f := flow{proto, local, remote}
	var err error
	switch {
	case b != nil:
		b.users++
	case local.Port() != 0:
		if b, err = t.Bind(proto, local, o); err != nil {
			return nil, err
		}
	default:
		port, ok := t.ephemeral(f)
		if !ok {
			return nil, ErrNotAvailable
		}
		t.peers[f]++
		f.local = netip.AddrPortFrom(local.Addr(), port)
		b = t.take(number{proto, port}, Claim{Addr: local.Addr(), Options: o}, false)
		t.flows[f] = struct{}{}
		return &Flow{f, b, true}, nil
	}
	if _, taken := t.flows[f]; taken {
		t.leave(b)
		return nil, ErrNotAvailable
	}
	t.flows[f] = struct{}{}
	return &Flow{f, b, false}, nil
}

// forget removes a connection from the count of its peer. Its local port is an ephemeral port.
func (t *Table) forget(f flow) {
	f.local = netip.AddrPortFrom(f.local.Addr(), 0)
	if t.peers[f]--; t.peers[f] == 0 {
		delete(t.peers, f)
	}
}

// Close releases a connection.
func (t *Table) Close(f *Flow) {
	delete(t.flows, f.flow)
	if f.ephemeral {
		t.forget(f.flow)
	}
	t.leave(f.binding)
}

// Used reports whether a port of any address is bound or has a connection.
func (t *Table) Used(proto wire.Protocol, port uint16) bool {
	return t.ports[number{proto, port}] != nil
}

// conflict reports whether a binding on port n other than self conflicts with claim.
func (t *Table) conflict(n number, claim Claim, self *Binding) bool {
	p := t.ports[n]
	if p == nil {
		return false
	}
	for b := range p.bindings.All {
		if b != self && Conflict(n.proto, claim, b.claim) {
			return true
		}
	}
	return false
}

// take adds a binding with one user to port n. The caller has checked for conflicts.
func (t *Table) take(n number, claim Claim, bound bool) *Binding {
	p := t.ports[n]
	if p == nil {
		p = new(portState)
		t.ports[n] = p
	}
	b := &Binding{number: n, claim: claim, bound: bound, users: 1}
	b.node.Owner = b
	p.bindings.PushBack(&b.node)
	if bound {
		p.bound++
	}
	return b
}

// leave removes one user of b. The last one releases b.
func (t *Table) leave(b *Binding) {
	if b.users--; b.users > 0 {
		return
	}
	p := t.ports[b.number]
	b.node.Remove()
	if b.bound {
		p.bound--
	}
	if p.bindings.Len() == 0 {
		delete(t.ports, b.number)
	}
}
