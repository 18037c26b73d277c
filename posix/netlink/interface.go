package netlink

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/abi/linux"
	"loam/link"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
)

// Replies about the stack's interfaces, addresses and routes (NETLINK_ROUTE, rtnetlink(7)).

// describeLinks answers RTM_GETLINK with all interfaces, or with the one that the request names by
// index or name.
func describeLinks(net *stack.Stack, r *reply, request []byte, all bool) {
	index, name := 0, ""
	if !all && len(request) >= linux.SizeofIfInfomsg {
		index = int(binary.NativeEndian.Uint32(request[4:]))
		name = nameAttribute(request[linux.SizeofIfInfomsg:])
	}
	r.multi = all
	found := false
	for _, i := range netdevice.All(net) {
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
	name, _ := AttributeOf(b, linux.IFLA_IFNAME)
	for len(name) > 0 && name[len(name)-1] == 0 {
		name = name[:len(name)-1]
	}
	return string(name)
}

// AttributeOf returns the value of the first struct rtattr of a type.
func AttributeOf(b []byte, typ uint16) (value []byte, found bool) {
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

// describeLink appends an RTM_NEWLINK with the attributes of an interface.
func describeLink(r *reply, i *stack.Interface) {
	b, end := r.message(linux.RTM_NEWLINK)
	defer end()
	kind, flags := netdevice.Kind(i)
	mac := i.MAC()
	*b = append(*b, linux.AF_UNSPEC, 0)
	*b = binary.NativeEndian.AppendUint16(*b, kind)
	*b = binary.NativeEndian.AppendUint32(*b, uint32(i.Index()))
	*b = binary.NativeEndian.AppendUint32(*b, flags)
	*b = binary.NativeEndian.AppendUint32(*b, 0)
	Attribute(b, linux.IFLA_IFNAME, append([]byte(i.Name()), 0))
	Attribute(b, linux.IFLA_TXQLEN, socket.IntValue(netdevice.QueueLength))
	Attribute(b, linux.IFLA_OPERSTATE, []byte{operState(i)})
	Attribute(b, linux.IFLA_LINKMODE, []byte{0})
	Attribute(b, linux.IFLA_MTU, socket.IntValue(i.MTU()))
	Attribute(b, linux.IFLA_GROUP, socket.IntValue(0))
	Attribute(b, linux.IFLA_QDISC, []byte("noqueue\x00"))
	if kind != linux.ARPHRD_NONE {
		Attribute(b, linux.IFLA_ADDRESS, mac[:])
		broadcast := make([]byte, len(mac))
		if !i.IsLoopback() {
			for n := range broadcast {
				broadcast[n] = 0xff
			}
		}
		Attribute(b, linux.IFLA_BROADCAST, broadcast)
	}
	short, long := linkStats(i.Device().Stats())
	Attribute(b, linux.IFLA_STATS, short)
	Attribute(b, linux.IFLA_STATS64, long)
}

// operState returns the operational state of an interface (RFC 2863, 3.1.14, as numbered in linux/if.h). Linux reports none
// for the loopback interface.
func operState(i *stack.Interface) byte {
	const unknown, up = 0, 6
	if i.IsLoopback() {
		return unknown
	}
	return up
}

// linkStats returns an interface's counters as struct rtnl_link_stats, with 32-bit fields, and struct
// rtnl_link_stats64 (linux/if_link.h). Fields without a counter in Loam are 0.
func linkStats(s link.Stats) (short, long []byte) {
	fields := [25]uint64{s.RxFrames, s.TxFrames, s.RxBytes, s.TxBytes, s.RxErrors, s.TxErrors, s.RxDropped, s.TxDropped}
	const inShort = 24 // struct rtnl_link_stats has only the first 24 fields: it lacks rx_otherhost_dropped
	for i, n := range fields {
		if i < inShort {
			short = binary.NativeEndian.AppendUint32(short, uint32(n))
		}
		long = binary.NativeEndian.AppendUint64(long, n)
	}
	return short, long
}

// dumpFamily returns the address family that a dump request asks for; AF_UNSPEC: all. It is the first field of each kind of
// request. As on Linux, a family without entries of its own, such as 255, asks for all.
func dumpFamily(request []byte) byte {
	if len(request) > 0 && (request[0] == linux.AF_INET || request[0] == linux.AF_INET6) {
		return request[0]
	}
	return linux.AF_UNSPEC
}

// describeAddresses answers RTM_GETADDR. If strict is true, the request may ask for one interface.
func describeAddresses(net *stack.Stack, r *reply, request []byte, strict bool) {
	r.multi = true
	if net == nil {
		return
	}
	family, only := dumpFamily(request), 0
	if strict && len(request) >= linux.SizeofIfAddrmsg {
		only = int(binary.NativeEndian.Uint32(request[4:]))
	}
	for _, a := range net.Addresses() {
		index := netdevice.Index(net, a.Interface)
		if family != linux.AF_UNSPEC && family != Family(a.Prefix.Addr()) || only != 0 && only != index {
			continue
		}
		scope := byte(linux.RT_SCOPE_UNIVERSE)
		switch {
		case a.Prefix.Addr().IsLoopback():
			scope = linux.RT_SCOPE_HOST
		case a.Prefix.Addr().Is6() && a.Prefix.Addr().IsLinkLocalUnicast():
			scope = linux.RT_SCOPE_LINK
		}
		b, end := r.message(linux.RTM_NEWADDR)
		*b = append(*b, Family(a.Prefix.Addr()), byte(a.Prefix.Bits()), linux.IFA_F_PERMANENT, scope)
		*b = binary.NativeEndian.AppendUint32(*b, uint32(index))
		ip := a.Prefix.Addr().AsSlice()
		Attribute(b, linux.IFA_ADDRESS, ip)
		if a.Prefix.Addr().Is4() {
			Attribute(b, linux.IFA_LOCAL, ip)
			Attribute(b, linux.IFA_LABEL, append([]byte(a.Interface), 0))
		}
		end()
	}
}

// describeRoutes answers RTM_GETROUTE with NLM_F_DUMP. There are no multicast routes.
func describeRoutes(net *stack.Stack, r *reply, request []byte) {
	r.multi = true
	if net == nil || len(request) > 0 && (request[0] == linux.RTNL_FAMILY_IPMR || request[0] == linux.RTNL_FAMILY_IP6MR) {
		return
	}
	family := dumpFamily(request)
	for _, a := range net.Addresses() {
		other := family != linux.AF_UNSPEC && family != Family(a.Prefix.Addr())
		if other || a.Prefix.IsSingleIP() || a.Prefix.Addr().IsLoopback() {
			continue
		}
		describeRoute(r, netdevice.Index(net, a.Interface), stack.Route{Dst: a.Prefix.Masked(), Source: a.Prefix.Addr()})
	}
	for _, route := range net.Routes() {
		if family != linux.AF_UNSPEC && family != Family(route.Dst.Addr()) {
			continue
		}
		describeRoute(r, netdevice.Index(net, route.Interface), route)
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
	*b = append(*b, Family(route.Dst.Addr()), byte(route.Dst.Bits()), 0, 0,
		linux.RT_TABLE_MAIN, protocol, scope, linux.RTN_UNICAST, 0, 0, 0, 0)
	if route.Dst.Bits() > 0 {
		Attribute(b, linux.RTA_DST, route.Dst.Addr().AsSlice())
	}
	if route.Gateway.IsValid() {
		Attribute(b, linux.RTA_GATEWAY, route.Gateway.AsSlice())
	}
	if route.Source.IsValid() {
		Attribute(b, linux.RTA_PREFSRC, route.Source.AsSlice())
	}
	if route.Metric != 0 {
		Attribute(b, linux.RTA_PRIORITY, socket.IntValue(route.Metric))
	}
	Attribute(b, linux.RTA_OIF, socket.IntValue(index))
}

func Family(a netip.Addr) byte {
	if a.Is4() {
		return linux.AF_INET
	}
	return linux.AF_INET6
}
