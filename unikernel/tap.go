package unikernel

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"loam/link"
	"loam/link/tap"
	"loam/unikernel/guest"
)

// openTap opens the TAP device and gives its queues to the guest. Its packets do not pass through the loam
// command.
//
// A device that does not exist is created, and disappears with the guest. The host's side then gets the
// guest's gateways as its addresses, since otherwise the host could not answer. An existing device is left
// as it is.
func (n *network) openTap(o *Network, queues int) error {
	_, err := net.InterfaceByName(o.Tap)
	made := err != nil
	files, info, err := tap.OpenFiles(tap.Config{Name: o.Tap, Queues: queues})
	if err != nil && !made && queues > 1 { // the device may exist and have a single queue: try again with one queue
		files, info, err = tap.OpenFiles(tap.Config{Name: o.Tap})
	}
	if errors.Is(err, os.ErrPermission) {
		return errorf("run `sudo ip tuntap add dev "+o.Tap+" mode tap user $USER` once, or use --net user", "%s cannot be opened: %v", o.Tap, err)
	}
	if err != nil {
		return errorf("is another program using it?", "%s cannot be opened: %v", o.Tap, err)
	}
	l := guest.Link{
		Kind: guest.Tap, Name: guestLink, MTU: info.MTU, MAC: info.MAC, Offloads: info.Offloads,
		Address: o.Address, Gateway: o.Gateway, Address6: o.Address6, Gateway6: o.Gateway6,
	}
	for _, f := range files {
		l.FDs = append(l.FDs, n.give(f))
	}
	if made {
		err := setUp(o.Tap, netip.PrefixFrom(o.Gateway, o.Address.Bits()), netip.PrefixFrom(o.Gateway6, o.Address6.Bits()))
		if err != nil {
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

// giveTap connects the device to a virtual machine's network card. Tracing is not possible then: packets
// pass neither the guest's file nor the loam command.
func (n *network) giveTap(o *Network) error {
	if o.Trace != "" {
		return errorf("use tcpdump -i "+o.Tap+" -w "+o.Trace+", or --platform process", "a virtual machine on a tap device writes no packets down")
	}
	l := &n.config.Links[0]
	n.cable = cable{tap: true, queues: len(l.FDs), mtu: l.MTU, mac: l.MAC}
	l.Kind, l.FDs, l.Offloads = guest.Card, nil, link.OffloadTSO4|link.OffloadTSO6 // QEMU leaves the cutting of frames to the TAP device
	return nil
}
