package subject

import (
	"net"
	"net/netip"

	"loam/link"
	"loam/link/pipe"
	"loam/link/tap"
	"loam/stack"
)

// loam is the stack of this tree with its default settings. Its pipe carries IP packets without
// Ethernet headers, like gVisor's.
type loam struct{}

func (loam) Name() string { return Loam }

func (loam) Pipe(gso bool) (a, b Host, err error) {
	config := pipe.Config{Medium: link.IP, MTU: MTU}
	if gso {
		config.Offloads = pipe.AllOffloads
	}
	left, right := pipe.New(config)
	if a, err = newLoamHost(left, First); err != nil {
		return nil, nil, err
	}
	if b, err = newLoamHost(right, Second); err != nil {
		return nil, nil, err
	}
	return a, b, nil
}

func (loam) Loop() (Host, error) {
	return &loamHost{stack.New(stack.Config{}), netip.MustParseAddr("127.0.0.1")}, nil
}

func (loam) Tap(name string, addr netip.Prefix) (Host, error) {
	device, err := tap.Open(tap.Config{Name: name})
	if err != nil {
		return nil, err
	}
	return newLoamHost(device, addr)
}

type loamHost struct {
	stack *stack.Stack
	addr  netip.Addr
}

func newLoamHost(device link.Device, addr netip.Prefix) (Host, error) {
	const name = "eth0"
	s := stack.New(stack.Config{})
	if _, err := s.Attach(device, stack.InterfaceConfig{Name: name}); err != nil {
		return nil, err
	}
	if err := s.AddAddress(name, addr); err != nil {
		return nil, err
	}
	return &loamHost{s, addr.Addr()}, nil
}

func (h *loamHost) Addr() netip.Addr { return h.addr }

func (h *loamHost) Dial(to netip.AddrPort) (net.Conn, error) {
	return h.stack.Dial("tcp", to.String())
}

func (h *loamHost) Listen(port uint16) (net.Listener, error) {
	return h.stack.Listen("tcp", netip.AddrPortFrom(h.addr, port).String())
}

func (h *loamHost) Close() error { return h.stack.Close() }
