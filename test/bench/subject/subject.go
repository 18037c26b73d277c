// Package subject contains the TCP/IP stacks to measure, each behind the same small interface: Loam,
// gVisor's netstack, and Linux.
//
// Read this file first, then loam.go and linux.go. gvisor.go and gvisorlink.go document gVisor's
// settings and the reasons for them.
package subject

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Host is one end of a link: a stack with one IPv4 address.
type Host interface {
	Addr() netip.Addr
	// Dial opens a TCP connection. The returned connection also has a method CloseWrite.
	Dial(to netip.AddrPort) (net.Conn, error)
	// Listen listens for TCP connections at Addr.
	Listen(port uint16) (net.Listener, error)
	Close() error
}

// Subject creates hosts of one kind.
type Subject interface {
	// Name returns one of the names below.
	Name() string
	// Pipe returns two hosts connected inside the process, with MTU 1500. With gso, the link carries
	// frames of up to 64 kB and unfinished checksums, like a device with segmentation offload.
	Pipe(gso bool) (a, b Host, err error)
	// Loop returns one host that connects to itself.
	Loop() (Host, error)
	// Tap returns a host with address addr behind a tap device of the given name. It creates the device
	// in the network namespace of the calling thread.
	Tap(name string, addr netip.Prefix) (Host, error)
}

// OnInterface is a Subject that runs on an interface of Linux.
type OnInterface interface {
	// Interface returns a host with address addr on an interface in the network namespace of the
	// calling thread. The kernel must have no address on the interface.
	Interface(name string, addr netip.Prefix) (Host, error)
}

// Names of the subjects, in the order of the table's columns.
const (
	Loam       = "loam"
	LoamPacket = "loam-packet" // Loam on an interface, with packet sockets
	LoamRing   = "loam-ring"   // Loam on an interface, with packet sockets and receive rings
	LoamXDP    = "loam-xdp"    // Loam on an interface, with AF_XDP
	LoamRelay  = "loam-relay"  // a whole program on Loam; the gateway relays its connections
	LoamBound  = "loam-bound"  // Loam on a tap that drops floods at once: the bound of reading frame by frame
	LoamSieve  = "loam-sieve"  // Loam on a tap whose filter in the kernel drops floods: the bound of the kernel's path
	GVisor     = "gvisor"
	GVisorVnet = "gvisor-vnet" // gVisor on our tap link with segmentation offload
	Linux      = "linux"
	LinuxProxy = "linux-proxy" // a whole program on Linux, behind a simple proxy
)

// MTU is the MTU in bytes of every link except the loopbacks.
const MTU = 1500

// The addresses of the two hosts on a link.
var (
	First  = netip.MustParsePrefix("10.9.0.1/24")
	Second = netip.MustParsePrefix("10.9.0.2/24")
)

var subjects = []Subject{loam{}, loamPacket, loamRing, loamXDP, loamBound{}, loamSieve{}, gvisor{}, gvisor{vnet: true}, linux{}}

// ByName returns the subject with that name.
func ByName(name string) (Subject, error) {
	var names []string
	for _, s := range subjects {
		if s.Name() == name {
			return s, nil
		}
		names = append(names, s.Name())
	}
	return nil, fmt.Errorf("no subject %q; there are %s", name, strings.Join(names, ", "))
}
