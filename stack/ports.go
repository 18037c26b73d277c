package stack

import (
	crand "crypto/rand"
	"net/netip"
	"sync"

	"loam/stack/port"
	"loam/wire"
)

// ports records the local addresses and ports in use, and the connections that use them.
// Programs' goroutines and shards share it under one lock.
type ports struct {
	mu    sync.Mutex
	table *port.Table
}

func newPorts() ports {
	var seed [32]byte
	crand.Read(seed[:]) // never fails
	return ports{table: port.NewTable(port.Config{Seed: seed})}
}

// bind reserves a local address and port; port 0 selects a free one. Errors: ErrInUse.
func (p *ports) bind(proto wire.Protocol, local netip.AddrPort, o port.Options) (*port.Binding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.table.Bind(proto, local, o)
	return b, portError(err)
}

// setDevice restricts a binding to an interface. If on is nil, it removes the restriction. If b is nil, it does nothing.
func (p *ports) setDevice(b *port.Binding, on *Interface) {
	if b == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.SetInterface(b, on.number())
}

// listen marks a binding as listening. Errors: ErrInUse.
func (p *ports) listen(b *port.Binding) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return portError(p.table.Listen(b))
}

// release releases a binding.
func (p *ports) release(b *port.Binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.Release(b)
}

// used reports whether a port has a user.
func (p *ports) used(proto wire.Protocol, number uint16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.table.Used(proto, number)
}

// connect reserves a connection. b is the binding of its local port, or nil. Errors:
// ErrNotAvailable, ErrInUse.
func (p *ports) connect(local, remote netip.AddrPort, b *port.Binding, o port.Options) (*port.Flow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := p.table.Connect(wire.ProtoTCP, local, remote, b, o)
	return f, portError(err)
}

// close releases a connection. f may be nil.
func (p *ports) close(f *port.Flow) {
	if f == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.Close(f)
}

// portError translates an error of package port.
func portError(err error) error {
	switch err {
	case nil:
		return nil
	case port.ErrInUse:
		return ErrInUse
	default:
		return ErrNotAvailable
	}
}

func (o *TCPOptions) sharing() port.Options {
	return port.Options{ReuseAddr: o.ReuseAddr, ReusePort: o.ReusePort, V6Only: o.V6Only, Interface: o.Device.number()}
}

func (o *UDPOptions) sharing() port.Options {
	return port.Options{ReuseAddr: o.ReuseAddr, ReusePort: o.ReusePort, V6Only: o.V6Only, Interface: o.Device.number()}
}
