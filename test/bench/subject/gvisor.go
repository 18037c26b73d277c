package subject

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/loopback"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/link/qdisc/fifo"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// gvisor is gVisor's netstack with the settings that gave the best results here. Each setting was
// compared with its alternatives on every load:
//
//   - SACK and RACK are on, and receive buffers tune themselves: the defaults. They
//     may grow to 8 MiB, as Tailscale sets it; the default limit is 4 MiB.
//   - Send buffers keep their default size of 1 MiB. If they may grow to the
//     default limit of 4 MiB, a burst overflows the kernel's backlog behind the
//     tap, and the losses cost half of the throughput.
//   - The congestion control is the default, NewReno. CUBIC was faster with
//     losses, which the send buffers avoid, and slower otherwise.
//   - The queueing discipline is FIFO with room for 1000 packets, as in runsc:
//     it moves the work of the link to a goroutine of its own. This gives up to
//     1.9 times the throughput on a pipe, for 0.4 µs more latency.
//   - fdbased has its default of a processor goroutine for each CPU, which was a
//     little better than delivering in the reading goroutine. Its GRO is off:
//     on a tap it reads one packet at a time, so there is nothing to coalesce.
//   - The application side is gonet, gVisor's own net.Conn.
//
// vnet selects our own tap link with segmentation offload (gvisorlink.go) instead of fdbased, which has
// no such offload on a tap.
type gvisor struct{ vnet bool }

func (g gvisor) Name() string {
	if g.vnet {
		return GVisorVnet
	}
	return GVisor
}

func (g gvisor) Pipe(gso bool) (a, b Host, err error) {
	left, right := pipe.New("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", MTU)
	var la, lb stack.LinkEndpoint = left, right
	if gso {
		la, lb = gsoPipe{left}, gsoPipe{right}
	}
	if a, err = newGVisorHost(la, First); err != nil {
		return nil, nil, err
	}
	if b, err = newGVisorHost(lb, Second); err != nil {
		return nil, nil, err
	}
	return a, b, nil
}

func (g gvisor) Loop() (Host, error) {
	return newGVisorHost(loopback.New(), netip.MustParsePrefix("127.0.0.1/8"))
}

func (g gvisor) Tap(name string, addr netip.Prefix) (Host, error) {
	fd, err := OpenTap(name, g.vnet)
	if err != nil {
		return nil, err
	}
	if g.vnet {
		return newGVisorHost(newVnetLink(fd, tapMAC), addr)
	}
	link, err := fdbased.New(&fdbased.Options{
		FDs:            []int{fd},
		MTU:            MTU,
		EthernetHeader: true,
		Address:        tapMAC,
		// recvmmsg and packet rings need a socket. On a tap, fdbased always reads one packet per call,
		// whatever this setting.
		PacketDispatchMode: fdbased.RecvMMsg,
		// The kernel at the other end of the tap has verified or computed every checksum, so gVisor
		// does not need to.
		RXChecksumOffload: true,
	})
	if err != nil {
		return nil, err
	}
	return newGVisorHost(link, addr)
}

// tapMAC is the link-layer address of the stack's end of a tap.
const tapMAC = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x02")

const nicID = tcpip.NICID(1)

const (
	queuedPackets    = 1000
	maxReceiveBuffer = 8 << 20
	sendBuffer       = tcp.DefaultSendBufferSize
)

type gvisorHost struct {
	stack *stack.Stack
	addr  netip.Addr
}

func newGVisorHost(link stack.LinkEndpoint, addr netip.Prefix) (Host, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, icmp.NewProtocol4},
	})
	if err := tuneGVisor(s); err != nil {
		return nil, err
	}
	queue := fifo.New(link, 1, queuedPackets)
	if err := s.CreateNICWithOptions(nicID, link, stack.NICOptions{QDisc: queue}); err != nil {
		return nil, fmt.Errorf("gvisor: create NIC: %v", err)
	}
	local := tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{
			Address:   tcpip.AddrFrom4(addr.Addr().As4()),
			PrefixLen: addr.Bits(),
		},
	}
	if err := s.AddProtocolAddress(nicID, local, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("gvisor: add %v: %v", addr, err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nicID}})
	return &gvisorHost{s, addr.Addr()}, nil
}

func tuneGVisor(s *stack.Stack) error {
	sack := tcpip.TCPSACKEnabled(true)
	rx := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: tcp.DefaultReceiveBufferSize, Max: maxReceiveBuffer}
	tx := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: sendBuffer, Max: sendBuffer}
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &rx, &tx} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return fmt.Errorf("gvisor: set %T: %v", option, err)
		}
	}
	return nil
}

func (h *gvisorHost) Addr() netip.Addr { return h.addr }

func (h *gvisorHost) full(a netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFrom4(a.Addr().As4()), Port: a.Port()}
}

func (h *gvisorHost) Dial(to netip.AddrPort) (net.Conn, error) {
	return gonet.DialContextTCP(context.Background(), h.stack, h.full(to), ipv4.ProtocolNumber)
}

func (h *gvisorHost) Listen(port uint16) (net.Listener, error) {
	l, err := gonet.ListenTCP(h.stack, h.full(netip.AddrPortFrom(h.addr, port)), ipv4.ProtocolNumber)
	if err != nil {
		return nil, err
	}
	return gvisorListener{l}, nil
}

func (h *gvisorHost) Close() error {
	h.stack.Destroy()
	return nil
}

// gvisorListener is a listener whose Close wakes Accept. gonet does that only in Shutdown.
type gvisorListener struct{ *gonet.TCPListener }

func (l gvisorListener) Close() error {
	l.Shutdown()
	return l.TCPListener.Close()
}
