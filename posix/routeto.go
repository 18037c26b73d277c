package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/stack"
)

// The route to one address, which is RTM_GETROUTE without NLM_F_DUMP, as `ip route get` asks.

// Flags of such a route of IPv4 (RTM_F_CLONED of linux/rtnetlink.h, RTCF_* of linux/in_route.h).
const (
	routeCloned    = 0x200
	routeMulticast = 0x20000000
	routeLocal     = 0x80000000
)

// describeRouteTo answers a request, a struct rtmsg and its attributes. Of these RTA_DST and
// RTA_OIF are heard; a route by another link than the stack would take is not looked for. To
// the last address of a prefix it is told as a unicast one. Errors: EINVAL, ENODEV, ENETUNREACH.
func (p *Process) describeRouteTo(r *reply, request []byte) Errno {
	if p.net == nil {
		return syscall.ENETUNREACH
	}
	dst, out, errno := routeRequest(request)
	if errno != 0 {
		return errno
	}
	var by *stack.Interface
	if out != 0 {
		if by = interfaceByIndex(p.net, out); by == nil {
			return syscall.ENODEV
		}
		if dst.Is6() && dst.IsLinkLocalUnicast() {
			dst = dst.WithZone(by.Name())
		}
	}
	route, err := p.net.RouteTo(dst)
	switch {
	case err != nil:
		return toErrno(err)
	case by != nil && by.Name() != route.Interface:
		return syscall.ENETUNREACH
	}
	describeOneRoute(r, interfaceNamed(p.net, route.Interface), route)
	return 0
}

// routeRequest is what a request asks for; out is 0 where it names no link.
func routeRequest(b []byte) (dst netip.Addr, out int, errno Errno) {
	if len(b) < syscall.SizeofRtMsg {
		return dst, 0, syscall.EINVAL
	}
	value, _ := attributeOf(b[syscall.SizeofRtMsg:], syscall.RTA_DST)
	dst, _ = netip.AddrFromSlice(value)
	if !dst.IsValid() || family(dst) != b[0] {
		return dst, 0, syscall.EINVAL
	}
	link, found := attributeOf(b[syscall.SizeofRtMsg:], syscall.RTA_OIF)
	if found && len(link) != 4 {
		return dst, 0, syscall.EINVAL
	}
	if found {
		out = int(int32(binary.NativeEndian.Uint32(link)))
	}
	return dst, out, 0
}

func describeOneRoute(r *reply, by *stack.Interface, route stack.Route) {
	b, end := r.message(syscall.RTM_NEWROUTE)
	defer end()
	dst := route.Dst.Addr()
	kind, table, flags := byte(syscall.RTN_UNICAST), byte(syscall.RT_TABLE_MAIN), uint32(0)
	switch {
	case by.IsLoopback():
		kind, flags = syscall.RTN_LOCAL, routeLocal
	case dst.IsMulticast():
		kind, flags = syscall.RTN_MULTICAST, routeMulticast|routeLocal
	}
	if dst.Is4() {
		flags |= routeCloned
	} else {
		flags = 0
		if kind == syscall.RTN_LOCAL {
			table = syscall.RT_TABLE_LOCAL
		}
	}
	*b = append(*b, family(dst), byte(dst.BitLen()), 0, 0, table, syscall.RTPROT_UNSPEC, syscall.RT_SCOPE_UNIVERSE, kind)
	*b = binary.NativeEndian.AppendUint32(*b, flags)
	attribute(b, syscall.RTA_TABLE, intValue(int(table)))
	attribute(b, syscall.RTA_DST, dst.AsSlice())
	attribute(b, syscall.RTA_OIF, intValue(by.Index()))
	if route.Source.IsValid() {
		attribute(b, syscall.RTA_PREFSRC, route.Source.AsSlice())
	}
	if route.Gateway.IsValid() {
		attribute(b, syscall.RTA_GATEWAY, route.Gateway.AsSlice())
	}
}
