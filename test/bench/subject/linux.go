package subject

import (
	"errors"
	"net"
	"net/netip"
)

// linux is the kernel's own stack behind Go's net package, as a reference. Both ends of its "pipe" are
// on the loopback device of the process's namespace. Instead of a tap it has a veth, which package cell
// creates.
type linux struct{}

func (linux) Name() string { return Linux }

func (linux) Pipe(bool) (a, b Host, err error) {
	h := Kernel(netip.MustParseAddr("127.0.0.1"))
	return h, h, nil
}

func (linux) Loop() (Host, error) {
	return Kernel(netip.MustParseAddr("127.0.0.1")), nil
}

func (linux) Tap(string, netip.Prefix) (Host, error) {
	return nil, errors.New("subject: the kernel does not stand behind its own tap; use a veth")
}

// Kernel returns the kernel's stack as a host. The kernel must already have address addr.
func Kernel(addr netip.Addr) Host { return kernelHost{addr} }

type kernelHost struct{ addr netip.Addr }

func (h kernelHost) Addr() netip.Addr { return h.addr }

func (h kernelHost) Dial(to netip.AddrPort) (net.Conn, error) {
	return net.Dial("tcp", to.String())
}

func (h kernelHost) Listen(port uint16) (net.Listener, error) {
	return net.Listen("tcp", netip.AddrPortFrom(h.addr, port).String())
}

func (h kernelHost) Close() error { return nil }
