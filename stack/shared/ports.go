package shared

import (
	crand "crypto/rand"
	"net/netip"
	"sync"

	"loam/stack/port"
	"loam/stack/socket"
	"loam/wire"
)

// Ports records the local addresses and ports in use, and the connections that use them.
// Programs' goroutines and shards share it under one lock.
type Ports struct {
	mu    sync.Mutex
	table *port.Table
}

// NewPorts returns a table without entries.
func NewPorts() *Ports {
	var seed [32]byte
	crand.Read(seed[:]) // Read of crypto/rand never fails
	return &Ports{table: port.NewTable(port.Config{Seed: seed})}
}

// Range returns the range of ephemeral ports, and SetRange changes it.
func (p *Ports) Range() (first, last uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.table.Range()
}

func (p *Ports) SetRange(first, last uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.SetRange(first, last)
}

// Bind reserves a local address and port; port 0 selects a free one. Errors: socket.ErrInUse.
func (p *Ports) Bind(proto wire.Protocol, local netip.AddrPort, o port.Options) (*port.Binding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.table.Bind(proto, local, o)
	return b, portError(err)
}

// SetInterface restricts a binding to the interface with a number. 0 removes the restriction. If b is nil, it does nothing.
func (p *Ports) SetInterface(b *port.Binding, number int) {
	if b == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.SetInterface(b, number)
}

// Listen marks a binding as used by a listener. Errors: socket.ErrInUse.
func (p *Ports) Listen(b *port.Binding) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return portError(p.table.Listen(b))
}

// Release releases the port of a binding.
func (p *Ports) Release(b *port.Binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.Release(b)
}

// Used reports whether a port has a user.
func (p *Ports) Used(proto wire.Protocol, number uint16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.table.Used(proto, number)
}

// Connect reserves a connection. b is the binding of its local port, or nil. Errors:
// socket.ErrNotAvailable, socket.ErrInUse.
func (p *Ports) Connect(local, remote netip.AddrPort, b *port.Binding, o port.Options) (*port.Flow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := p.table.Connect(wire.ProtoTCP, local, remote, b, o)
	return f, portError(err)
}

// Close releases a connection that Connect has reserved. f may be nil.
func (p *Ports) Close(f *port.Flow) {
	if f == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.Close(f)
}

// portError translates an error of package port into an error of package socket.
func portError(err error) error {
	switch err {
	case nil:
		return nil
	case port.ErrInUse:
		return socket.ErrInUse
	default:
		return socket.ErrNotAvailable
	}
}
