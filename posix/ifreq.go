package posix

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/stack"
)

// Requests of ioctl(2) that tell of one interface (netdevice(7)).

// InterfaceRequestLen is the size of struct ifreq: a name, and behind it what is told.
const InterfaceRequestLen = 40

// IsInterfaceRequest reports whether a request is one of those here.
func IsInterfaceRequest(request int) bool {
	switch request {
	case syscall.SIOCGIFNAME, syscall.SIOCGIFINDEX, syscall.SIOCGIFFLAGS, syscall.SIOCGIFMTU,
		syscall.SIOCGIFADDR, syscall.SIOCGIFNETMASK, syscall.SIOCGIFHWADDR:
		return true
	}
	return false
}

// InterfaceRequest is ioctl(2) for them. Errors: EBADF, ENOTTY for what is no socket,
// ENODEV, EADDRNOTAVAIL.
func (p *Process) InterfaceRequest(fd, request int, arg []byte) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, ok := o.file.(socket); !ok {
		return syscall.ENOTTY
	}
	name, value := arg[:syscall.IFNAMSIZ], arg[syscall.IFNAMSIZ:]
	if request == syscall.SIOCGIFNAME {
		return p.tellName(name, binary.NativeEndian.Uint32(value))
	}
	text, _, _ := bytes.Cut(name, []byte{0})
	if i := interfaceNamed(p.net, string(text)); i != nil {
		return p.tellOf(i, request, value)
	}
	return syscall.ENODEV
}

// tellName puts the name of the interface that has an index into name. Errors: ENODEV.
func (p *Process) tellName(name []byte, index uint32) Errno {
	for _, i := range p.interfaces() {
		if uint32(i.Index()) == index {
			clear(name)
			copy(name, i.Name())
			return 0
		}
	}
	return syscall.ENODEV
}

// tellOf puts what a request asks for into value.
func (p *Process) tellOf(i *stack.Interface, request int, value []byte) Errno {
	kind, flags := kindOf(i)
	switch request {
	case syscall.SIOCGIFINDEX:
		binary.NativeEndian.PutUint32(value, uint32(i.Index()))
	case syscall.SIOCGIFMTU:
		binary.NativeEndian.PutUint32(value, uint32(i.MTU()))
	case syscall.SIOCGIFFLAGS:
		binary.NativeEndian.PutUint16(value, uint16(flags))
	case syscall.SIOCGIFHWADDR: // struct sockaddr
		clear(value)
		binary.NativeEndian.PutUint16(value, kind)
		mac := i.MAC()
		copy(value[2:], mac[:])
	default:
		return p.tellAddress(i, request, value)
	}
	return 0
}

// tellAddress is about the first address of IPv4. Errors: EADDRNOTAVAIL.
func (p *Process) tellAddress(i *stack.Interface, request int, value []byte) Errno {
	for _, a := range p.net.Addresses() {
		ip := a.Prefix.Addr()
		if a.Interface != i.Name() || !ip.Is4() {
			continue
		}
		if request == syscall.SIOCGIFNETMASK {
			var mask [4]byte
			binary.BigEndian.PutUint32(mask[:], ^(1<<(32-a.Prefix.Bits()) - 1))
			ip = netip.AddrFrom4(mask)
		}
		clear(value)
		copy(value, inet(netip.AddrPortFrom(ip, 0)).Append(nil))
		return 0
	}
	return syscall.EADDRNOTAVAIL
}
