//go:build linux

package tap

import (
	"bytes"
	"syscall"
	"unsafe"

	"loam/wire"
)

// The ioctls of linux/if_tun.h and netdevice(7).
//
// Safety, for every use of unsafe here: the kernel accesses the variable behind the pointer only
// during the call. The variable is at least as large as the data of the request.

// tunSetVnetLE is TUNSETVNETLE: the virtio-net header is little-endian on every machine.
const tunSetVnetLE = 0x400454dc

// tunAttachFilter and tunDetachFilter are TUNATTACHFILTER and TUNDETACHFILTER.
const (
	tunAttachFilter = 0x401054d5
	tunDetachFilter = 0x401054d6
)

// attachFilter attaches a program of classic BPF to all queues of the interface, in place of an earlier
// one. The caller must keep the program in memory while it is attached.
func attachFilter(fd int, program []syscall.SockFilter) error {
	return filter(fd, tunAttachFilter, syscall.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// detachFilter removes the program that attachFilter attached.
func detachFilter(fd int) error { return filter(fd, tunDetachFilter, syscall.SockFprog{}) }

func filter(fd int, request uintptr, p syscall.SockFprog) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&p))); errno != 0 {
		return errno
	}
	return nil
}

// ifreq is struct ifreq: a name and a union of 24 bytes.
type ifreq struct {
	name [maxName + 1]byte
	data [24]byte
}

func newIfreq(name string) *ifreq {
	var r ifreq
	copy(r.name[:maxName], name)
	return &r
}

func ioctl(fd int, request, argument uintptr) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, argument); errno != 0 {
		return errno
	}
	return nil
}

// ioctlValue calls an ioctl with a pointer to an int.
func ioctlValue(fd int, request uintptr, value int32) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&value))); errno != 0 {
		return errno
	}
	return nil
}

func ioctlIfreq(fd int, request uintptr, r *ifreq) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(r))); errno != 0 {
		return errno
	}
	return nil
}

// attach attaches fd to the interface and returns the name that the kernel assigned.
func attach(fd int, name string, flags uint16) (string, error) {
	r := newIfreq(name)
	*(*uint16)(unsafe.Pointer(&r.data)) = flags
	if err := ioctlIfreq(fd, syscall.TUNSETIFF, r); err != nil {
		return name, err
	}
	given, _, _ := bytes.Cut(r.name[:], []byte{0})
	return string(given), nil
}

// readMTU returns the MTU in bytes of the named interface. The ioctl works on any socket.
func readMTU(name string) (int, error) {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(s)
	r := newIfreq(name)
	if err := ioctlIfreq(s, syscall.SIOCGIFMTU, r); err != nil {
		return 0, err
	}
	return int(*(*int32)(unsafe.Pointer(&r.data))), nil
}

// readMAC returns the address of the kernel's end. It follows the two bytes of the address family.
func readMAC(fd int) (wire.MAC, error) {
	r := newIfreq("")
	if err := ioctlIfreq(fd, syscall.SIOCGIFHWADDR, r); err != nil {
		return wire.MAC{}, err
	}
	return wire.MAC(r.data[2:8]), nil
}
