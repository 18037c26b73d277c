package rt

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"loam/link/trace"
	"loam/stack"
	"loam/unikernel/guest"
)

// attachLinks brings the links into the stack, which the program's sockets use.
func attachLinks(s *stack.Stack, p Platform, c guest.Config) error {
	if len(c.DNS) > 0 {
		s.SetDNS(c.DNS)
	}
	for _, l := range c.Links {
		if err := attach(s, p, l, c.Hostname); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return nil
}

var defaultRoute = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// attach brings one link into the stack and configures it.
func attach(s *stack.Stack, p Platform, l guest.Link, hostname string) error {
	dev, err := p.Open(l)
	if err != nil {
		return err
	}
	if dev == nil {
		fmt.Fprintf(os.Stderr, "loam: %s: the machine has no virtio network card; the program has its loopback\n", l.Name)
		return nil
	}
	if l.Trace != 0 {
		traced := trace.New(dev, hostFile(l.Trace, "trace"), nil)
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

// leaseTime is how long the program waits for an address before it begins.
const leaseTime = 10 * time.Second

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
