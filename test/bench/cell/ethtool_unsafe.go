package cell

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// finishChecksums makes the kernel compute checksums and segment long packets when it sends on a device
// of the current namespace, like ethtool -K NAME tx off. Frames received by AF_XDP have no metadata, so
// an unfinished checksum could not be recognised.
func finishChecksums(device string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(s)
	value := &struct{ command, on uint32 }{unix.ETHTOOL_STXCSUM, 0}
	request := struct { // struct ifreq whose union holds a pointer
		name  [unix.IFNAMSIZ]byte
		value unsafe.Pointer
		_     [16]byte
	}{value: unsafe.Pointer(value)}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	// Safety: the kernel reads the request and the value that it points to only during the call.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}
