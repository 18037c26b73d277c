//go:build linux

package session

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"loam/gen/nexthop"
	"loam/gen/probe"
	"loam/gen/probe/target"
)

// addresses returns the set of targets. It omits excluded addresses, and addresses reserved by IANA unless they are
// allowed.
func (o *Options) addresses() (*target.Set, error) {
	all, err := target.NewSet(o.Targets, o.Exclude)
	if err != nil {
		return nil, &Refusal{err.Error(), "ask for one family at a time, and for fewer addresses"}
	}
	if o.AllowReserved {
		return all, nil
	}
	s, err := target.NewSet(all.Ranges(), target.Reserved(!o.AllowPrivate))
	if err != nil {
		return nil, err
	}
	left := all.Len() - s.Len()
	switch {
	case all.Len() == 0:
		return nil, &Refusal{"there is nobody to ask", "name addresses or prefixes that are not all excluded"}
	case s.Len() == 0:
		first := all.At(0)
		b, _ := target.BlockOf(first)
		allow := "--allow-reserved"
		if b.Private {
			allow = "--allow-private"
		}
		return nil, &Refusal{fmt.Sprintf("%v is in %v, %s, and so are all the others or their like", first, b.Prefix, b.Why), "say " + allow + " if they are yours to ask"}
	case left > 0:
		o.note(fmt.Sprintf("%d addresses are private or reserved and are left out: --allow-private, --allow-reserved", left))
	}
	return s, nil
}

// MaxSources is the maximum number of source addresses. It is limited because each address adds rules to the receiving
// eBPF program.
const MaxSources = 16

// mostNeighbours is the maximum number of targets on one link. It is limited because their Ethernet addresses are kept
// in memory.
const mostNeighbours = 1 << 20

// routesLooked is the maximum number of target ranges whose routes are compared.
const routesLooked = 64

// route determines the interface and the router for the targets, and the source address.
func (o *Options) route(c *probe.Config) error {
	first := c.Addresses.At(0)
	if o.Interface == "" {
		name, err := nexthop.Interface(first)
		if err != nil {
			return &Refusal{err.Error(), "say by which interface: --dev IF"}
		}
		o.Interface = name
	}
	p, err := nexthop.Route(o.Interface, first)
	if err != nil {
		return &Refusal{err.Error(), "ip link and ip address show what there is"}
	}
	c.SourceMAC = p.SourceMAC
	if !c.Source.IsValid() {
		c.Source = p.Source
	}
	if !c.Source.IsValid() {
		return &Refusal{fmt.Sprintf("%s has no address of the family of the targets", o.Interface), "give it one, or say --src ADDRESS"}
	}
	if len(c.Sources()) > MaxSources {
		return &Refusal{fmt.Sprintf("%d source addresses are more than %d", len(c.Sources()), MaxSources), "give fewer with --src"}
	}
	if slices.ContainsFunc(c.Sources(), func(a netip.Addr) bool { return a.Is4() != first.Is4() }) {
		return &Refusal{fmt.Sprintf("the source %v is not of the family of the targets", c.Source), "say --src with an address as theirs are, or leave it out"}
	}
	if !c.NextHopMAC.IsZero() {
		return nil
	}
	if p.Loopback {
		return &Refusal{fmt.Sprintf("%v is an address of this host", first), "ask others: what is sent to it does not leave by an interface"}
	}
	if o.local = c.Kind == probe.Neighbour || p.Gateway == first && c.Addresses.Len() > 1; o.local {
		return o.sameLink(c)
	}
	if err := o.sameRouter(c, p); err != nil {
		return err
	}
	if p, err = nexthop.Find(o.Interface, first, c.Source); err != nil {
		return &Refusal{err.Error(), "say the router's Ethernet address: --dst-mac MAC"}
	}
	c.NextHopMAC = p.NextHop
	return nil
}

// sameRouter returns an error unless all targets are reached through the router of p. This is necessary because all
// probes have the same destination Ethernet address.
func (o *Options) sameRouter(c *probe.Config, p nexthop.Path) error {
	for _, r := range c.Addresses.Ranges()[1:min(len(c.Addresses.Ranges()), routesLooked)] {
		other, err := nexthop.Route(o.Interface, r.First)
		if err == nil && other.Gateway != p.Gateway {
			return &Refusal{
				fmt.Sprintf("%v lies behind %v, and %v behind %v", c.Addresses.At(0), p.Gateway, r.First, other.Gateway),
				"ask them in two runs, or say --dst-mac MAC for all",
			}
		}
	}
	return nil
}

// sameLink returns an error unless all targets are on the link of the interface.
func (o *Options) sameLink(c *probe.Config) error {
	if c.Addresses.Len() > mostNeighbours {
		return &Refusal{fmt.Sprintf("%d addresses on %s are more than %d", c.Addresses.Len(), o.Interface, uint64(mostNeighbours)), "ask for a part of the link at a time"}
	}
	for _, r := range c.Addresses.Ranges()[:min(len(c.Addresses.Ranges()), routesLooked)] {
		for _, a := range []netip.Addr{r.First, r.Last} {
			if p, err := nexthop.Route(o.Interface, a); err == nil && p.Gateway != a {
				return &Refusal{fmt.Sprintf("%v is a neighbour on %s, and %v lies behind %v", c.Addresses.At(0), o.Interface, a, p.Gateway), "ask them in two runs"}
			}
		}
	}
	return nil
}

// isKernels reports whether an address is assigned to an interface of this machine.
func isKernels(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, one := range list {
		if p, err := netip.ParsePrefix(one.String()); err == nil && p.Addr().Unmap() == a {
			return true
		}
	}
	return false
}
