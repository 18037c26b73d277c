package unikernel

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"loam/link/tap"
	"loam/unikernel/guest"
)

// openTap opens the device and hands its queues to the guest: what passes it
// does not come through the loam command.
//
// A device that is not there is made, and vanishes with the guest. The host's
// side of it then gets the guest's gateway as its address, since otherwise
// nobody could answer there. A device that is there is left as it is.
func (n *network) openTap(o *Network) error {
	_, err := net.InterfaceByName(o.Tap)
	made := err != nil
	files, info, err := tap.OpenFiles(tap.Config{Name: o.Tap})
	if errors.Is(err, os.ErrPermission) {
		return errorf("run `sudo ip tuntap add dev "+o.Tap+" mode tap user $USER` once, or use --net user", "%s cannot be opened: %v", o.Tap, err)
	}
	if err != nil {
		return errorf("is another program using it?", "%s cannot be opened: %v", o.Tap, err)
	}
	l := guest.Link{
		Kind: guest.Tap, Name: guestLink, MTU: info.MTU, MAC: info.MAC, Offloads: info.Offloads,
		Address: o.Address, Gateway: o.Gateway,
	}
	for _, f := range files {
		l.FDs = append(l.FDs, n.give(f))
	}
	if made {
		if err := setUp(o.Tap, netip.PrefixFrom(o.Gateway, o.Address.Bits())); err != nil {
			return errorf("make it yourself and name it", "%s was made and cannot be set up: %v", o.Tap, err)
		}
	} else if ifc, err := net.InterfaceByName(o.Tap); err == nil && ifc.Flags&net.FlagUp == 0 {
		return errorf("run `sudo ip link set "+o.Tap+" up`", "%s is down", o.Tap)
	}
	if o.Trace != "" {
		f, err := os.Create(o.Trace)
		if err != nil {
			return errorf("name a file that can be written", "%v", err)
		}
		l.Trace = n.give(f)
	}
	n.config.Links = []guest.Link{l}
	return nil
}
