package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/abi/linux"
	"loam/link"
	"loam/posix/socket"
	"loam/stack"
)

// NETLINK_ROUTE: the stack's interfaces, addresses and routes (rtnetlink(7)).

func (p *Process) interfaces() []*stack.Interface {
	if p.net == nil {
		return nil
	}
	return p.net.Interfaces()
}

// describeLinks answers RTM_GETLINK with all interfaces, or with the one that the request names by
// index or name.
func (p *Process) describeLinks(r *reply, request []byte, all bool) {
	index, name := 0, ""
	if !all && len(request) >= linux.SizeofIfInfomsg {
		index = int(binary.NativeEndian.Uint32(request[4:]))
		name = nameAttribute(request[linux.SizeofIfInfomsg:])
	}
	r.multi = all
	found := false
	for _, i := range p.interfaces() {
		if all || i.Index() == index || index == 0 && i.Name() == name {
			found = true
			describeLink(r, i)
		}
	}
	if !found && !all {
		r.fail(linux.ENODEV, syscall.NlMsghdr{Seq: r.seq, Type: linux.RTM_GETLINK})
	}
}

// nameAttribute returns the value of IFLA_IFNAME, or an empty string.
func nameAttribute(b []byte) string {
	name, _ := attributeOf(b, linux.IFLA_IFNAME)
	for len(name) > 0 && name[len(name)-1] == 0 {
		name = name[:len(name)-1]
	}
	return string(name)
}

// attributeOf returns the value of the first struct rtattr of a type.
func attributeOf(b []byte, typ uint16) (value []byte, found bool) {
	for len(b) >= linux.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < linux.SizeofRtAttr || n > len(b) {
			break
		}
		if binary.NativeEndian.Uint16(b[2:]) == typ {
			return b[linux.SizeofRtAttr:n], true
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil, false
}

// kindOf returns the hardware type ARPHRD_* and the flags IFF_* of an interface.
func kindOf(i *stack.Interface) (kind uint16, flags uint32) {
	const up = linux.IFF_UP | linux.IFF_RUNNING | linux.IFF_LOWER_UP
	switch {
	case i.IsLoopback():
		return linux.ARPHRD_LOOPBACK, up | linux.IFF_LOOPBACK
	case i.Device().Info().Medium == link.IP:
		return linux.ARPHRD_NONE, up | linux.IFF_POINTOPOINT | linux.IFF_MULTICAST
	}
	return linux.ARPHRD_ETHER, up | linux.IFF_BROADCAST | linux.IFF_MULTICAST
}

// describeLink appends an RTM_NEWLINK with the attributes of an interface.
func describeLink(r *reply, i *stack.Interface) {
	b, end := r.message(linux.RTM_NEWLINK)
	defer end()
	kind, flags := kindOf(i)
	mac := i.MAC()
	*b = append(*b, linux.AF_UNSPEC, 0)
	*b = binary.NativeEndian.AppendUint16(*b, kind)
	*b = binary.NativeEndian.AppendUint32(*b, uint32(i.Index()))
	*b = binary.NativeEndian.AppendUint32(*b, flags)
	*b = binary.NativeEndian.AppendUint32(*b, 0)
	attribute(b, linux.IFLA_IFNAME, append([]byte(i.Name()), 0))
	attribute(b, linux.IFLA_MTU, socket.IntValue(i.MTU()))
	if kind != linux.ARPHRD_NONE {
		attribute(b, linux.IFLA_ADDRESS, mac[:])
	}
	short, long := linkStats(i.Device().Stats())
	attribute(b, linux.IFLA_STATS, short)
	attribute(b, linux.IFLA_STATS64, long)
}

// linkStats returns an interface's counters as struct rtnl_link_stats, with 32-bit fields, and struct
// rtnl_link_stats64 (linux/if_link.h). Fields without a counter in Loam are 0.
func linkStats(s link.Stats) (short, long []byte) {
	fields := [25]uint64{s.RxFrames, s.TxFrames, s.RxBytes, s.TxBytes, s.RxErrors, s.TxErrors, s.RxDropped, s.TxDropped}
	const inShort = 24 // without rx_otherhost_dropped
	for i, n := range fields {
		if i < inShort {
			short = binary.NativeEndian.AppendUint32(short, uint32(n))
		}
		long = binary.NativeEndian.AppendUint64(long, n)
	}
	return short, long
}

// describeAddresses answers RTM_GETADDR.
func (p *Process) describeAddresses(r *reply) {
	r.multi = true
	if p.net == nil {
		return
	}
	for _, a := range p.net.Addresses() {
		index := p.indexOf(a.Interface)
		scope := byte(linux.RT_SCOPE_UNIVERSE)
		switch {
		case a.Prefix.Addr().IsLoopback():
			scope = linux.RT_SCOPE_HOST
		case a.Prefix.Addr().Is6() && a.Prefix.Addr().IsLinkLocalUnicast():
			scope = linux.RT_SCOPE_LINK
		}
		b, end := r.message(linux.RTM_NEWADDR)
		*b = append(*b, family(a.Prefix.Addr()), byte(a.Prefix.Bits()), linux.IFA_F_PERMANENT, scope)
		*b = binary.NativeEndian.AppendUint32(*b, uint32(index))
		ip := a.Prefix.Addr().AsSlice()
		attribute(b, linux.IFA_ADDRESS, ip)
		if a.Prefix.Addr().Is4() {
			attribute(b, linux.IFA_LOCAL, ip)
			attribute(b, linux.IFA_LABEL, append([]byte(a.Interface), 0))
		}
		end()
	}
}

// describeRoutes answers RTM_GETROUTE with NLM_F_DUMP.
func (p *Process) describeRoutes(r *reply) {
	r.multi = true
	if p.net == nil {
		return
	}
	for _, a := range p.net.Addresses() {
		if a.Prefix.IsSingleIP() || a.Prefix.Addr().IsLoopback() {
			continue
		}
		describeRoute(r, p.indexOf(a.Interface), stack.Route{Dst: a.Prefix.Masked(), Source: a.Prefix.Addr()})
	}
	for _, route := range p.net.Routes() {
		describeRoute(r, p.indexOf(route.Interface), route)
	}
}

// describeRoute appends an RTM_NEWROUTE for an entry of the routing table.
func describeRoute(r *reply, index int, route stack.Route) {
	b, end := r.message(linux.RTM_NEWROUTE)
	defer end()
	scope, protocol := byte(linux.RT_SCOPE_UNIVERSE), byte(linux.RTPROT_STATIC)
	if !route.Gateway.IsValid() {
		scope, protocol = linux.RT_SCOPE_LINK, linux.RTPROT_KERNEL
	}
	*b = append(*b, family(route.Dst.Addr()), byte(route.Dst.Bits()), 0, 0,
		linux.RT_TABLE_MAIN, protocol, scope, linux.RTN_UNICAST, 0, 0, 0, 0)
	if route.Dst.Bits() > 0 {
		attribute(b, linux.RTA_DST, route.Dst.Addr().AsSlice())
	}
	if route.Gateway.IsValid() {
		attribute(b, linux.RTA_GATEWAY, route.Gateway.AsSlice())
	}
	if route.Source.IsValid() {
		attribute(b, linux.RTA_PREFSRC, route.Source.AsSlice())
	}
	if route.Metric != 0 {
		attribute(b, linux.RTA_PRIORITY, socket.IntValue(route.Metric))
	}
	attribute(b, linux.RTA_OIF, socket.IntValue(index))
}

// interfaceNamed returns the interface with a name, or nil. net may be nil.
func interfaceNamed(net *stack.Stack, name string) *stack.Interface {
	if net == nil {
		return nil
	}
	for _, i := range net.Interfaces() {
		if i.Name() == name {
			return i
		}
	}
	return nil
}

// interfaceByIndex returns the interface with an index, or nil. net must not be nil.
func interfaceByIndex(net *stack.Stack, index int) *stack.Interface {
	for _, i := range net.Interfaces() {
		if i.Index() == index {
			return i
		}
	}
	return nil
}

func (p *Process) indexOf(name string) int {
	if i := interfaceNamed(p.net, name); i != nil {
		return i.Index()
	}
	return 0
}

func family(a netip.Addr) byte {
	if a.Is4() {
		return linux.AF_INET
	}
	return linux.AF_INET6
}
