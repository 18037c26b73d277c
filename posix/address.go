package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/wire"
)

// Address is a socket address of any family; the zero value is none.
type Address struct {
	Family uint16         // AF_INET, AF_UNIX, ...; AF_UNSPEC: no address
	IP     netip.AddrPort // AF_INET, AF_INET6, whose zone is a number
	Name   string         // AF_UNIX: a path, or NUL and an abstract name; empty: unnamed
	Port   uint32         // AF_NETLINK
	Groups uint32         // AF_NETLINK
	Link   LinkAddress    // AF_PACKET
}

// LinkAddress is what struct sockaddr_ll says (packet(7)).
type LinkAddress struct {
	Protocol wire.EtherType
	Index    int32 // of an interface; 0: any
	Hardware uint16
	Kind     uint8
	Len      uint8 // of MAC, in bytes
	MAC      [8]byte
}

// Sizes of struct sockaddr_in, _in6, _un, _nl and _ll.
const (
	sizeInet    = 16
	sizeInet6   = 28
	maxUnixName = 108
	sizeNetlink = 12
	sizeLink    = 20
)

// maxAddress is the size of struct sockaddr_storage.
const maxAddress = 128

// ParseAddress reads a struct sockaddr. Errors: EINVAL, EAFNOSUPPORT.
func ParseAddress(b []byte) (Address, Errno) {
	if len(b) < 2 || len(b) > maxAddress {
		return Address{}, syscall.EINVAL
	}
	a := Address{Family: binary.NativeEndian.Uint16(b)}
	switch a.Family {
	case syscall.AF_UNSPEC:
	case syscall.AF_INET:
		if len(b) < sizeInet {
			return Address{}, syscall.EINVAL
		}
		a.IP = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:]))
	case syscall.AF_INET6:
		if len(b) < sizeInet6 {
			return Address{}, syscall.EINVAL
		}
		a.IP = netip.AddrPortFrom(parseScoped(b[4:]), binary.BigEndian.Uint16(b[2:]))
	case syscall.AF_UNIX:
		return parseUnix(a, b[2:])
	case syscall.AF_NETLINK:
		if len(b) < sizeNetlink {
			return Address{}, syscall.EINVAL
		}
		a.Port, a.Groups = binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:])
	case syscall.AF_PACKET:
		if len(b) < sizeLink {
			return Address{}, syscall.EINVAL
		}
		a.Link = LinkAddress{
			Protocol: wire.EtherType(binary.BigEndian.Uint16(b[2:])), Index: int32(binary.NativeEndian.Uint32(b[4:])),
			Hardware: binary.NativeEndian.Uint16(b[8:]), Kind: b[10], Len: b[11], MAC: [8]byte(b[12:]),
		}
	default:
		return Address{}, syscall.EAFNOSUPPORT
	}
	return a, 0
}

// parseUnix reads the name of a struct sockaddr_un: a path ends at a NUL, an
// abstract name, which begins with one, at the end of the address (unix(7)).
func parseUnix(a Address, name []byte) (Address, Errno) {
	if len(name) > maxUnixName {
		return Address{}, syscall.EINVAL
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

// Append appends the struct sockaddr.
func (a Address) Append(b []byte) []byte {
	switch a.Family {
	case syscall.AF_UNSPEC:
		return b
	case syscall.AF_INET:
		b = binary.NativeEndian.AppendUint16(b, a.Family)
		b = binary.BigEndian.AppendUint16(b, a.IP.Port())
		ip := a.IP.Addr().As4()
		b = append(b, ip[:]...)
		return append(b, make([]byte, 8)...)
	case syscall.AF_INET6:
		b = binary.NativeEndian.AppendUint16(b, a.Family)
		b = binary.BigEndian.AppendUint16(b, a.IP.Port())
		b = append(b, 0, 0, 0, 0)
		ip := a.IP.Addr().As16()
		b = append(b, ip[:]...)
		return binary.NativeEndian.AppendUint32(b, scope(a.IP.Addr()))
	case syscall.AF_NETLINK:
		b = binary.NativeEndian.AppendUint16(b, a.Family)
		b = append(b, 0, 0)
		b = binary.NativeEndian.AppendUint32(b, a.Port)
		return binary.NativeEndian.AppendUint32(b, a.Groups)
	case syscall.AF_PACKET:
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

// inet is the address of an AF_INET socket.
func inet(p netip.AddrPort) Address { return Address{Family: syscall.AF_INET, IP: p} }
