package socket

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"loam/abi/linux"
	"loam/wire"
)

// Address is a socket address of any family. The zero value means no address.
type Address struct {
	Family uint16         // AF_INET, AF_UNIX and others; AF_UNSPEC: no address
	IP     netip.AddrPort // for AF_INET and AF_INET6; the zone is an interface index in decimal
	Name   string         // for AF_UNIX: a path, or a NUL followed by an abstract name; empty: unnamed
	Port   uint32         // nl_pid of AF_NETLINK
	Groups uint32         // nl_groups of AF_NETLINK
	Link   LinkAddress    // for AF_PACKET
}

// LinkAddress is the content of struct sockaddr_ll (packet(7)).
type LinkAddress struct {
	Protocol wire.EtherType
	Index    int32  // interface index; 0: any
	Hardware uint16 // hardware type ARPHRD_*
	Kind     uint8  // packet type, such as PACKET_HOST
	Len      uint8  // length of MAC, in bytes
	MAC      [8]byte
}

// ParseAddress parses a struct sockaddr. Errors: EINVAL, EAFNOSUPPORT.
func ParseAddress(b []byte) (Address, linux.Errno) {
	if len(b) < 2 || len(b) > linux.SizeofSockaddrStorage {
		return Address{}, linux.EINVAL
	}
	a := Address{Family: binary.NativeEndian.Uint16(b)}
	switch a.Family {
	case linux.AF_UNSPEC:
	case linux.AF_INET:
		if len(b) < linux.SizeofSockaddrIn {
			return Address{}, linux.EINVAL
		}
		a.IP = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:]))
	case linux.AF_INET6:
		if len(b) < linux.SizeofSockaddrIn6 {
			return Address{}, linux.EINVAL
		}
		a.IP = netip.AddrPortFrom(parseScoped(b[4:]), binary.BigEndian.Uint16(b[2:]))
	case linux.AF_UNIX:
		return parseUnix(a, b[2:])
	case linux.AF_NETLINK:
		if len(b) < linux.SizeofSockaddrNl {
			return Address{}, linux.EINVAL
		}
		a.Port, a.Groups = binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:])
	case linux.AF_PACKET:
		if len(b) < linux.SizeofSockaddrLl {
			return Address{}, linux.EINVAL
		}
		a.Link = LinkAddress{
			Protocol: wire.EtherType(binary.BigEndian.Uint16(b[2:])), Index: int32(binary.NativeEndian.Uint32(b[4:])),
			Hardware: binary.NativeEndian.Uint16(b[8:]), Kind: b[10], Len: b[11], MAC: [8]byte(b[12:]),
		}
	default:
		return Address{}, linux.EAFNOSUPPORT
	}
	return a, 0
}

// parseUnix parses the name in a struct sockaddr_un. A path ends at the first NUL. An abstract name
// begins with a NUL and extends to the end of the address (unix(7)).
func parseUnix(a Address, name []byte) (Address, linux.Errno) {
	if len(name) > linux.SizeofSunPath {
		return Address{}, linux.EINVAL
	}
	if len(name) > 0 && name[0] != 0 {
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
	}
	a.Name = string(name)
	return a, 0
}

// Append appends the address to b as a struct sockaddr. It appends nothing for AF_UNSPEC.
func (a Address) Append(b []byte) []byte {
	switch a.Family {
	case linux.AF_UNSPEC:
		return b
	case linux.AF_INET:
		b = binary.NativeEndian.AppendUint16(b, a.Family)
		b = binary.BigEndian.AppendUint16(b, a.IP.Port())
		ip := a.IP.Addr().As4()
		b = append(b, ip[:]...)
		return append(b, make([]byte, 8)...)
	case linux.AF_INET6:
		b = binary.NativeEndian.AppendUint16(b, a.Family)
		b = binary.BigEndian.AppendUint16(b, a.IP.Port())
		b = append(b, 0, 0, 0, 0)
		ip := a.IP.Addr().As16()
		b = append(b, ip[:]...)
		return binary.NativeEndian.AppendUint32(b, scope(a.IP.Addr()))
	case linux.AF_NETLINK:
		b = binary.NativeEndian.AppendUint16(b, a.Family)
		b = append(b, 0, 0)
		b = binary.NativeEndian.AppendUint32(b, a.Port)
		return binary.NativeEndian.AppendUint32(b, a.Groups)
	case linux.AF_PACKET:
		b = binary.NativeEndian.AppendUint16(b, a.Family)
		b = binary.BigEndian.AppendUint16(b, uint16(a.Link.Protocol))
		b = binary.NativeEndian.AppendUint32(b, uint32(a.Link.Index))
		b = binary.NativeEndian.AppendUint16(b, a.Link.Hardware)
		b = append(b, a.Link.Kind, a.Link.Len)
		return append(b, a.Link.MAC[:]...)
	}
	b = binary.NativeEndian.AppendUint16(b, a.Family)
	b = append(b, a.Name...)
	if a.Name != "" && a.Name[0] != 0 {
		b = append(b, 0)
	}
	return b
}

// Inet returns the AF_INET address of an IPv4 address and port.
func Inet(p netip.AddrPort) Address { return Address{Family: linux.AF_INET, IP: p} }

// parseScoped parses the fields of a struct sockaddr_in6 after the port: flow information, address and scope ID.
func parseScoped(b []byte) netip.Addr {
	a := netip.AddrFrom16([16]byte(b[4:20]))
	if scope := binary.NativeEndian.Uint32(b[20:]); scope != 0 {
		a = a.WithZone(strconv.FormatUint(uint64(scope), 10))
	}
	return a
}

// scope returns the sin6_scope_id of an address.
func scope(a netip.Addr) uint32 {
	n, err := strconv.ParseUint(a.Zone(), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}
