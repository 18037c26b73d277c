package rt

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"loam/link"
	"loam/link/tap"
	"loam/link/trace"
	"loam/link/unixsock"
	"loam/stack"
	"loam/unikernel/guest"
)

// newNetwork makes the stack that the program's sockets use, from the
// descriptors that the program inherited.
func newNetwork(c guest.Config) (*stack.Stack, error) {
	s := stack.New(stack.Config{})
	if len(c.DNS) > 0 {
		s.SetDNS(c.DNS)
	}
	for _, l := range c.Links {
		if err := attach(s, c, l); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return s, nil
}

var defaultRoute = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// leaseTime is how long a guest that asks for an address by DHCP waits for it.
const leaseTime = 15 * time.Second

// attach connects the stack to a link and configures it.
func attach(s *stack.Stack, c guest.Config, l guest.Link) error {
	dev, err := open(l)
	if err != nil {
		return err
	}
	if l.Trace != 0 {
		dev = trace.New(dev, os.NewFile(uintptr(l.Trace), "trace"), traceFailed)
	}
	ifc, err := s.Attach(dev, stack.InterfaceConfig{Name: l.Name})
	if err != nil {
		return err
	}
	if !l.Address.IsValid() {
		return lease(ifc, c.Hostname)
	}
	if err := s.AddAddress(l.Name, l.Address); err != nil {
		return fmt.Errorf("address %v: %w", l.Address, err)
	}
	if !l.Gateway.IsValid() {
		return nil
	}
	if err := s.AddRoute(stack.Route{Dst: defaultRoute, Gateway: l.Gateway, Interface: l.Name}); err != nil {
		return fmt.Errorf("gateway %v: %w", l.Gateway, err)
	}
	return nil
}

// open makes a device of the descriptors of a link.
func open(l guest.Link) (link.Device, error) {
	var files []*os.File
	for _, fd := range l.FDs {
		files = append(files, os.NewFile(uintptr(fd), l.Name))
	}
	switch l.Kind {
	case guest.Socket:
		return unixsock.FromFiles(unixsock.Config{Name: l.Name, MTU: l.MTU, MAC: l.MAC, Header: true}, files...)
	case guest.Tap:
		const offloads = link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6 // that every kernel takes
		return tap.FromFiles(files, link.Info{Name: l.Name, MTU: l.MTU, MAC: l.MAC, Offloads: offloads})
	}
	return nil, fmt.Errorf("a link of the unknown kind %q", l.Kind)
}

// lease asks for an address by DHCP.
func lease(ifc *stack.Interface, hostname string) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	if _, err := ifc.DHCP(ctx, hostname); err != nil {
		return fmt.Errorf("no DHCP server has answered in %v: give an address with --ip", leaseTime)
	}
	return nil
}

func traceFailed(err error) {
	os.Stderr.WriteString("loam: --pcap: " + err.Error() + "; nothing more is written\n")
}
