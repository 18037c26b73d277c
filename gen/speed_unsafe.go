//go:build linux

package gen

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unknownSpeed is the speed that an interface reports if it is unknown: SPEED_UNKNOWN of linux/ethtool.h.
const unknownSpeed = 1<<32 - 1

// linkSpeed returns the speed of an interface in Mb/s. It uses the ethtool ioctl (netdevice(7)), which works in every
// network namespace. A file in /sys may show the interfaces of another namespace.
func linkSpeed(name string) (uint32, error) {
	const (
		getSettings = 1  // ETHTOOL_GSET: the command that reads the settings of an interface
		size        = 44 // size of struct ethtool_cmd in bytes
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
	// Safety: the kernel writes to settings only during the call, and at most as many bytes as the command ETHTOOL_GSET
	// returns.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return 0, errno
	}
	return uint32(binary.NativeEndian.Uint16(settings[low:])) | uint32(binary.NativeEndian.Uint16(settings[high:]))<<16, nil
}
