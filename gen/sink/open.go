//go:build linux

package sink

import (
	"fmt"

	"loam/gen/method"
	"loam/link/afxdp"
	"loam/link/match"
	"loam/wire"
)

// Open returns receivers that together receive every frame arriving on an interface. An XDP socket is bound to a single
// queue, so for the method xdp there is one receiver per queue. For the other methods there is one receiver. On error,
// no receiver is left open.
func Open(m method.Method, c method.Config) (all []method.Receiver, err error) {
	if m.Listen == nil {
		return nil, fmt.Errorf("the method %s does not receive", m.Name)
	}
	if (m.Name == "xdp" || m.Name == "tc") && len(c.Match) == 0 {
		c.Match = carriers
	}
	queues := 1
	if m.Name == "xdp" {
		queues, _ = afxdp.Queues(c.Interface)
	}
	for c.Queue = range queues {
		r, err := m.Listen(c)
		if err != nil {
			Close(all)
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// carriers match the frames that may contain a tag. They are for receivers that take matching frames away from the
// kernel. ARP and ICMPv6 do not match, because the kernel needs them to find other hosts, and to be found.
var carriers = func() (rules []match.Rule) {
	for _, t := range []wire.EtherType{wire.TypeIPv4, wire.TypeVLAN, wire.TypeQinQ, wire.TypeMPLS} {
		rules = append(rules, match.Rule{EtherType: t})
	}
	const ipv4, ipv6 = 4, 41 // protocol numbers of IPv4 and IPv6 packets inside IPv6 packets (RFC 2473)
	for _, p := range []wire.Protocol{wire.ProtoUDP, wire.ProtoTCP, ipv4, ipv6, wire.ProtoGRE} {
		rules = append(rules, match.Rule{EtherType: wire.TypeIPv6, Protocol: p})
	}
	return rules
}()

// Close closes receivers that were not passed to Start.
func Close(all []method.Receiver) {
	for _, r := range all {
		r.Close()
	}
}
