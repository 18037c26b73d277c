package netdevice

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
)

// Requests of ioctl(2) that return properties of an interface (netdevice(7)).

// IsRequest reports whether Request supports a request of ioctl(2).
func IsRequest(request int) bool {
	switch request {
	case linux.SIOCGIFNAME, linux.SIOCGIFINDEX, linux.SIOCGIFFLAGS, linux.SIOCGIFMTU,
		linux.SIOCGIFADDR, linux.SIOCGIFNETMASK, linux.SIOCGIFHWADDR, linux.SIOCGIFTXQLEN,
		linux.SIOCETHTOOL:
		return true
	}
	return false
}

// Request returns a property of an interface. arg is a struct ifreq. Errors: ENODEV, EADDRNOTAVAIL, EOPNOTSUPP.
func Request(net *stack.Stack, request int, arg []byte) linux.Errno {
	name, value := arg[:linux.IFNAMSIZ], arg[linux.IFNAMSIZ:]
	if request == linux.SIOCGIFNAME {
		return putName(net, name, binary.NativeEndian.Uint32(value))
	}
	text, _, _ := bytes.Cut(name, []byte{0})
	if i := Named(net, string(text)); i != nil {
		return putProperty(net, i, request, value)
	}
	return linux.ENODEV
}

// QueueLength is the length of an interface's transmit queue in packets, as Linux reports it by default.
const QueueLength = 1000

// putName stores the name of the interface with an index in name. Errors: ENODEV.
func putName(net *stack.Stack, name []byte, index uint32) linux.Errno {
	for _, i := range All(net) {
		if uint32(i.Index()) == index {
			clear(name)
			copy(name, i.Name())
			return 0
		}
	}
	return linux.ENODEV
}

// putProperty stores the property that a request asks for in value.
func putProperty(net *stack.Stack, i *stack.Interface, request int, value []byte) linux.Errno {
	kind, flags := Kind(i)
	switch request {
	case linux.SIOCGIFINDEX:
		binary.NativeEndian.PutUint32(value, uint32(i.Index()))
	case linux.SIOCGIFMTU:
		binary.NativeEndian.PutUint32(value, uint32(i.MTU()))
	case linux.SIOCETHTOOL: // the answer of a driver that implements none of the requests of ethtool(8)
		return linux.EOPNOTSUPP
	case linux.SIOCGIFTXQLEN:
		binary.NativeEndian.PutUint32(value, QueueLength)
	case linux.SIOCGIFFLAGS:
		binary.NativeEndian.PutUint16(value, uint16(flags))
	case linux.SIOCGIFHWADDR: // hardware type and address in a struct sockaddr
		clear(value)
		binary.NativeEndian.PutUint16(value, kind)
		mac := i.MAC()
		copy(value[2:], mac[:])
	default:
		return putAddress(net, i, request, value)
	}
	return 0
}

// putAddress stores the interface's first IPv4 address, or its netmask. Errors: EADDRNOTAVAIL.
func putAddress(net *stack.Stack, i *stack.Interface, request int, value []byte) linux.Errno {
	for _, a := range net.Addresses() {
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

// List returns a struct ifreq for each IPv4 address, with the name of its interface (SIOCGIFCONF).
func List(net *stack.Stack) []byte {
	var list []byte
	for _, i := range All(net) {
		for _, a := range net.Addresses() {
			if a.Interface != i.Name() || !a.Prefix.Addr().Is4() {
				continue
			}
			var one [linux.SizeofIfreq]byte
			copy(one[:linux.IFNAMSIZ-1], i.Name())
			copy(one[linux.IFNAMSIZ:], socket.Inet(netip.AddrPortFrom(a.Prefix.Addr(), 0)).Append(nil))
			list = append(list, one[:]...)
		}
	}
	return list
}
