//go:build linux

package gen

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unknownSpeed is SPEED_UNKNOWN of linux/ethtool.h.
const unknownSpeed = 1<<32 - 1

// linkSpeed returns the speed of an interface in Mb/s, read by the ethtool ioctl (netdevice(7)). Unlike /sys, which
// may show another network namespace, the ioctl works in any namespace.
func linkSpeed(name string) (uint32, error) {
	const (
		getSettings = 1  // ETHTOOL_GSET
		size        = 44 // size of struct ethtool_cmd
		low, high   = 12, 28
	)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var settings [size]byte
	binary.NativeEndian.PutUint32(settings[:], getSettings)
	request := struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&settings)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	// Safety: the kernel writes to settings only during the call, and at most as many bytes as the command implies.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return 0, errno
	}
	return uint32(binary.NativeEndian.Uint16(settings[low:])) | uint32(binary.NativeEndian.Uint16(settings[high:]))<<16, nil
}
