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

// newNetwork makes the stack that the program's sockets use.
func newNetwork(c guest.Config) (*stack.Stack, error) {
	s := stack.New(stack.Config{})
	if len(c.DNS) > 0 {
		s.SetDNS(c.DNS)
	}
	for _, l := range c.Links {
		if err := attach(s, l, c.Hostname); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return s, nil
}

var defaultRoute = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// attach brings one link into the stack and configures it.
func attach(s *stack.Stack, l guest.Link, hostname string) error {
	dev, err := device(l)
	if err != nil {
		return err
	}
	if dev == nil {
		fmt.Fprintf(os.Stderr, "loam: %s: the machine has no virtio network card; the program has its loopback\n", l.Name)
		return nil
	}
	if l.Trace != 0 {
		traced := trace.New(dev, os.NewFile(uintptr(l.Trace), "trace"), nil)
		atExit(func() { traced.Close() })
		dev = traced
	}
	ifc, err := s.Attach(dev, stack.InterfaceConfig{Name: l.Name})
	if err != nil {
		return err
	}
	if !l.Address.IsValid() {
		return lease(ifc, hostname)
	}
	if err := s.AddAddress(l.Name, l.Address); err != nil {
		return err
	}
	if !l.Gateway.IsValid() {
		return nil
	}
	return s.AddRoute(stack.Route{Dst: defaultRoute, Gateway: l.Gateway, Interface: l.Name})
}

// device makes the device of a link from the descriptors that were inherited.
func device(l guest.Link) (link.Device, error) {
	var files []*os.File
	for _, fd := range l.FDs {
		files = append(files, os.NewFile(uintptr(fd), l.Name))
	}
	switch l.Kind {
	case guest.Socket:
		return unixsock.FromFiles(unixsock.Config{Name: l.Name, MTU: l.MTU, MAC: l.MAC, Header: true}, files...)
	case guest.Tap:
		return tap.FromFiles(files, link.Info{Name: l.Name, MTU: l.MTU, MAC: l.MAC, Offloads: l.Offloads})
	}
	if l.Kind == guest.Card && openCard != nil {
		return openCard(l)
	}
	return nil, fmt.Errorf("a link of kind %q is unknown", l.Kind)
}

// leaseTime is how long the program waits for an address before it begins.
const leaseTime = 10 * time.Second

// openCard opens the network card of a machine, and returns nil if it has none; it is
// nil in a process.
var openCard func(guest.Link) (link.Device, error)

// lease asks DHCP. A program that gets no answer begins all the same, as a host
// does: the client goes on asking.
func lease(ifc *stack.Interface, hostname string) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	if _, err := ifc.DHCP(ctx, hostname); err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		fmt.Fprintf(os.Stderr, "loam: %s: no DHCP server has answered for %v; --ip gives an address\n", ifc.Name(), leaseTime)
	}
	return nil
}
