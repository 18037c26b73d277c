package stack

import (
	"net/netip"
	"sync"

	"loam/stack/port"
	"loam/stack/tcp"
	"loam/wire"
)

// TCPBinding is a local address and port reserved for TCP, before it is known whether it will listen or connect (bind(2)).
type TCPBinding struct {
	stack   *Stack
	local   netip.AddrPort
	six     bool // the program has given an IPv6 address, which may be an IPv4-mapped one
	options TCPOptions
	port    *port.Binding

	mu     sync.Mutex
	used   bool // a listener or a connection uses the binding
	closed bool
}

// BindTCP reserves local; port 0 selects a free one. Errors: ErrInUse, ErrNotAvailable if
// the address is not one of the stack's, ErrFamily, ErrInvalid for an unknown congestion control.
func (s *Stack) BindTCP(local netip.AddrPort, o TCPOptions) (*TCPBinding, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	six := local.Addr().Is6()
	local, err := s.checkLocal(local)
	if err != nil {
		return nil, err
	}
	b, err := s.ports.Bind(wire.ProtoTCP, local, o.sharing())
	if err != nil {
		return nil, err
	}
	return &TCPBinding{stack: s, local: b.Local(), six: six, options: o, port: b}, nil
}

// LocalAddrPort returns the reserved address and port.
func (b *TCPBinding) LocalAddrPort() netip.AddrPort { return b.local }

// use marks the binding as used. Errors: ErrInvalid if it is already used or closed.
func (b *TCPBinding) use() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used || b.closed {
		return ErrInvalid
	}
	b.used = true
	return nil
}

// Close releases the port. Errors: ErrClosed.
func (b *TCPBinding) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	b.closed = true
	b.stack.ports.Release(b.port)
	return nil
}

// checkLocal validates an address to bind to, and returns it in normalized form. It
// accepts the zero or unspecified address, addresses of the stack, and broadcast and multicast addresses.
func (s *Stack) checkLocal(local netip.AddrPort) (netip.AddrPort, error) {
	addr := local.Addr().Unmap()
	if !addr.IsValid() {
		addr = netip.IPv4Unspecified()
	}
	if addr.Is6() {
		return s.checkLocal6(netip.AddrPortFrom(addr, local.Port()))
	}
	if _, ours := s.tables.Load().local[addr]; !ours && !addr.IsUnspecified() && !addr.IsLoopback() && !addr.IsMulticast() && addr != limitedBroadcast {
		return local, ErrNotAvailable
	}
	return netip.AddrPortFrom(addr, local.Port()), nil
}

// ListenTCP binds local and listens on it. Errors are those of BindTCP and Listen.
func (s *Stack) ListenTCP(local netip.AddrPort, backlog int, o TCPOptions) (*TCPListener, error) {
	b, err := s.BindTCP(local, o)
	if err != nil {
		return nil, err
	}
	l, err := b.Listen(backlog)
	if err != nil {
		b.Close()
		return nil, err
	}
	return l, nil
}

// DialTCP starts to connect and does not wait. The connection becomes Writable when the
// handshake is complete. local may be zero, or have a zero address or port. Errors:
// ErrNetUnreachable, ErrNotAvailable, ErrInUse, ErrFamily, ErrClosed; ErrInvalid for an unknown congestion control.
func (s *Stack) DialTCP(local, remote netip.AddrPort, o TCPOptions) (*TCPConn, error) {
	return s.dialFrom(local, remote, o, nil)
}

// dialFrom implements DialTCP and DialFast.
func (s *Stack) dialFrom(local, remote netip.AddrPort, o TCPOptions, d *early) (*TCPConn, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if !local.Addr().IsValid() {
		local = netip.AddrPortFrom(anyAddr(remote.Addr().Unmap()), local.Port())
	}
	local, err := s.checkLocal(local)
	if err != nil {
		return nil, err
	}
	return s.dialTCP(local, remote, o, nil, d)
}

// Dial starts to connect from the bound address. The port stays reserved until the binding is closed. Errors: ErrInvalid if
// the binding is already used, and those of DialTCP.
func (b *TCPBinding) Dial(remote netip.AddrPort) (*TCPConn, error) {
	if err := b.use(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	o := b.options
	b.mu.Unlock()
	return b.stack.dialTCP(b.local, remote, o, b.port, nil)
}

// dialTCP reserves the local port and creates the connection on the shard of its flow. b is the binding of local, or nil.
func (s *Stack) dialTCP(local, remote netip.AddrPort, o TCPOptions, b *port.Binding, d *early) (*TCPConn, error) {
	t := s.tables.Load()
	remote, err := t.destination(local.Addr(), remote, o.V6Only)
	switch {
	case err != nil:
		return nil, err
	case remote.Addr().IsMulticast() || remote.Addr() == limitedBroadcast || t.local[remote.Addr()].broadcast:
		return nil, ErrNetUnreachable
	}
	var from netip.Addr
	if !local.Addr().IsUnspecified() && !t.local[local.Addr()].broadcast {
		from = local.Addr()
	}
	p, err := t.routeOn(o.Device, from, remote.Addr())
	if err != nil {
		return nil, err
	}
	if !from.IsValid() {
		from = p.source
	}
	if from.IsUnspecified() {
		return nil, ErrNotAvailable
	}
	from = p.ifc.scoped(from)
	flow, err := s.ports.Connect(netip.AddrPortFrom(from, local.Port()), remote, b, o.sharing())
	if err != nil {
		return nil, err
	}
	local = flow.Local()
	var c *TCPConn
	s.shardFor(local, remote).request(func(sh *shard) {
		if !sh.closing {
			c = sh.dial(flow, o, d)
		}
	})
	if c == nil {
		s.ports.Close(flow)
		return nil, ErrClosed
	}
	return c, nil
}

// dial creates a connection, whose first segment is a SYN.
func (sh *shard) dial(flow *port.Flow, o TCPOptions, d *early) *TCPConn {
	id := tcp.ID{Local: flow.Local(), Remote: flow.Remote()}
	c := sh.newConn(id, o)
	c.flow = flow
	key := sh.stack.key
	c.machine = tcp.Dial(sh.now, o.config(&sh.tcpConfig), id, key.ISN(sh.now, id), key.TimestampOffset(id), o.mss(sh.mss(o.Device, id)), &c.toSend, (*arriving)(c))
	sh.tally.count(TCPActiveOpens)
	if d != nil {
		sh.dialFast(c, d)
	}
	sh.add(c)
	return c
}
