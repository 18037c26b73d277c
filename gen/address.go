package gen

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"loam/gen/frame"
	"loam/gen/method"
	"loam/gen/nexthop"
	"loam/wire"
)

// A template may leave fields open. Before a template is compiled, the functions of this file fill in its Ethernet
// addresses and its source IP address. The addresses come from the interface and from the route to the first
// destination. The functions also set the source ports of the flows.

// firstPort is the source port of the first flow, unless the template gives one.
const firstPort = 1024

// endpoints holds the addresses for a method that does not write whole frames, and so needs them apart from the
// template.
type endpoints struct {
	source, destination netip.AddrPort
	sourceMAC, nextHop  wire.MAC
}

// complete returns a copy of the stream's template with all open fields filled in.
func (c *Config) complete(s *Stream, layer method.Layer) (*frame.Template, endpoints, error) {
	t := s.Template.Clone()
	var e endpoints
	if first := t.Layers; len(first) > 0 && first[0].Kind != "eth" && slices.Contains(frame.Kinds(), first[0].Kind) {
		return nil, e, bad("the template begins with %s, and frames begin with eth: \"eth; %s\"", first[0].Kind, t)
	}
	if err := setFlows(t, s.Flows); err != nil {
		return nil, e, err
	}
	ip := outerIP(t)
	var dst netip.Addr
	if ip != "" {
		if first, ok := firstOf(strings.TrimPrefix(t.Get(ip+".dst"), "random:")); ok {
			dst = first
		}
	}
	needsMAC := layer == method.Frame || c.Method == "loam"
	if err := c.fillIn(t, &e, ip, dst, needsMAC); err != nil {
		return nil, e, err
	}
	if layer != method.Frame {
		if err := c.kernelPath(t, &e, ip, layer); err != nil {
			return nil, e, err
		}
	}
	return t, e, nil
}

// setFlows makes the source port of the template cycle over flows values.
func setFlows(t *frame.Template, flows int) error {
	if flows <= 1 {
		return nil
	}
	for _, l := range []string{"udp", "tcp", "sctp"} {
		if t.Has(l) {
			first := uint64(firstPort)
			if given := t.Get(l + ".sport"); given != "" {
				n, err := strconv.ParseUint(given, 10, 16)
				if err != nil || int(n)+flows > 1<<16 {
					return bad("%d flows need so many source ports, and %s.sport is %s", flows, l, given)
				}
				first = n
			}
			return t.Set(l+".sport", fmt.Sprintf("%d-%d", first, int(first)+flows-1))
		}
	}
	return bad("flows differ by source port, and the template has none of udp, tcp and sctp")
}

// outerIP returns the kind of the first IP layer ("ip" or "ip6"), or "" if there is none.
func outerIP(t *frame.Template) string {
	for _, l := range t.Layers {
		if l.Kind == "ip" || l.Kind == "ip6" {
			return l.Kind
		}
	}
	return ""
}

// fillIn sets the address fields that the template leaves open. ip is the kind of the first IP layer, and dst the first
// destination.
func (c *Config) fillIn(t *frame.Template, e *endpoints, ip string, dst netip.Addr, needsMAC bool) error {
	set := func(field, value string) error {
		if t.Get(field) != "" {
			return nil
		}
		return t.Set(field, value)
	}
	var path nexthop.Path
	var err error
	wantsHop := needsMAC && t.Get("eth.dst") == "" && c.NextHop.IsZero() && dst.IsValid()
	source, _ := firstOf(t.Get(ip + ".src"))
	if wantsHop {
		path, err = nexthop.Find(c.Interface, dst, source)
	} else if path, err = nexthop.Route(c.Interface, dst); err != nil && c.Method == "tap" {
		return nil // the tap interface does not exist yet
	}
	if given := t.Get(ip + ".dst"); errors.Is(err, nexthop.ErrSilent) && path.Gateway == dst && given != dst.String() {
		return bad("%s are neighbours on %s, each with an Ethernet address of its own, and %s does not answer: give one for all of them with --dst-mac", given, c.Interface, dst)
	}
	if err != nil {
		return err
	}
	if !c.NextHop.IsZero() {
		path.NextHop = c.NextHop
	}
	e.sourceMAC, e.nextHop = path.SourceMAC, path.NextHop
	if !path.SourceMAC.IsZero() {
		if err := set("eth.src", path.SourceMAC.String()); err != nil {
			return err
		}
	}
	if wantsHop || !path.NextHop.IsZero() {
		if err := set("eth.dst", path.NextHop.String()); err != nil {
			return err
		}
	}
	if ip != "" && path.Source.IsValid() && path.Source.Is4() == (ip == "ip") {
		return set(ip+".src", path.Source.String())
	}
	return nil
}

// kernelPath extracts the connection's endpoints from a template. It is for methods with which the kernel or the stack
// writes the headers.
func (c *Config) kernelPath(t *frame.Template, e *endpoints, ip string, layer method.Layer) error {
	kinds := make([]string, 0, frame.MaxLayers)
	for _, l := range t.Layers {
		if l.Kind != "payload" {
			kinds = append(kinds, l.Kind)
		}
	}
	shape := strings.Join(kinds, " ")
	if layer == method.Payload && shape != "eth ip udp" && shape != "eth ip6 udp" {
		return bad("the method %s sends UDP only, as in \"eth; ip; udp\", and the template is %q; the methods ring, packet, xdp and tc send anything", c.Method, shape)
	}
	if layer == method.Packet && (len(kinds) < 2 || kinds[1] != ip || ip == "") {
		return bad("the method %s sends IP packets, as in \"eth; ip; ...\", and the template is %q; the methods ring, packet, xdp and tc send anything", c.Method, shape)
	}
	dst, ok := firstOf(t.Get(ip + ".dst"))
	if !ok {
		return bad("the method %s needs the destination, and %s.dst is %q", c.Method, ip, t.Get(ip+".dst"))
	}
	src, _ := firstOf(t.Get(ip + ".src"))
	e.destination = netip.AddrPortFrom(dst, port(t.Get("udp.dport"), frame.DiscardPort))
	if src.IsValid() {
		e.source = netip.AddrPortFrom(src, port(t.Get("udp.sport"), 0)) // a source port of 0 lets the kernel choose one
	}
	if layer == method.Packet {
		return nil
	}
	for _, field := range []string{ip + ".src", ip + ".dst", "udp.sport", "udp.dport"} {
		if given := t.Get(field); strings.ContainsAny(given, ",-/+") || strings.HasPrefix(given, "random") {
			return bad("%s is %q, and the method %s has one source and one destination; the methods ring, packet, xdp and tc have any number", field, given, c.Method)
		}
	}
	return nil
}

// port parses s as a port number. If s is not a plain number, it returns a default, the
// parameter otherwise.
func port(s string, otherwise uint16) uint16 {
	if n, err := strconv.ParseUint(s, 0, 16); err == nil {
		return uint16(n)
	}
	return otherwise
}

// portPlus returns a with n added to its port. A zero port stays zero.
func portPlus(a netip.AddrPort, n int) netip.AddrPort {
	if a.Port() == 0 {
		return a
	}
	return netip.AddrPortFrom(a.Addr(), a.Port()+uint16(n))
}
