package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/link"
	"loam/stack"
)

// What NETLINK_ROUTE says about the stack (rtnetlink(7)).

// hardware types (linux/if_arp.h).
const (
	arphrdEther    = 1
	arphrdLoopback = 772
	arphrdNone     = 0xfffe
)

const (
	iffLowerUp  = 0x10000
	iflaStats64 = 23 // IFLA_STATS64 of linux/if_link.h
)

func (p *Process) interfaces() []*stack.Interface {
	if p.net == nil {
		return nil
	}
	return p.net.Interfaces()
}

// describeLinks answers RTM_GETLINK: all links, or the one whose index or name
// the request gives.
func (p *Process) describeLinks(r *reply, request []byte, all bool) {
	index, name := 0, ""
	if !all && len(request) >= syscall.SizeofIfInfomsg {
		index = int(binary.NativeEndian.Uint32(request[4:]))
		name = nameAttribute(request[syscall.SizeofIfInfomsg:])
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
		r.fail(syscall.ENODEV, syscall.NlMsghdr{Seq: r.seq, Type: syscall.RTM_GETLINK})
	}
}

// nameAttribute finds IFLA_IFNAME.
func nameAttribute(b []byte) string {
	name, _ := attributeOf(b, syscall.IFLA_IFNAME)
	for len(name) > 0 && name[len(name)-1] == 0 {
		name = name[:len(name)-1]
	}
	return string(name)
}

// attributeOf finds the first struct rtattr of a type.
func attributeOf(b []byte, typ uint16) (value []byte, found bool) {
	for len(b) >= syscall.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < syscall.SizeofRtAttr || n > len(b) {
			break
		}
		if binary.NativeEndian.Uint16(b[2:]) == typ {
			return b[syscall.SizeofRtAttr:n], true
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil, false
}

// kindOf is the ARPHRD_* of an interface, and its IFF_*.
func kindOf(i *stack.Interface) (kind uint16, flags uint32) {
	const up = syscall.IFF_UP | syscall.IFF_RUNNING | iffLowerUp
	switch {
	case i.IsLoopback():
		return arphrdLoopback, up | syscall.IFF_LOOPBACK
	case i.Device().Info().Medium == link.IP:
		return arphrdNone, up | syscall.IFF_POINTOPOINT | syscall.IFF_MULTICAST
	}
	return arphrdEther, up | syscall.IFF_BROADCAST | syscall.IFF_MULTICAST
}

func describeLink(r *reply, i *stack.Interface) {
	b, end := r.message(syscall.RTM_NEWLINK)
	defer end()
	kind, flags := kindOf(i)
	mac := i.MAC()
	*b = append(*b, syscall.AF_UNSPEC, 0)
	*b = binary.NativeEndian.AppendUint16(*b, kind)
	*b = binary.NativeEndian.AppendUint32(*b, uint32(i.Index()))
	*b = binary.NativeEndian.AppendUint32(*b, flags)
	*b = binary.NativeEndian.AppendUint32(*b, 0)
	attribute(b, syscall.IFLA_IFNAME, append([]byte(i.Name()), 0))
	attribute(b, syscall.IFLA_MTU, intValue(i.MTU()))
	if kind != arphrdNone {
		attribute(b, syscall.IFLA_ADDRESS, mac[:])
	}
	short, long := linkStats(i.Device().Stats())
	attribute(b, syscall.IFLA_STATS, short)
	attribute(b, iflaStats64, long)
}

// linkStats is what a link has carried, as struct rtnl_link_stats, whose numbers have 32 bits,
// and rtnl_link_stats64 (linux/if_link.h). What is not counted is 0.
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
		scope := byte(syscall.RT_SCOPE_UNIVERSE)
		switch {
		case a.Prefix.Addr().IsLoopback():
			scope = syscall.RT_SCOPE_HOST
		case a.Prefix.Addr().Is6() && a.Prefix.Addr().IsLinkLocalUnicast():
			scope = syscall.RT_SCOPE_LINK
		}
		b, end := r.message(syscall.RTM_NEWADDR)
		*b = append(*b, family(a.Prefix.Addr()), byte(a.Prefix.Bits()), syscall.IFA_F_PERMANENT, scope)
		*b = binary.NativeEndian.AppendUint32(*b, uint32(index))
		ip := a.Prefix.Addr().AsSlice()
		attribute(b, syscall.IFA_ADDRESS, ip)
		if a.Prefix.Addr().Is4() {
			attribute(b, syscall.IFA_LOCAL, ip)
			attribute(b, syscall.IFA_LABEL, append([]byte(a.Interface), 0))
		}
		end()
	}
}

// describeRoutes answers RTM_GETROUTE.
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

func describeRoute(r *reply, index int, route stack.Route) {
	b, end := r.message(syscall.RTM_NEWROUTE)
	defer end()
	scope, protocol := byte(syscall.RT_SCOPE_UNIVERSE), byte(syscall.RTPROT_STATIC)
	if !route.Gateway.IsValid() {
		scope, protocol = syscall.RT_SCOPE_LINK, syscall.RTPROT_KERNEL
	}
	*b = append(*b, family(route.Dst.Addr()), byte(route.Dst.Bits()), 0, 0,
		syscall.RT_TABLE_MAIN, protocol, scope, syscall.RTN_UNICAST, 0, 0, 0, 0)
	if route.Dst.Bits() > 0 {
		attribute(b, syscall.RTA_DST, route.Dst.Addr().AsSlice())
	}
	if route.Gateway.IsValid() {
		attribute(b, syscall.RTA_GATEWAY, route.Gateway.AsSlice())
	}
	if route.Source.IsValid() {
		attribute(b, syscall.RTA_PREFSRC, route.Source.AsSlice())
	}
	if route.Metric != 0 {
		attribute(b, syscall.RTA_PRIORITY, intValue(route.Metric))
	}
	attribute(b, syscall.RTA_OIF, intValue(index))
}

// interfaceNamed finds an interface of a stack, which may be nil, by its name; nil: there is none.
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

// interfaceByIndex finds an interface of a stack by its index; nil: there is none.
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
		return syscall.AF_INET
	}
	return syscall.AF_INET6
}
