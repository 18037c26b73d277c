package subject

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var errNoTap = errors.New("cannot make a tap; run as root, or where user namespaces and /dev/net/tun are allowed")

// OpenTap creates a tap device in the current network namespace and returns its descriptor, in
// non-blocking mode. Closing the descriptor removes the device. With vnet, each frame has a virtio-net
// header and may be a TCP segment of up to 64 kB.
func OpenTap(name string, vnet bool) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("%w: %w", errNoTap, err)
	}
	if err := setTap(fd, name, vnet); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("%w: %w", errNoTap, err)
	}
	return fd, nil
}

func setTap(fd int, name string, vnet bool) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if vnet {
		flags |= unix.IFF_VNET_HDR
	}
	req.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil || !vnet {
		return err
	}
	return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4)
}
