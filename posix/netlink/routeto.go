package netlink

import (
	"encoding/binary"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
)

// RTM_GETROUTE without NLM_F_DUMP returns the route to one address, as used by `ip route get`.

// Flags of IPv4 routes (RTM_F_CLONED of linux/rtnetlink.h, RTCF_* of linux/in_route.h).
const (
	routeCloned    = 0x200
	routeMulticast = 0x20000000
	routeLocal     = 0x80000000
)

// describeRouteTo replies to a request for the route to one address: a struct rtmsg and its attributes. It uses only the
// attributes RTA_DST and RTA_OIF. If RTA_OIF is not the interface of the stack's route, it searches no other route. A
// broadcast address is reported as a unicast destination. Errors: EINVAL, ENODEV, ENETUNREACH.
func describeRouteTo(net *stack.Stack, r *reply, request []byte) linux.Errno {
	if net == nil {
		return linux.ENETUNREACH
	}
	dst, out, errno := routeRequest(request)
	if errno != 0 {
		return errno
	}
	var by *stack.Interface
	if out != 0 {
		if by = netdevice.ByIndex(net, out); by == nil {
			return linux.ENODEV
		}
		if dst.Is6() && dst.IsLinkLocalUnicast() {
			dst = dst.WithZone(by.Name())
		}
	}
	route, err := net.RouteTo(dst)
	switch {
	case err != nil:
		return file.ToErrno(err)
	case by != nil && by.Name() != route.Interface:
		return linux.ENETUNREACH
	}
	describeOneRoute(r, netdevice.Named(net, route.Interface), route)
	return 0
}

// routeRequest parses a request. The result out is the index of the requested interface,
// or 0 if the request has none.
func routeRequest(b []byte) (dst netip.Addr, out int, errno linux.Errno) {
	if len(b) < linux.SizeofRtMsg {
		return dst, 0, linux.EINVAL
	}
	value, _ := AttributeOf(b[linux.SizeofRtMsg:], linux.RTA_DST)
	dst, _ = netip.AddrFromSlice(value)
	if !dst.IsValid() || Family(dst) != b[0] {
		return dst, 0, linux.EINVAL
	}
	link, found := AttributeOf(b[linux.SizeofRtMsg:], linux.RTA_OIF)
	if found && len(link) != 4 {
		return dst, 0, linux.EINVAL
	}
	if found {
		out = int(int32(binary.NativeEndian.Uint32(link)))
	}
	return dst, out, 0
}

// describeOneRoute appends an RTM_NEWROUTE. The type, table and flags have the values that Linux returns for such a route.
func describeOneRoute(r *reply, by *stack.Interface, route stack.Route) {
	b, end := r.message(linux.RTM_NEWROUTE)
	defer end()
	dst := route.Dst.Addr()
	kind, table, flags := byte(linux.RTN_UNICAST), byte(linux.RT_TABLE_MAIN), uint32(0)
	switch {
	case by.IsLoopback():
		kind, flags = linux.RTN_LOCAL, routeLocal
	case dst.IsMulticast():
		kind, flags = linux.RTN_MULTICAST, routeMulticast|routeLocal
	}
	if dst.Is4() {
		flags |= routeCloned
	} else {
		flags = 0
		if kind == linux.RTN_LOCAL {
			table = linux.RT_TABLE_LOCAL
		}
	}
	*b = append(*b, Family(dst), byte(dst.BitLen()), 0, 0, table, linux.RTPROT_UNSPEC, linux.RT_SCOPE_UNIVERSE, kind)
	*b = binary.NativeEndian.AppendUint32(*b, flags)
	Attribute(b, linux.RTA_TABLE, socket.IntValue(int(table)))
	Attribute(b, linux.RTA_DST, dst.AsSlice())
	Attribute(b, linux.RTA_OIF, socket.IntValue(by.Index()))
	if route.Source.IsValid() {
		Attribute(b, linux.RTA_PREFSRC, route.Source.AsSlice())
	}
	if route.Gateway.IsValid() {
		Attribute(b, linux.RTA_GATEWAY, route.Gateway.AsSlice())
	}
	Attribute(b, linux.RTA_CACHEINFO, neverExpires[:])
}

// neverExpires is the struct rta_cacheinfo of a route without an expiry, an error and uses. The attribute comes last, as on Linux:
// nmap ignores the last attribute.
var neverExpires [32]byte
