// Package subject holds the TCP/IP stacks that are measured, each behind the
// same small interface: Loam, gVisor's netstack, and Linux itself.
//
// Read this file first, then loam.go and linux.go; gvisor.go and gvisorlink.go
// say with what settings the peer runs, and why.
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
	// Dial opens a TCP connection. What it returns also has CloseWrite.
	Dial(to netip.AddrPort) (net.Conn, error)
	// Listen listens for TCP connections at Addr.
	Listen(port uint16) (net.Listener, error)
	Close() error
}

// Subject makes hosts of one kind.
type Subject interface {
	// Name is one of Names.
	Name() string
	// Pipe makes two hosts joined inside the process, at MTU 1500. With gso
	// the link carries frames of up to 64 kB and unfinished checksums, as a
	// device with segmentation offload does.
	Pipe(gso bool) (a, b Host, err error)
	// Loop makes one host that talks to itself.
	Loop() (Host, error)
	// Tap makes a host with address addr behind a tap device of the given name,
	// which it creates in the network namespace of the calling thread.
	Tap(name string, addr netip.Prefix) (Host, error)
}

// OnInterface is a Subject that stands on an interface of Linux.
type OnInterface interface {
	// Interface makes a host with address addr on an interface of the network
	// namespace of the calling thread, which has no address of the kernel's.
	Interface(name string, addr netip.Prefix) (Host, error)
}

// Names of the subjects, in the order of the table's columns.
const (
	Loam       = "loam"
	LoamPacket = "loam-packet" // Loam on an interface, through packet sockets
	LoamRing   = "loam-ring"   // the same with rings
	LoamXDP    = "loam-xdp"    // Loam on an interface, through AF_XDP
	LoamRelay  = "loam-relay"  // a whole program on Loam, its connections relayed by the gateway
	GVisor     = "gvisor"
	GVisorVnet = "gvisor-vnet" // gVisor on our tap link with segmentation offload
	Linux      = "linux"
	LinuxProxy = "linux-proxy" // a whole program on Linux, with a bare proxy in front of it
)

// MTU of every link but the loopbacks.
const MTU = 1500

// The addresses of two hosts on a link: the first and the second.
var (
	First  = netip.MustParsePrefix("10.9.0.1/24")
	Second = netip.MustParsePrefix("10.9.0.2/24")
)

var subjects = []Subject{loam{}, loamPacket, loamRing, loamXDP, gvisor{}, gvisor{vnet: true}, linux{}}

// ByName finds a subject.
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
