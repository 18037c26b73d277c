package unikernel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"loam/link"
	"loam/link/tap"
	"loam/link/unixsock"
	"loam/unikernel/guest"
	"loam/usernet"
	"loam/wire"
)

// The outside of a guest's network is held by the loam command: what needs a
// privilege, or has to outlive nothing, stays on this side, and the guest
// inherits descriptors.

// NetworkKind is what a guest is connected to.
type NetworkKind int

// Kinds of networks.
const (
	UserNetwork NetworkKind = iota // a gateway in the loam command, which needs no privilege
	TapNetwork                     // a TAP device of the host
	NoNetwork                      // only the guest's own loopback
)

// Network says what a guest is connected to.
type Network struct {
	Kind     NetworkKind
	Forwards []usernet.Forward // of UserNetwork: ports of the host that lead to the guest
	Tap      string            // of TapNetwork: the name of the device
	Address  netip.Prefix      // of the guest on it; not valid: by DHCP
	Gateway  netip.Addr        // of the guest; not valid: none
	Trace    string            // a file for what passes, in pcapng; empty: none
}

// network is what the loam command holds while the guest runs.
type network struct {
	config guest.Config
	files  []*os.File // for the guest, descriptors 3 and up
	close  []func()
}

// firstGuestFD is the number in the guest of the first of network.files.
const firstGuestFD = 3

// The user network, as QEMU has it.
var (
	userPrefix  = netip.MustParsePrefix("10.0.2.15/24")
	userGateway = netip.MustParseAddr("10.0.2.2")
	userDNS     = netip.MustParseAddr("10.0.2.3")
	userMACs    = [2]wire.MAC{{0x52, 0x54, 0, 0x12, 0x34, 0x56}, {0x52, 0x55, 0x0a, 0, 2, 2}} // guest, gateway
)

const (
	userMTU   = 1500
	guestLink = "eth0"
	guestName = "loam"
)

// openNetwork makes the outside of the network, and what the guest is told of it.
func openNetwork(o Network) (n *network, err error) {
	n = &network{config: guest.Config{Hostname: guestName}}
	defer func() {
		if err != nil {
			n.end()
		}
	}()
	switch o.Kind {
	case UserNetwork:
		err = n.openUser(o)
	case TapNetwork:
		err = n.openTap(o)
	}
	if err == nil && o.Trace != "" && len(n.config.Links) > 0 {
		err = n.openTrace(o.Trace)
	}
	return n, err
}

// give has the guest inherit f and returns the number that it will have there.
func (n *network) give(f *os.File) int {
	n.files = append(n.files, f)
	return firstGuestFD + len(n.files) - 1
}

// openUser connects the guest to a gateway over a pair of sockets.
func (n *network) openUser(o Network) error {
	inside, outside, err := unixsock.SocketPair(unixsock.Stream)
	if err != nil {
		return fmt.Errorf("a pair of sockets for the guest's link: %w", err)
	}
	l := guest.Link{Kind: guest.Socket, Name: guestLink, FDs: []int{n.give(inside)}, MTU: userMTU, MAC: userMACs[0], Address: userPrefix, Gateway: userGateway}
	dev, err := unixsock.FromFiles(unixsock.Config{Name: "gateway", MTU: userMTU, MAC: userMACs[1], Header: true}, outside)
	if err != nil {
		return fmt.Errorf("the gateway's end of the guest's link: %w", err)
	}
	g, err := usernet.New(usernet.Config{Device: dev, Hostname: guestName, Forwards: o.Forwards})
	if err != nil {
		return gatewayError(err)
	}
	n.close = append(n.close, func() { g.Close() })
	n.config.DNS = []netip.Addr{userDNS}
	n.config.Links = append(n.config.Links, l)
	return nil
}

// gatewayError tells a port that cannot be had from what is wrong with us.
func gatewayError(err error) error {
	var forward *usernet.ForwardError
	if errors.As(err, &forward) {
		return &Error{What: strings.TrimPrefix(forward.Error(), "usernet: ")} // says what to do, too
	}
	return err
}

// openTap opens a device of the host, or makes one, which then goes away with the
// guest.
func (n *network) openTap(o Network) error {
	_, missing := net.InterfaceByName(o.Tap)
	files, info, err := tap.Files(tap.Config{Name: o.Tap})
	if err != nil {
		return errorf("see loam doctor", "%v", err)
	}
	l := guest.Link{Kind: guest.Tap, Name: guestLink, MTU: info.MTU, MAC: info.MAC, Address: o.Address, Gateway: o.Gateway}
	for _, f := range files {
		l.FDs = append(l.FDs, n.give(f))
	}
	n.config.Links = append(n.config.Links, l)
	if missing == nil {
		return nil
	}
	return setUpTap(info, o)
}

// setUpTap brings up a device that was made for the guest. If the guest's gateway
// is on the guest's subnet, it can only be this host: the device gets its
// address.
func setUpTap(info link.Info, o Network) error {
	host := netip.Prefix{}
	if o.Gateway.IsValid() && o.Address.Contains(o.Gateway) {
		host = netip.PrefixFrom(o.Gateway, o.Address.Bits())
	}
	if err := tap.SetUp(info.Name, host); err != nil {
		return errorf("set it up by hand: ip link set "+info.Name+" up", "%s was made and cannot be brought up: %v", info.Name, err)
	}
	return nil
}

// openTrace has the guest write what passes its link to a file.
func (n *network) openTrace(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return errorf("name a file that can be written", "--pcap: %v", err)
	}
	n.config.Links[0].Trace = n.give(f)
	return nil
}

// closeFiles closes the command's copies of what the guest has inherited.
func (n *network) closeFiles() {
	for _, f := range n.files {
		f.Close()
	}
	n.files = nil
}

// end takes the network down.
func (n *network) end() {
	n.closeFiles()
	for _, f := range n.close {
		f()
	}
}
