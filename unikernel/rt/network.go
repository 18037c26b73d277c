package rt

import (
	"fmt"
	"net/netip"

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
		if err := attach(s, c, l); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return s, nil
}

var defaultRoute = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

func attach(s *stack.Stack, c guest.Config, l guest.Link) error {
	return fmt.Errorf("no")
}
