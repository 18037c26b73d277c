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

// attachLinks attaches the configured links to the stack.
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

// Destinations of the default routes.
var (
	everywhere  = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	everywhere6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
)

// attach opens one link, attaches it to the stack and configures its addresses.
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
	ifc, err := s.Attach(dev, stack.InterfaceConfig{Name: l.Name, NoDetection: l.Alone})
	if err != nil {
		return err
	}
	if !l.Address.IsValid() && !l.Address6.IsValid() {
		return configure(ifc, hostname)
	}
	if err := addAddress(s, l.Name, l.Address, l.Gateway, everywhere); err != nil {
		return err
	}
	return addAddress(s, l.Name, l.Address6, l.Gateway6, everywhere6)
}

// addAddress assigns a link its address of one IP version, and adds the default route
// (the parameter all) through the gateway if there is one.
func addAddress(s *stack.Stack, link string, address netip.Prefix, gateway netip.Addr, all netip.Prefix) error {
	if !address.IsValid() {
		return nil
	}
	if err := s.AddAddress(link, address); err != nil || !gateway.IsValid() {
		return err
	}
	return s.AddRoute(stack.Route{Dst: all, Gateway: gateway, Interface: link})
}

// leaseTime is how long the program's start waits for an address. laterTime is how much longer it waits for
// IPv4 once it has an IPv6 address.
const (
	leaseTime = 10 * time.Second
	laterTime = time.Second
)

// configure runs DHCP and IPv6 autoconfiguration. If neither is answered within leaseTime, the program
// starts without an address, as a host does, and both continue in the background.
func configure(ifc *stack.Interface, hostname string) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	go waitLess(ctx, cancel, ifc)
	if _, err := ifc.DHCP(ctx, hostname); err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() == context.DeadlineExceeded {
		fmt.Fprintf(os.Stderr, "loam: %s: no DHCP server and no router of IPv6 has answered for %v; --ip gives an address\n", ifc.Name(), leaseTime)
	}
	return nil
}

// waitLess cancels ctx laterTime after routers have given the interface an address.
func waitLess(ctx context.Context, cancel context.CancelFunc, ifc *stack.Interface) {
	if _, err := ifc.Autoconfigure(ctx); err != nil { // no IPv6 address was assigned in time, or the link has no IPv6
		return
	}
	select {
	case <-time.After(laterTime):
		cancel()
	case <-ctx.Done():
	}
}
