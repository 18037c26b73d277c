package unikernel

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"unsafe"
)

// ifreq is struct ifreq (netdevice(7)): a name, and a union of 24 bytes.
type ifreq struct {
	name [syscall.IFNAMSIZ]byte
	data [24]byte
}

// setUp assigns the valid ones of the two addresses to the host's side of an interface, and brings it up.
func setUp(name string, address, address6 netip.Prefix) error {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(s)
	if address.IsValid() {
		if err := control(s, syscall.SIOCSIFADDR, name, sockaddr(address.Addr())); err != nil {
			return err
		}
		if err := control(s, syscall.SIOCSIFNETMASK, name, sockaddr(netmask(address.Bits()))); err != nil {
			return err
		}
	}
	flags := binary.NativeEndian.AppendUint16(nil, syscall.IFF_UP|syscall.IFF_RUNNING)
	if err := control(s, syscall.SIOCSIFFLAGS, name, flags); err != nil || !address6.IsValid() {
		return err
	}
	return setAddress6(name, address6)
}

// in6Ifreq is struct in6_ifreq (linux/ipv6.h).
type in6Ifreq struct {
	address [16]byte
	bits    uint32
	index   int32
}

// setAddress6 adds an IPv6 address to an interface.
func setAddress6(name string, address netip.Prefix) error {
	ifc, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	s, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(s)
	r := in6Ifreq{address.Addr().As16(), uint32(address.Bits()), int32(ifc.Index)}
	// Safety: the kernel reads a struct in6_ifreq during the call.
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(s), syscall.SIOCSIFADDR, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}

// netmask returns the mask of an IPv4 prefix as an address.
func netmask(bits int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-bits))))
}

// sockaddr returns the start of a struct sockaddr_in.
func sockaddr(a netip.Addr) []byte {
	ip := a.As4()
	return append(binary.NativeEndian.AppendUint16(nil, syscall.AF_INET), 0, 0, ip[0], ip[1], ip[2], ip[3])
}

// control makes an ioctl on an interface. data is the request's part of struct ifreq, up to 24 bytes.
func control(s int, request uintptr, name string, data []byte) error {
	var r ifreq
	copy(r.name[:len(r.name)-1], name)
	copy(r.data[:], data)
	// Safety: the kernel reads a struct ifreq during the call.
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(s), request, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}
