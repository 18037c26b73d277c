package posix

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
)

// Requests of ioctl(2) that return properties of an interface (netdevice(7)).

// IsInterfaceRequest reports whether InterfaceRequest supports a request of ioctl(2).
func IsInterfaceRequest(request int) bool {
	switch request {
	case linux.SIOCGIFNAME, linux.SIOCGIFINDEX, linux.SIOCGIFFLAGS, linux.SIOCGIFMTU,
		linux.SIOCGIFADDR, linux.SIOCGIFNETMASK, linux.SIOCGIFHWADDR:
		return true
	}
	return false
}

// InterfaceRequest implements ioctl(2) for the requests of netdevice(7) that return a property of an
// interface. arg is a struct ifreq. Errors: EBADF, ENOTTY if fd is not a socket, ENODEV,
// EADDRNOTAVAIL.
func (p *Process) InterfaceRequest(fd, request int, arg []byte) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, ok := o.File.(socket.Socket); !ok {
		return linux.ENOTTY
	}
	name, value := arg[:linux.IFNAMSIZ], arg[linux.IFNAMSIZ:]
	if request == linux.SIOCGIFNAME {
		return p.tellName(name, binary.NativeEndian.Uint32(value))
	}
	text, _, _ := bytes.Cut(name, []byte{0})
	if i := interfaceNamed(p.net, string(text)); i != nil {
		return p.tellOf(i, request, value)
	}
	return linux.ENODEV
}

// tellName stores the name of the interface with an index in name. Errors: ENODEV.
func (p *Process) tellName(name []byte, index uint32) Errno {
	for _, i := range p.interfaces() {
		if uint32(i.Index()) == index {
			clear(name)
			copy(name, i.Name())
			return 0
		}
	}
	return linux.ENODEV
}

// tellOf stores the property that a request asks for in value.
func (p *Process) tellOf(i *stack.Interface, request int, value []byte) Errno {
	kind, flags := kindOf(i)
	switch request {
	case linux.SIOCGIFINDEX:
		binary.NativeEndian.PutUint32(value, uint32(i.Index()))
	case linux.SIOCGIFMTU:
		binary.NativeEndian.PutUint32(value, uint32(i.MTU()))
	case linux.SIOCGIFFLAGS:
		binary.NativeEndian.PutUint16(value, uint16(flags))
	case linux.SIOCGIFHWADDR: // struct sockaddr
		clear(value)
		binary.NativeEndian.PutUint16(value, kind)
		mac := i.MAC()
		copy(value[2:], mac[:])
	default:
		return p.tellAddress(i, request, value)
	}
	return 0
}

// tellAddress stores the interface's first IPv4 address, or its netmask. Errors: EADDRNOTAVAIL.
func (p *Process) tellAddress(i *stack.Interface, request int, value []byte) Errno {
	for _, a := range p.net.Addresses() {
		ip := a.Prefix.Addr()
		if a.Interface != i.Name() || !ip.Is4() {
			continue
		}
		if request == linux.SIOCGIFNETMASK {
			var mask [4]byte
			binary.BigEndian.PutUint32(mask[:], ^(1<<(32-a.Prefix.Bits()) - 1))
			ip = netip.AddrFrom4(mask)
		}
		clear(value)
		copy(value, socket.Inet(netip.AddrPortFrom(ip, 0)).Append(nil))
		return 0
	}
	return linux.EADDRNOTAVAIL
}
