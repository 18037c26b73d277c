//go:build linux

package tap

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"unsafe"
)

// SetUp brings the kernel's end of an interface up, and gives it an IPv4 address
// if host is valid (netdevice(7)). It takes CAP_NET_ADMIN.
func SetUp(name string, host netip.Prefix) error {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(s)
	if host.IsValid() {
		mask := netip.AddrFrom4([4]byte(net.CIDRMask(host.Bits(), 32)))
		if err := setAddress(s, name, syscall.SIOCSIFADDR, host.Addr()); err != nil {
			return fmt.Errorf("address %v: %w", host, err)
		}
		if err := setAddress(s, name, syscall.SIOCSIFNETMASK, mask); err != nil {
			return fmt.Errorf("netmask of %v: %w", host, err)
		}
	}
	r := newIfreq(name)
	if err := ioctlIfreq(s, syscall.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	*(*uint16)(unsafe.Pointer(&r.data)) |= syscall.IFF_UP // Safety: as in ioctl_unsafe.go
	return ioctlIfreq(s, syscall.SIOCSIFFLAGS, r)
}

// setAddress puts a struct sockaddr_in into the request.
func setAddress(s int, name string, request uintptr, a netip.Addr) error {
	r := newIfreq(name)
	*(*uint16)(unsafe.Pointer(&r.data)) = syscall.AF_INET // Safety: as in ioctl_unsafe.go
	b := a.As4()
	copy(r.data[4:], b[:])
	return ioctlIfreq(s, request, r)
}
